// The executor's conformance list where threads matter: concurrency (52 to 55), scheduling (56), completion
// from other threads, deadlines and queues that end while functions run (60).
#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "core/live_objects.h"
#include "core/worker_thread.h"
#include "tests/executor/probe_operations.h"

namespace coppice::executor {
namespace {

using NoteList = std::vector<std::string>;

struct Counter {
  std::atomic<int32_t> value{0};
};

// count_later (chain) -> chain      one more on a shared counter, as a task of the queue; the chain comes then
// count.read (chain) -> i32
// add_range (begin, end) -> chain   the sum of begin .. end-1 on top of the counter
// block (i32) -> i32                a blocking operation: a + 1; notes when it runs on a compute thread
// compute (i32) -> i32              a compute operation: a; notes when it runs on another worker thread than a compute one
// note_thread (i32) -> i32          an inline operation: a; notes when it does not run on a compute thread
void add_thread_probes(Registry& registry) {
  add_probe_operations(registry);
  registry.add("count_later", [](const Chain&, Result<Chain> done, Request& request) {
    Request* const r = &request;
    auto work = [done = done.allocate(), r, keep = share(r)]() mutable {
      ++r->host().shared<Counter>().value;
      done.emplace();
    };
    if (request.queue() == nullptr) return work();
    request.queue()->add(request.source(), 0, Task(MustRun(request, std::move(work))));
  });
  registry.add("count.read",
               [](const Chain&, Request& request) { return request.host().shared<Counter>().value.load(); });
  registry.add("add_range", [](int32_t begin, int32_t end, Request& request) {
    for (int32_t i = begin; i < end; ++i) request.host().shared<Counter>().value += i;
    return Chain();
  });
  registry.add("block",
               [](int32_t a, Request& request) {
                 if (request.queue()->is_compute_thread())
                   request.host().shared<Notes>().add("blocked a compute thread");
                 if (!is_worker_thread()) request.host().shared<Notes>().add("blocked the caller");
                 return a + 1;
               },
               {.run = Run::kBlocking});
  registry.add("compute",
               [](int32_t a, Request& request) {
                 if (!request.queue()->is_compute_thread() && is_worker_thread())
                   request.host().shared<Notes>().add("computed on a blocking thread");
                 return a;
               },
               {.run = Run::kCompute});
  registry.add("note_thread", [](int32_t a, Request& request) {
    if (!request.queue()->is_compute_thread()) request.host().shared<Notes>().add("ran on a foreign thread");
    return a;
  });
}

struct ThreadedProgram : Program {
  ThreadedProgram(std::string_view text, int threads)
      : Program(text, threads > 0 ? WorkQueue::create({.threads = threads}) : nullptr, &add_thread_probes) {}
  // Values that its threads still hold when the results are there are not the next test's leak.
  ~ThreadedProgram() {
    if (WorkQueue* const queue = host->queue()) queue->wait_idle();
  }
  // On the host's thread: what the function returns, when it is there.
  std::vector<RCReference<AsyncValue>> wait_for(
      std::string_view function, std::initializer_list<RCReference<AsyncValue>> arguments = {}) {
    auto results = run(function, arguments);
    for (const auto& result : results) wait(*result);
    return results;
  }
};

// @inner: n counts side by side. @outer: m calls of it. @main: reads the counter when all are done.
std::string counting_program(int n, int m) {
  const auto function = [](const char* name, const char* operation, int count) {
    std::string text = fmt::format("func @{}(%c: chain) -> chain {{\n", name), all;
    for (int i = 0; i < count; ++i) {
      text += fmt::format("  %x{} = {} (%c)\n", i, operation);
      all += fmt::format("{}%x{}", i > 0 ? ", " : "", i);
    }
    return text + fmt::format("  %done = chain.join ({})\n  return %done\n}}\n", all);
  };
  return function("inner", "count_later", n) + function("outer", "call @inner", m) +
         "func @main() -> i32 {\n  %c = chain.new\n  %done = call @outer (%c)\n  %n = count.read (%done)\n  "
         "return %n\n}\n";
}

TEST(ExecutorConformance, N52_AThousandAsynchronousIncrementsThenARead) {
  for (const int threads : {0, 1, 2, 8}) {
    ThreadedProgram p(counting_program(1024, 1), threads);
    EXPECT_EQ(p.wait_for("main")[0]->get<int32_t>(), 1024) << threads << " threads";
  }
}

TEST(ExecutorConformance, N52_NestedIncrementsThenARead) {
  for (const int threads : {0, 1, 2, 8}) {
    ThreadedProgram p(counting_program(32, 32), threads);
    EXPECT_EQ(p.wait_for("main")[0]->get<int32_t>(), 1024) << threads << " threads";
  }
}

TEST(ExecutorConformance, N53_BlockingWorkRunsOnNoComputeThread) {
  ThreadedProgram p(R"(
func @body(%x: i32) -> i32 {
  %y = block (%x)
  %z = compute (%y)
  return %z
}
func @main(%n: i32, %x: i32) -> i32 { %y = repeat @body (%n, %x) return %y }
)",
                    2);
  EXPECT_EQ(p.wait_for("main", {i32(300), i32(0)})[0]->get<int32_t>(), 300);
  EXPECT_EQ(p.notes(), NoteList());
}

constexpr const char* kSums = R"(
func @range(%begin: i32, %end: i32) -> chain { %c = add_range (%begin, %end) return %c }
func @sum(%begin: i32, %end: i32) -> i32 {
  %done = parallel_for @range, 3 (%begin, %end)
  %sum = count.read (%done)
  return %sum
}
func @row(%i: i32, %unused: i32, %n: i32) -> chain {
  %zero = constant.i32 0
  %done = parallel_for @range, 1 (%zero, %n)
  return %done
}
func @nested(%n: i32) -> i32 {
  %zero = constant.i32 0
  %done = parallel_for @row, 1 (%zero, %n, %n)
  %sum = count.read (%done)
  return %sum
}
)";

