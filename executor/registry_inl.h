// Templates of executor/registry.h: a C++ function's type read as an operation's
// signature. Include that header instead.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "core/check.h"
#include "executor/registry.h"
#include "executor/signature.h"
#include "executor/value_list.h"

namespace coppice::executor {
namespace detail {

template <bool kInPlace, class F, class R, class... P>
void run_function(const F& function, OperationCall& call, std::type_identity<std::tuple<P...>>) {
  // Results that are returned come first, so that Result parameters start behind them. Braces evaluate
  // from left to right.
  Cursor at{.result = kNumReturned<R>};
  std::tuple<decltype(Parameter<P>::get(call, at))...> parameters{Parameter<P>::get(call, at)...};
  if constexpr (std::is_void_v<R>) {
    std::apply(function, std::move(parameters));
  } else {
    R value = std::apply(function, std::move(parameters));
    Cursor first;
    if constexpr (kInPlace) {
      Returned<R>::store_in_place(call, first, std::move(value));
    } else {
      Returned<R>::store(call, first, std::move(value));
    }
  }
}

// Runs an out variant where nothing is planned: each result gets memory of its own.
template <class F, class R, class... P>
void run_out_variant_unplanned(const F& function, OperationCall& call,
                               std::type_identity<std::tuple<P...>> parameters) {
  std::vector<AsyncValueRef<HostBytes>> made;
  ValueList values(call.results().size());
  for (AsyncValue*& value : values.span()) {
    made.push_back(make_available_async_value<HostBytes>());
    value = made.back().get_async_value();
  }
  OperationCall there(call, values.span());
  run_function<false, F, R>(function, there, parameters);
  for (size_t i = 0; i < made.size(); ++i) call.results()[i] = made[i].release_rc_reference().release();
}

template <class F>
Implementation native(std::shared_ptr<const void> function) {
  using Type = FunctionType<F>;
  Implementation made{.run = nullptr, .function = std::move(function)};
  made.run = [](const void* f, OperationCall& call) {
    run_function<true, F, typename Type::Return>(*static_cast<const F*>(f), call,
                                                 std::type_identity<typename Type::Parameters>());
  };
  return made;
}

template <class R, class... P>
void describe_function(OperationInfo& info, const Registry& registry, std::type_identity<std::tuple<P...>>) {
  Returned<R>::describe(info, registry);
  (Parameter<P>::describe(info, registry), ...);
}

}  // namespace detail

template <class F>
void Registry::add(std::string_view name, F function, OperationTraits traits, InferTypes infer) {
  using Type = detail::FunctionType<F>;
  using Parameters = std::type_identity<typename Type::Parameters>;
  OperationInfo info{.name = std::string(name), .traits = traits};
  detail::describe_function<typename Type::Return>(info, *this, Parameters());
  info.infer = std::move(infer);
  info.function = std::make_shared<const F>(std::move(function));
  info.run = [](const void* f, OperationCall& call) {
    detail::run_function<false, F, typename Type::Return>(*static_cast<const F*>(f), call, Parameters());
  };
  if constexpr (detail::is_native<typename Type::Return>(Parameters())) {
    if (traits.run != Run::kBlocking && !traits.non_strict && !info.infer)
      info.natives.push_back(detail::native<F>(info.function));
  }
  add(std::move(info));
}

template <class F>
void Registry::add_out_variant(std::string_view name, F function,
                               std::function<bool(const OperationUse&)> matches, int in_place) {
  using Type = detail::FunctionType<F>;
  using Parameters = std::type_identity<typename Type::Parameters>;
  using Return = typename Type::Return;
  static_assert(std::is_void_v<Return>, "an out variant writes its results");
  static_assert(detail::is_out_variant(Parameters()),
                "an out variant takes plain values, constants, named things, OutBytes and Request&");
  OperationInfo info{.name = std::string(name)};
  detail::describe_function<Return>(info, *this, Parameters());
  for (const std::string& type : info.result_types)
    COPPICE_CHECK(type == "bytes", "results of the out variant of {} are OutBytes", name);
  info.function = std::make_shared<const F>(std::move(function));
  info.run = [](const void* f, OperationCall& call) {
    detail::run_out_variant_unplanned<F, Return>(*static_cast<const F*>(f), call, Parameters());
  };
  Implementation out{.function = info.function, .matches = std::move(matches), .in_place = in_place};
  out.run = [](const void* f, OperationCall& call) {
    detail::run_function<false, F, Return>(*static_cast<const F*>(f), call, Parameters());
  };
  out.run_unplanned = info.run;
  if (find(name) == nullptr) {
    info.is_made_of_variants = true;
    add(info);
  }
  add(name, std::move(out), info, true);
}

template <class F>
void Registry::add_native(std::string_view name, F function,
                          std::function<bool(const OperationUse&)> matches) {
  using Type = detail::FunctionType<F>;
  using Parameters = std::type_identity<typename Type::Parameters>;
  static_assert(detail::is_native<typename Type::Return>(Parameters()),
                "a native function takes plain values and constants, and returns plain values");
  OperationInfo info{.name = std::string(name)};
  detail::describe_function<typename Type::Return>(info, *this, Parameters());
  Implementation native = detail::native<F>(std::make_shared<const F>(std::move(function)));
  native.matches = std::move(matches);
  add(name, std::move(native), info, false);
}

}  // namespace coppice::executor
