// Operations on values of type `bytes`, whole i32 items, in each of the ways in which a planned function
// can run one: for tests of planned functions.
#pragma once
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "executor/planned/instance.h"
#include "tests/executor/test_operations.h"

namespace coppice::executor {

using Items = std::span<const int32_t>;
using HostList = std::vector<HostBytes>;

inline int32_t wrapping(int32_t a, int32_t b, int32_t c = 0) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) * 3u + static_cast<uint32_t>(b) * 5u +
                              static_cast<uint32_t>(c));
}

// Values kept by an operation that was only lent them.
class KeptBytes {
 public:
  void add(AsyncValueRef<HostBytes> value) {
    const std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
  }
  std::vector<AsyncValueRef<HostBytes>> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(values_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<AsyncValueRef<HostBytes>> values_;
};

// Copies of values, which an operation that sees them may keep.
class NotedBytes {
 public:
  void add(HostBytes copy) {
    const std::lock_guard lock(mutex_);
    copies_.push_back(std::move(copy));
  }
  std::vector<HostBytes> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(copies_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<HostBytes> copies_;
};
// Returns the copies of all tests. An operation that took a Request to find its own would be no native one.
inline NotedBytes& noted_bytes() {
  static NotedBytes all;
  return all;
}

//   out variants   iota (n, seed), mix (a, b), shift c (a), both (a, b): mix and shift in the place of a
//   native         half (a): a view; sum (a); note (a): its sum, and something keeps a copy;
//                  pair (a, b): two views; first (list)
//   fallback       keep (a): a itself, and something keeps it; later (a): a copy that comes later;
//                  blocking (a): on a thread that may block
//   may fail       fail_odd (a): an out variant that throws where a has an odd number of items
inline Registry bytes_registry() {
  Registry registry;
  add_builtin_operations(registry);
  registry.add_type<HostList>("list");
  registry.add_out_variant("iota", [](int32_t n, int32_t seed, OutBytes out) {
    const std::span<int32_t> to = out.resize<int32_t>(static_cast<size_t>(n));
    for (size_t i = 0; i < to.size(); ++i) to[i] = wrapping(static_cast<int32_t>(i), seed);
  });
  const auto mix = [](const HostBytes& a, const HostBytes& b, OutBytes out) {
    const Items x = a.as<int32_t>(), y = b.as<int32_t>();
    const std::span<int32_t> to = out.resize<int32_t>(std::min(x.size(), y.size()));
    // The second argument is read backwards, so that it must not lie where the result is written.
    for (size_t i = 0; i < to.size(); ++i) to[i] = wrapping(x[i], y[y.size() - 1 - i]);
  };
  registry.add_out_variant("mix", mix, {}, 0);
  registry.add_out_variant(
      "shift",
      [](const HostBytes& a, Constant<int32_t> by, OutBytes out) {
        const Items x = a.as<int32_t>();
        const std::span<int32_t> to = out.resize<int32_t>(x.size());
        for (size_t i = 0; i < to.size(); ++i) to[i] = wrapping(x[i], by);
      },
      {}, 0);
  registry.add_out_variant("both", [](const HostBytes& a, const HostBytes& b, OutBytes out) {
    const Items x = a.as<int32_t>(), y = b.as<int32_t>();
    const size_t n = std::min<size_t>(x.size() + y.size(), 300);
    const std::span<int32_t> to = out.resize<int32_t>(n);
    for (size_t i = 0; i < n; ++i) to[i] = i < x.size() ? x[i] : y[i - x.size()];
  });
  registry.add_out_variant("fail_odd", [](const HostBytes& a, OutBytes out) {
    const Items x = a.as<int32_t>();
    const std::span<int32_t> to = out.resize<int32_t>(x.size());
    if (x.size() % 2 == 1) throw Error(ErrorCode::kNumeric, "an odd number of items");
    std::copy(x.begin(), x.end(), to.begin());
  });
  registry.add("half", [](const HostBytes& a) { return a.view(0, a.size_bytes() / 8 * 4); });
  const auto sum_of = [](const HostBytes& a) {
    int32_t sum = 0;
    for (const int32_t x : a.as<int32_t>()) sum = wrapping(sum, x);
    return sum;
  };
  registry.add("sum", sum_of);
  registry.add("note", [sum_of](const HostBytes& a) {
    noted_bytes().add(a);
    return sum_of(a);
  });
  registry.add("pair", [](const HostBytes& a, const HostBytes& b) {
    HostList list;
    list.push_back(a.view(0, a.size_bytes()));
    list.push_back(b.view(0, b.size_bytes()));
    return list;
  });
  registry.add("first", [](const HostList& list) { return list[0].view(0, list[0].size_bytes()); });
  registry.add("keep", [](Argument<HostBytes> a, Result<HostBytes> out, Request& request) {
    request.host().shared<KeptBytes>().add(a.value_ref());
    out.set(a);
  });
  registry.add("later", [](Argument<HostBytes> a, Result<HostBytes> out, Request& request) {
    Task work([a = a.value_ref(), out = out.allocate()]() mutable { out.emplace(a.get().copy_out()); });
    if (request.queue() != nullptr) {
      request.queue()->add(request.source(), 0, std::move(work));
    } else {
      request.host().shared<Later>().add(std::move(work));
    }
  });
  registry.add("blocking", [](const HostBytes& a) { return a.copy_out(); }, {.run = Run::kBlocking});
  registry.add("is_even", [](int32_t a) { return a % 2 == 0; });
  registry.add("to_size", [](int32_t a) { return static_cast<int32_t>(static_cast<uint32_t>(a) % 97u); });
  registry.add("is_positive", [](int32_t a) { return a > 0; });
  return registry;
}

inline std::vector<int32_t> items_of(const HostBytes& bytes) {
  const Items items = bytes.as<int32_t>();
  return {items.begin(), items.end()};
}
inline std::vector<int32_t> items_of(AsyncValue& value) { return items_of(value.get<HostBytes>()); }
inline std::vector<std::vector<int32_t>> items_of(const std::vector<HostBytes>& all) {
  std::vector<std::vector<int32_t>> items;
  for (const HostBytes& bytes : all) items.push_back(items_of(bytes));
  return items;
}

// A function of a module's text, planned, with an instance and a request.
struct PlannedProgram {
  explicit PlannedProgram(const std::string& text, PlanOptions options = {},
                          IntrusivePtr<WorkQueue> queue = nullptr)
      : module(LoadedModule::load(parse(text), bytes_registry())),
        host(make_intrusive<Host>(std::move(queue))),
        request(host->start_request()),
        plan(PlannedFunction::create(module->function("main"), options)),
        instance(plan->instance()) {}

  std::vector<RCReference<AsyncValue>> run(std::initializer_list<RCReference<AsyncValue>> arguments) {
    return instance->run(arguments, *request);
  }
  std::vector<RCReference<AsyncValue>> run_executor(
      std::initializer_list<RCReference<AsyncValue>> arguments) {
    return execute(module->function("main"), arguments, *request);
  }
  Later& later() { return host->shared<Later>(); }

  IntrusivePtr<LoadedModule> module;
  IntrusivePtr<Host> host;
  IntrusivePtr<Request> request;
  IntrusivePtr<const PlannedFunction> plan;
  IntrusivePtr<Instance> instance;
};

inline RCReference<AsyncValue> number(int32_t value) {
  return make_available_async_value<int32_t>(value).release_rc_reference();
}

}  // namespace coppice::executor