TEST(ExecutorConformance, N54_AParallelForInFixedBlocksSeesEachIndexOnce) {
  for (const int threads : {0, 1, 2, 8}) {
    ThreadedProgram p(kSums, threads);
    EXPECT_EQ(p.wait_for("sum", {i32(0), i32(10)})[0]->get<int32_t>(), 45);
    EXPECT_EQ(p.wait_for("sum", {i32(1), i32(11)})[0]->get<int32_t>(), 45 + 55);
    EXPECT_EQ(p.wait_for("sum", {i32(5), i32(5)})[0]->get<int32_t>(), 45 + 55) << "an empty range";
    EXPECT_EQ(p.wait_for("sum", {i32(5), i32(-5)})[0]->get<int32_t>(), 45 + 55) << "a negative one";
    EXPECT_EQ(p.wait_for("sum", {i32(INT32_MAX - 2), i32(INT32_MAX)})[0]->is_error(), false)
        << "the last block";
  }
}

TEST(ExecutorConformance, N55_NestedParallelismDoesNotDeadlock) {
  for (const int threads : {0, 1, 2, 8}) {
    ThreadedProgram p(kSums, threads);
    EXPECT_EQ(p.wait_for("nested", {i32(30)})[0]->get<int32_t>(), 30 * (29 * 30 / 2))
        << threads << " threads";
  }
}

// The conformance list's program: operation 0, then its user 2, before 1, which was
// ready at the beginning as 0 was.
TEST(ExecutorConformance, N56_OnOneThreadTheUserOfWhatJustRanComesFirst) {
  ProbedProgram p(R"(
func @main(%x: i32, %y: i32) {
  %one = note.i32 "1" (%x)
  %zero = note.i32 "0" (%y)
  %two = note.i32 "2" (%zero)
  return
})");
  p.run("main", {i32(0), i32(0)});
  EXPECT_EQ(p.notes(), (NoteList{"0 0", "2 0", "1 0"}));
}

TEST(ExecutorConformance, N60_CompletionOnAForeignThreadResumesOnTheQueuesThreads) {
  ThreadedProgram p(R"(
func @main(%x: i32) -> (i32, i32, i32) {
  %y = async_copy.i32 (%x)
  %a = note_thread (%y)
  %yes = less.i32 (%x, %y)
  %b = if @f, @f (%yes, %y)
  %c = repeat @f (%y, %y)
  return %a, %b, %c
}
func @f(%x: i32) -> i32 { %y = note_thread (%x) return %y }
)",
                    2);
  auto other = WorkQueue::create({.threads = 1});
  for (const int32_t kind : {0, 1, 2}) {
    const auto results = p.run("main", {i32(3)});
    Later& later = p.later();
    if (kind == 0) std::thread([&] { later.run_all(); }).join();
    if (kind == 1) other->add(1, 0, [&] { later.run_all(); });
    if (kind == 2) p.host->queue()->add_blocking([&] { later.run_all(); });
    for (const auto& result : results) {
      wait(*result);
      EXPECT_EQ(result->get<int32_t>(), 3);
    }
    EXPECT_EQ(p.notes(), NoteList()) << "completed by a thread, by another queue, by a blocking task: "
                                     << kind;
  }
}

