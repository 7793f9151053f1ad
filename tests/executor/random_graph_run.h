// Running random modules (random_graph.h) with completion in random order on other threads, and comparing
// what comes out with the serial interpreter.
#pragma once
#include <gtest/gtest.h>

#include "core/live_objects.h"
#include "executor/builtin_operations.h"
#include "executor/executor.h"
#include "executor/must_run.h"
#include "executor/planned/instance.h"
#include "executor/text.h"
#include "tests/executor/completer.h"
#include "tests/executor/random_graph.h"
#include "tests/executor/serial_interpreter.h"

namespace coppice::executor {

struct CompleterOfHost {
  Completer* completer = nullptr;
};

// Completes by the completer's threads, and with a queue also by its compute and its blocking threads.
template <class F>
void complete_later(Request& request, uint32_t choice, F work) {
  Task task(MustRun(request, [work = std::move(work), keep = share(&request)]() mutable { work(); }));
  if (request.queue() == nullptr || choice % 4 < 2) {
    request.host().shared<CompleterOfHost>().completer->add(std::move(task));
  } else if (choice % 4 == 2) {
    request.queue()->add(request.source(), choice, std::move(task));
  } else {
    request.queue()->add_blocking(std::move(task));
  }
}

inline void add_random_graph_operations(Registry& registry) {
  using Operands = std::pair<uint32_t, uint32_t>;
  const auto add_async = [&](const char* name, uint32_t (*f)(uint32_t, uint32_t)) {
    registry.add(
        name, [f](Argument<int32_t> a, Argument<int32_t> b, Result<int32_t> result, Request& request) {
          const Operands operands(*a, *b);
          complete_later(request, operands.first ^ operands.second,
                         [f, a = a.value_ref(), b = b.value_ref(), result = result.allocate()]() mutable {
                           result.emplace(static_cast<int32_t>(
                               f(static_cast<uint32_t>(a.get()), static_cast<uint32_t>(b.get()))));
                         });
        });
  };
  add_async("async_add.i32", [](uint32_t a, uint32_t b) { return a + b; });
  add_async("async_sub.i32", [](uint32_t a, uint32_t b) { return a - b; });
  registry.add("async_twice.i32", [](Argument<int32_t> a, Argument<int32_t> b, Result<int32_t> first,
                                     Result<int32_t> second, Request& request) {
    auto sum = first.allocate();
    second.set(sum.value());
    const uint32_t value = static_cast<uint32_t>(*a) + static_cast<uint32_t>(*b);
    complete_later(request, value,
                   [sum = std::move(sum), value]() mutable { sum.emplace(static_cast<int32_t>(value)); });
  });
  registry.add("fail_with.i32", [](Constant<int32_t> number, int32_t) -> int32_t {
    throw Error(ErrorCode::kNumeric, fmt::format("failure {}", number.get()));
  });
  registry.add("async_fail_with.i32", [](Constant<int32_t> number, int32_t a, Result<int32_t> result,
                                         Request& request) {
    complete_later(request, static_cast<uint32_t>(a),
                   [number = number.get(), result = result.allocate()]() mutable {
                     result.set_error(Error(ErrorCode::kNumeric, fmt::format("failure {}", number)));
                   });
  });
  const auto same = [](Argument<int32_t> a, Result<int32_t> result) { result.set(a); };
  registry.add("same.i32", same);
  registry.add("compute.i32", same, {.run = Run::kCompute, .cost = 10});
  registry.add("blocking.i32", same, {.run = Run::kBlocking});
  registry.add("swap.i32", [](Argument<int32_t> a, Argument<int32_t> b, Result<int32_t> first,
                              Result<int32_t> second) { first.set(b), second.set(a); });
  registry.add("sum_and_difference.i32", [](int32_t a, int32_t b) {
    const auto ua = static_cast<uint32_t>(a), ub = static_cast<uint32_t>(b);
    return std::tuple(static_cast<int32_t>(ua + ub), static_cast<int32_t>(ua - ub));
  });
}

// One way of running graphs: a queue or none, and who completes asynchronous values.
class RandomGraphRunner {
 public:
  RandomGraphRunner(int queue_threads, int completer_threads)
      : queue_(queue_threads > 0 ? WorkQueue::create({.threads = queue_threads, .blocking_threads = 4})
                                 : nullptr),
        completer_(completer_threads) {
    add_builtin_operations(registry_);
    add_random_graph_operations(registry_);
  }

  void run(uint64_t seed, size_t operations) {
    SCOPED_TRACE(fmt::format("seed {}, {} operations", seed, operations));
    const LeakCheck check;
    run_graph(seed, operations);
    EXPECT_EQ(check.report(), "");
  }

