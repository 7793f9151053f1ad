// Hosts in processes that were forked from their own: the threads of their queues are not there.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <latch>
#include <thread>

#include "executor/enqueue_work.h"

namespace coppice::executor {
namespace {

// The child's exit code, or -1 where a signal ended it.
int exit_code_of_child(const std::function<int()>& deed) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(deed());
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

struct Forked : testing::Test {
  Forked() {
    wait(*enqueue_work(*host, [] {}).release_rc_reference());
    wait(*enqueue_blocking_work(*host, [] {}).release_rc_reference());
  }
  IntrusivePtr<Host> host = make_intrusive<Host>(WorkQueue::create({.threads = 2}));
};

TEST_F(Forked, AChildMayDropItsParentsHost) {
  EXPECT_EQ(exit_code_of_child([&] { return host.reset(), 7; }), 7);
  EXPECT_EQ(enqueue_work(*host, [] { return 1; }).is_error(), false);
}

TEST_F(Forked, AChildMayDropARequestWithADeadline) {
  auto request = host->start_request();
  EXPECT_TRUE(request->cancel_at(WorkQueue::Clock::now() + std::chrono::hours(1)));
  EXPECT_EQ(exit_code_of_child([&] { return request.reset(), host.reset(), 7; }), 7);
}

// Seen to fail: it waited for ever.
TEST_F(Forked, AChildDoesNotWaitForWhatItsParentsThreadsWereToDo) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer has a thread of its own in the child";
#endif
  std::latch release(1);
  const RCReference<AsyncValue> pending =
      enqueue_blocking_work(*host, [&] { release.wait(); }).release_rc_reference();
  EXPECT_EQ(exit_code_of_child([&] {
              try {
                wait(*pending);
              } catch (const Error& error) {
                return error.code() == ErrorCode::kUnavailable ? 7 : 1;
              }
              return 2;
            }),
            7);
  // It waits for what a thread of its own completes.
  EXPECT_EQ(exit_code_of_child([&] {
              auto promise = make_promise<int>();
              const AsyncValueRef<int> value = promise.value();
              std::thread own([&] {
                std::this_thread::yield();
                promise.emplace(3);
              });
              wait(value);
              own.join();
              return value.get();
            }),
            3);
  release.count_down();
  wait(*pending);
}

TEST_F(Forked, AChildMayNotUseItsParentsQueue) {
  testing::GTEST_FLAG(death_test_style) = "fast";  // that forks, and does no more
  EXPECT_DEATH(enqueue_work(*host, [] {}),
               "add\\(\\) of a work queue of the process that this one was forked from");
  EXPECT_DEATH(enqueue_blocking_work(*host, [] {}), "add_blocking\\(\\) of a work queue of the process");
  EXPECT_DEATH(host->queue()->wait_idle(), "wait_idle\\(\\) of a work queue of the process");
}

// Seen to fail: it was taken, and never ran.
TEST_F(Forked, AChildsOwnQueueTakesNoComputeTasks) {
  testing::GTEST_FLAG(death_test_style) = "fast";
  EXPECT_DEATH(
      {
        const auto own = make_intrusive<Host>(WorkQueue::create({.threads = 2}));
        enqueue_work(*own, [] {});
      },
      "add\\(\\) of a work queue that was made in a forked child: oneTBB, which runs compute tasks, has left "
      "its "
      "threads");
}

}  // namespace
}  // namespace coppice::executor