TEST(ExecutorConformance, N60_ADeadlineCancelsTheRequest) {
  ThreadedProgram p(R"(
func @same(%x: i32) -> (i32, bool) { %more = equal.i32 (%x, %x) return %x, %more }
func @main(%yes: bool, %x: i32) -> i32 { %y = while @same (%yes, %x) return %y }
)",
                    1);
  p.request->cancel_at(WorkQueue::Clock::now());
  const auto results = p.wait_for("main", {make_available_async_value<bool>(true), i32(1)});
  EXPECT_EQ(results[0]->error().code(), ErrorCode::kCancelled);
}

TEST(ExecutorConformance, N60_ADeadlineThatIsNotReachedHarmsNobody) {
  const LeakCheck check;
  {
    ThreadedProgram p("func @main(%x: i32) -> i32 { %y = compute (%x) return %y }", 1);
    p.request->cancel_at(WorkQueue::Clock::now() + std::chrono::hours(1));
    EXPECT_EQ(p.wait_for("main", {i32(1)})[0]->get<int32_t>(), 1);
    p.host->queue()->shutdown(WorkQueue::Shutdown::kDrain);
  }
  EXPECT_EQ(check.report(), "");
}

// Compute operations whose results arrive while the queue is dropped: what had not
// started is cancelled, all is over.
TEST(ExecutorConformance, N60_AQueueThatDropsItsTasksEndsWhatRunsWithCancelled) {
  const LeakCheck check;
  for (int round = 0; round < 10; ++round) {
    ThreadedProgram p(R"(
func @body(%x: i32) -> i32 {
  %a = compute (%x)
  %b = compute (%x)
  %c = block (%a)
  %d = add.i32 (%b, %c)
  %e = compute (%d)
  return %d
}
func @main(%n: i32, %x: i32) -> i32 { %y = repeat @body (%n, %x) return %y }
)",
                      2);
    const auto result = p.run("main", {i32(1'000'000'000), i32(0)})[0];
    p.host->queue()->shutdown(WorkQueue::Shutdown::kDrop);
    ASSERT_TRUE(result->is_available());
    ASSERT_TRUE(result->is_error());
    EXPECT_EQ(result->error().code(), ErrorCode::kCancelled);
    EXPECT_EQ(p.request->describe_waiting(), "");
  }
  EXPECT_EQ(check.report(), "");
}

// Blocking operations, one behind the other, on a queue that takes no more: each is refused and
// skipped, and no stack holds them all.
TEST(ExecutorConformance, N60_AChainOfOperationsThatAQueueRefusesNeedsNoStack) {
  constexpr int kLength = 25'000;
  std::string text = "func @main(%x0: i32) -> i32 {\n";
  for (int i = 0; i < kLength; ++i) text += fmt::format("  %x{} = block (%x{})\n", i + 1, i);
  text += fmt::format("  return %x{}\n}}\n", kLength);
  for (const bool has_begun : {false, true}) {
    ThreadedProgram p(text, 1);
    std::latch entered(1), shut(1);
    // A task of the queue that is dropped while it runs finds the queue closed, as the test's thread does.
    p.host->queue()->add_blocking([&] {
      entered.count_down();
      shut.wait();
    });
    entered.wait();
    RCReference<AsyncValue> result;
    if (has_begun) result = p.run("main", {i32(0)})[0];
    std::thread opener([&] {
      while (p.host->queue()->add(1, 0, [] {})) std::this_thread::yield();
      shut.count_down();
    });
    p.host->queue()->shutdown(WorkQueue::Shutdown::kDrop);
    opener.join();
    if (!has_begun) result = p.run("main", {i32(0)})[0];
    ASSERT_TRUE(result->is_available());
    EXPECT_EQ(result->error().code(), ErrorCode::kCancelled);
  }
}

TEST(ExecutorConformance, ManyThreadsExecuteOneModuleAtOnce) {
  const LeakCheck check;
  {
    ThreadedProgram p(R"(
func @step(%x: i32) -> i32 { %a = compute (%x) %b = compute (%x) %y = add.i32 (%a, %b) return %y }
func @main(%n: i32, %x: i32) -> i32 { %y = repeat @step (%n, %x) return %y }
)",
                      2);
    std::vector<std::thread> threads;
    std::atomic<int> right{0};
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) {
          const auto request = p.host->start_request();
          const auto result = execute(p.module->function("main"), {i32(10), i32(t)}, *request)[0];
          wait(*result);
          right += result->get<int32_t>() == 1024 * t;
        }
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(right, 8 * 50);
    p.host->queue()->shutdown(WorkQueue::Shutdown::kDrain);
  }
  EXPECT_EQ(check.report(), "");
}

}  // namespace
}  // namespace coppice::executor
