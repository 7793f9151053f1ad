// core/stop_signals.h: the first signal ends what has nothing to finish, and the second everything.
#include "core/stop_signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

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
