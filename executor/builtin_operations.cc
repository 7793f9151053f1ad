// The operations that every registry has.
#include "executor/builtin_operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <type_traits>

#include "core/error.h"
#include "executor/control_flow.h"

namespace coppice::executor {
namespace {

// Two's complement, as the hardware does it: overflow of signed integers is undefined in C++.
template <class T, class F>
T wrap(T a, T b, F f) {
  if constexpr (std::integral<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(f(static_cast<U>(a), static_cast<U>(b)));
  } else {
    return f(a, b);
  }
}

template <class T>
T divide(T a, T b) {
  if constexpr (std::integral<T>) {
    if (b == 0) throw Error(ErrorCode::kNumeric, fmt::format("{} divided by zero", a));
    if (b == -1) return wrap(T{0}, a, std::minus<>());
  }
  return a / b;
}

template <class T>
void add_arithmetic(Registry& registry, const char* type) {
  const auto name = [&](const char* operation) { return fmt::format("{}.{}", operation, type); };
  registry.add(name("constant"), [](Constant<T> value) { return value.get(); });
  registry.add(name("add"), [](T a, T b) { return wrap(a, b, std::plus<>()); });
  registry.add(name("sub"), [](T a, T b) { return wrap(a, b, std::minus<>()); });
  registry.add(name("mul"), [](T a, T b) { return wrap(a, b, std::multiplies<>()); });
  registry.add(name("div"), &divide<T>);
  registry.add(name("min"), [](T a, T b) { return std::min(a, b); });
  registry.add(name("max"), [](T a, T b) { return std::max(a, b); });
  registry.add(name("less"), [](T a, T b) { return a < b; });
  registry.add(name("equal"), [](T a, T b) { return a == b; });
}

std::vector<std::string> types_of_join(const OperationUse& use) {
  for (size_t i = 0; i < use.argument_types.size(); ++i) {
    if (use.argument_types[i] != "chain") {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("argument {} must be chain, and is {}", i + 1, use.argument_types[i]));
    }
  }
  return {"chain"};
}

void join_chains(RemainingArguments, RemainingResults results) {
  results[0] = make_available_async_value<Chain>().release_rc_reference().release();
}

StreamEvent join_events(After first, MoreEvents more) {
  std::vector<AsyncValueRef<Chain>> all{first.done()};
  for (size_t i = 0; i < more.size(); ++i) all.push_back(more.done(i));
  return {when_all(std::span<const AsyncValueRef<Chain>>(all))};
}

}  // namespace

void add_builtin_operations(Registry& registry) {
  add_arithmetic<int32_t>(registry, "i32");
  add_arithmetic<int64_t>(registry, "i64");
  add_arithmetic<float>(registry, "f32");
  add_arithmetic<double>(registry, "f64");
  registry.add("constant.bool", [](Constant<bool> value) { return value.get(); });
  registry.add("constant.string", [](Constant<std::string_view> value) { return std::string(value.get()); });
  registry.add("not", [](bool a) { return !a; });
  registry.add("and", [](bool a, bool b) { return a && b; });
  registry.add("or", [](bool a, bool b) { return a || b; });
  registry.add("chain.new", [] { return Chain(); });
  registry.add("chain.join", &join_chains, {}, &types_of_join);
  // The event has an available value, so that what is queued behind it starts at once.
  registry.add("stream.start", [](const Chain&) { return StreamEvent{make_available_async_value<Chain>()}; });
  // The event's own async value: those who need it available wait for the device, without blocking.
  registry.add("stream.done", [](After event) { return event.done(); });
  registry.add("stream.join", &join_events);
  add_control_flow_operations(registry);
}

}  // namespace coppice::executor
