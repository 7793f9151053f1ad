// exit() while queues are at work, in the ways that ending_host_program.cc does not draw.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <tbb/global_control.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <latch>
#include <thread>

#include "core/error.h"
#include "executor/host.h"
#include "executor/work_queue.h"

namespace coppice::executor {
namespace {

struct EndingsDeath : testing::Test {
  EndingsDeath() { testing::GTEST_FLAG(death_test_style) = "threadsafe"; }
};

[[noreturn]] void wait_for_the_end() {
  alarm(8);  // less than exit() waits for what does not end
  for (;;) pause();
}

// It holds the file's lock while it waits.
[[noreturn]] void exit_in_a_task_beside_a_reader() {
  int ends[2];
  if (pipe(ends) != 0) std::abort();
  FILE* const file = fdopen(ends[0], "r");
  std::thread([file] { std::getc(file); }).detach();
  while (ftrylockfile(file) == 0) {
    funlockfile(file);
    std::this_thread::yield();
  }
  const auto queue = WorkQueue::create({.threads = 1});
  queue->add(0, 0, [] { std::exit(3); });
  wait_for_the_end();
}
TEST_F(EndingsDeath, ATaskEndsTheProcessBesideAThreadThatReads) {
  EXPECT_EXIT(exit_in_a_task_beside_a_reader(), testing::ExitedWithCode(3), "");
}

// Tasks that its threads could not begin hold nothing up.
[[noreturn]] void exit_with_few_workers() {
  const tbb::global_control few(tbb::global_control::max_allowed_parallelism, 2);
  const auto queue = WorkQueue::create({.threads = 4});
  for (int i = 0; i < 4; ++i) queue->add(0, 0, [] { std::exit(3); });
  wait_for_the_end();
}
TEST_F(EndingsDeath, ATaskEndsTheProcessWhereOthersHaveNoWorker) {
  EXPECT_EXIT(exit_with_few_workers(), testing::ExitedWithCode(3), "");
}

// Its parent's threads are not its own, and its own are waited for.
TEST(Endings, AForkedChildWaitsForItsOwnTasks) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP()
      << "a sanitizer ends a child that starts threads, or finds there what the parent's threads had";
#endif
  const auto parents = WorkQueue::create({.threads = 1});
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    std::latch begun(1);
    auto* const own = new IntrusivePtr<WorkQueue>(WorkQueue::create({.threads = 1}));
    (*own)->add_blocking([&] {
      begun.count_down();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // exit() is likely to be called
      if (write(ends[1], "x", 1) != 1) std::abort();
    });
    begun.wait();
    std::exit(0);
  }
  close(ends[1]);
  char word = 0;
  EXPECT_EQ(read(ends[0], &word, 1), 1);
  EXPECT_EQ(word, 'x');
  close(ends[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// A thread of the parent may hold the request's lock when it forks.
TEST(Endings, AForkedChildIsRefusedItsParentsRequest) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer does not follow forks of processes with threads";
#endif
  const auto host = make_intrusive<Host>(WorkQueue::create({.threads = 1}));
  const auto request = host->start_request();
  std::atomic<bool> ends{false};
  std::thread busy([&] {
    while (!ends) request->describe_waiting();
  });
  for (int i = 0; i < 200; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      try {
        request->cancel();
        request->describe_waiting();
      } catch (const Error& error) {
        _exit(error.code() == ErrorCode::kUnavailable && request->is_cancelled() ? 7 : 8);
      }
      _exit(9);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << "fork " << i << ", status " << status;
  }
  ends = true;
  busy.join();
}

}  // namespace
}  // namespace coppice::executor
