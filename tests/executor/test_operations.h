// Operations for tests: work that is done when the test says so, and counters of what ran and lived.
#pragma once
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "core/error.h"
#include "executor/builtin_operations.h"
#include "executor/executor.h"
#include "executor/text.h"

namespace coppice::executor {

// Work that asynchronous operations have put off. Host::shared<Later>(): run it from the test.
class Later {
 public:
  void add(Task work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  // False when there is none. What it sets off may put off more.
  bool run_one() {
    Task work;
    {
      const std::lock_guard lock(mutex_);
      if (work_.empty()) return false;
      work = std::move(work_.front());
      work_.pop_front();
    }
    work();
    return true;
  }
  void run_all() {
    while (run_one()) {
    }
  }
  size_t size() const { return work_.size(); }

 private:
  std::mutex mutex_;
  std::deque<Task> work_;
};

// The names and numbers that operations noted, in the order in which they ran.
class Notes {
 public:
  void add(std::string note) {
    const std::lock_guard lock(mutex_);
    notes_.push_back(std::move(note));
  }
  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(notes_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> notes_;
};

// async_add.i32 (a, b)   a + b, later            async_fail.i32 (a)   an error, later
// fail.i32 (a)           an error at once        note.i32 "name" (a) -> a, notes name and value when it runs
// refs.i32 (a) -> i32    the number of references to a while the operation runs
inline void add_test_operations(Registry& registry) {
  registry.add("async_add.i32", [](Argument<int32_t> a, Argument<int32_t> b, Result<int32_t> sum,
                                   Request& request) {
    request.host().shared<Later>().add([a = a.value_ref(), b = b.value_ref(),
                                        sum = sum.allocate()]() mutable { sum.emplace(a.get() + b.get()); });
  });
  registry.add("async_fail.i32", [](Argument<int32_t>, Result<int32_t> result, Request& request) {
    request.host().shared<Later>().add([result = result.allocate()]() mutable {
      result.set_error(Error(ErrorCode::kNumeric, "failed later"));
    });
  });
  registry.add("fail.i32", [](int32_t) -> int32_t { throw Error(ErrorCode::kNumeric, "failed"); });
  registry.add("note.i32", [](Constant<std::string_view> name, Argument<int32_t> value, Result<int32_t> same,
                              Request& request) {
    request.host().shared<Notes>().add(std::string(name.get()) + " " + std::to_string(*value));
    same.set(value);
  });
  registry.add("refs.i32", [](Argument<int32_t> value) {
    return static_cast<int32_t>(value.value_ref().release_rc_reference().use_count()) - 1;
  });
}

// A module loaded with all operations, and a host without threads to run it on.
struct Program {
  explicit Program(std::string_view text, IntrusivePtr<WorkQueue> queue = nullptr,
                   void (*add_more)(Registry&) = nullptr)
      : host(make_intrusive<Host>(std::move(queue))), request(host->start_request()) {
    add_builtin_operations(registry);
    add_test_operations(registry);
    if (add_more != nullptr) add_more(registry);
    module = LoadedModule::load(parse(text, "test.graph"), registry);
  }
  std::vector<RCReference<AsyncValue>> run(std::string_view function,
                                           std::initializer_list<RCReference<AsyncValue>> arguments = {}) {
    return execute(module->function(function), arguments, *request);
  }
  Later& later() { return host->shared<Later>(); }
  std::vector<std::string> notes() { return host->shared<Notes>().take(); }

  Registry registry;
  IntrusivePtr<Host> host;
  IntrusivePtr<Request> request;
  IntrusivePtr<LoadedModule> module;
};

inline RCReference<AsyncValue> i32(int32_t value) { return make_available_async_value<int32_t>(value); }

}  // namespace coppice::executor