 private:
  enum class Cancel { kNot, kBefore, kMeanwhile };

  void run_graph(uint64_t seed, size_t operations) {
    std::mt19937_64 random(seed * 2 + 1);
    Module graph = RandomGraph::make(seed, operations);
    const Module copy = graph;
    // Half of them as they were made, half through the text form.
    const auto module = LoadedModule::load(seed % 2 == 0 ? std::move(graph) : parse(print(graph)), registry_);
    const auto host = make_intrusive<Host>(queue_);
    host->shared<CompleterOfHost>().completer = &completer_;
    const auto request = host->start_request();
    std::vector<Outcome> given;
    std::vector<RCReference<AsyncValue>> arguments;
    for (int i = 0; i < 2; ++i) arguments.push_back(make_argument(random, given, *request));
    const uint64_t dice = random() % 20;
    const Cancel cancel = dice == 0 ? Cancel::kBefore : dice == 1 ? Cancel::kMeanwhile : Cancel::kNot;
    if (cancel == Cancel::kBefore) request->cancel();
    const LoadedFunction& main = module->function("main");
    // A third of them run under a plan.
    const auto results = seed % 3 == 0 ? PlannedFunction::create(main)->instance()->run(arguments, *request)
                                       : execute(main, arguments, *request);
    if (cancel == Cancel::kMeanwhile) request->cancel();
    wait_idle();
    const auto expected = SerialInterpreter(copy).run("main", given);
    for (size_t i = 0; i < results.size(); ++i) compare(*results[i], expected[i], cancel, *request);
    EXPECT_EQ(request->describe_waiting(), "");
  }

  RCReference<AsyncValue> make_argument(std::mt19937_64& random, std::vector<Outcome>& given,
                                        Request& request) {
    const auto value = static_cast<int32_t>(random() % 20) - 5;
    const uint64_t kind = random() % 10;
    given.push_back({kind == 0 ? 0 : value, kind == 0 ? "given" : ""});
    if (kind == 0) return make_error_async_value(Error(ErrorCode::kIo, "given"));
    if (kind < 5) return make_available_async_value<int32_t>(value);
    if (kind < 8) {
      const auto later = make_unconstructed_async_value<int32_t>();
      complete_later(request, static_cast<uint32_t>(value), [later, value] { later.emplace(value); });
      return later;
    }
    const auto indirect = make_indirect_async_value();
    complete_later(request, static_cast<uint32_t>(value),
                   [indirect, value] { indirect->forward_to(make_available_async_value<int32_t>(value)); });
    return indirect;
  }

  // Until neither the queue nor the completer has anything to do.
  void wait_idle() {
    uint64_t added = 0;
    do {
      added = completer_.added();
      completer_.wait_idle();
      if (queue_) queue_->wait_idle();
    } while (completer_.added() != added);
  }

  static void compare(const AsyncValue& result, const Outcome& expected, Cancel cancel,
                      const Request& request) {
    ASSERT_TRUE(result.is_available()) << request.describe_waiting();
    if (!result.is_error()) {
      EXPECT_EQ((Outcome{result.get<int32_t>(), ""}), expected);
    } else if (cancel == Cancel::kNot) {
      EXPECT_EQ(result.error().message(), expected.error);
    } else {
      // A cancelled operation may keep another error from coming first.
      EXPECT_TRUE(result.error().code() == ErrorCode::kCancelled || !expected.error.empty())
          << result.error().what();
    }
  }

  Registry registry_;
  const IntrusivePtr<WorkQueue> queue_;
  Completer completer_;
};

inline void PrintTo(const Outcome& outcome, std::ostream* os) {
  *os << (outcome.error.empty() ? fmt::format("{}", outcome.value) : outcome.error);
}

// Graphs of `least` to `most` operations, from `first_seed` on, in turn without a queue (completed here; by
// two other threads) and with queues of 1, 2 and 8 threads.
inline void run_random_graphs(uint64_t first_seed, int count, size_t least, size_t most) {
  RandomGraphRunner here(0, 0), elsewhere(0, 2), one(1, 2), two(2, 2), eight(8, 2);
  RandomGraphRunner* const runners[] = {&here, &elsewhere, &one, &two, &eight};
  for (uint64_t seed = first_seed; seed < first_seed + static_cast<uint64_t>(count); ++seed) {
    runners[seed % std::size(runners)]->run(seed, least + seed * 7919 % (most - least + 1));
    if (testing::Test::HasFailure()) break;  // the first failing seed is printed; others would bury it
  }
}

#ifdef __SANITIZE_THREAD__
inline constexpr int kRandomGraphs = 1000;
#else
inline constexpr int kRandomGraphs = 100'000;
#endif

}  // namespace coppice::executor
