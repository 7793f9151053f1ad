// core/stop_signals.h: the first signal ends what has nothing to finish, and the second everything.
#include "core/stop_signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

namespace coppice {
namespace {

TEST(StopSignals, EndAtOnceWhatHasNothingToFinish) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    EXPECT_EXIT(
        {
          const StopSignals signals;
          std::raise(signal);
        },
        testing::ExitedWithCode(130), "^stopped\n$");
  }
}

TEST(StopSignals, SayWhatIsFinishedAndEndItTheSecondTime) {
  EXPECT_EXIT(
      {
        const StopSignals signals;
        StopSignals::let_finish("frame", 1204);
        std::raise(SIGINT);
        if (!signals.requested()) _exit(1);
        StopSignals::let_finish("the film");
        std::raise(SIGTERM);  // another signal is a second one, too
        _exit(2);
      },
      testing::ExitedWithCode(130), "^finishing frame 1204; again to stop now\nstopped\n$");
  EXPECT_EXIT(
      {
        const StopSignals signals;
        StopSignals::let_finish("the film");
        std::raise(SIGHUP);
        _exit(3);
      },
      testing::ExitedWithCode(3), "^finishing the film; again to stop now\n$");
  EXPECT_EXIT(
      {
        const StopSignals signals;
        StopSignals::let_finish("the film");
        StopSignals::let_finish("");  // which is done
        std::raise(SIGINT);
        _exit(signals.requested() ? 4 : 1);
      },
      testing::ExitedWithCode(4), "^ending; again to stop now\n$");
}

// Whatever the thread of each, and where one interrupts the handler of the other. Seen to fail: "stopped"
// came before "finishing frame 1".
TEST(StopSignals, AreToldInOrderWhenTwoComeInOneInstant) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer keeps a second signal back while a thread does nothing";
#endif
  for (int i = 0; i < 100; ++i) {
    EXPECT_EXIT(
        {
          const StopSignals signals;
          StopSignals::let_finish("frame", 1);
          std::vector<std::jthread> threads;
          for (int t = 0; t < 4; ++t)
            threads.emplace_back([] {
              while (true) pause();
            });
          if (const pid_t program = getpid(); fork() == 0) {
            // Both are there when its threads go on.
            for (const int signal : {SIGSTOP, SIGINT, SIGTERM, SIGCONT}) kill(program, signal);
            _exit(0);
          }
          while (true) pause();
        },
        testing::ExitedWithCode(130), "^finishing frame 1; again to stop now\nstopped\n");
    if (HasFailure()) return;
  }
}

// Seen to fail: the handler waited for a reader that had gone to sleep.
TEST(StopSignals, EndTheProgramWhenNobodyReadsWhatItSays) {
  std::array<int, 2> pipe_ends{};
  ASSERT_EQ(pipe2(pipe_ends.data(), O_CLOEXEC), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    dup2(pipe_ends[1], STDERR_FILENO);
    fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
    const std::vector<char> text(1 << 16, 'x');
    while (write(STDERR_FILENO, text.data(), text.size()) > 0) {
    }
    fcntl(STDERR_FILENO, F_SETFL, 0);
    alarm(20);  // ends the test, should the handler wait
    const StopSignals signals;
    StopSignals::let_finish("frame", 1);
    std::raise(SIGINT);
    std::raise(SIGINT);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 130) << status;
  for (const int end : pipe_ends) close(end);
}

// As with "| tee log", which the same Ctrl-C ends. Seen to fail: SIGPIPE ended the program at the first
// signal.
TEST(StopSignals, LetTheProgramFinishWhenWhoeverReadsWhatItSaysIsGone) {
  EXPECT_EXIT(
      {
        int pipe_ends[2];
        if (pipe(pipe_ends) != 0) _exit(1);
        const int before = dup(STDERR_FILENO);
        dup2(pipe_ends[1], STDERR_FILENO);
        close(pipe_ends[0]);
        const StopSignals signals;
        StopSignals::let_finish("frame", 1);
        std::raise(SIGINT);
        dup2(before, STDERR_FILENO);
        _exit(signals.requested() ? 4 : 1);
      },
      testing::ExitedWithCode(4), "^$");
}

TEST(StopSignals, AreGivenBackAndMayBeIgnored) {
  struct sigaction before {
  }, after{}, ignore{};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGHUP, &ignore, &before);
  {
    const StopSignals signals;
    std::raise(SIGHUP);  // as under nohup
    EXPECT_FALSE(signals.requested());
  }
  sigaction(SIGHUP, &before, nullptr);
  sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(after.sa_handler, SIG_DFL);
}

}  // namespace
}  // namespace coppice
