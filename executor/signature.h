// Each kind of parameter and return value of a C++ function, as part of an operation's signature and of a
// call. Registry::add() (registry.h) reads functions' types by it.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "executor/host_bytes.h"
#include "executor/operation_info.h"

namespace coppice::executor {
namespace detail {

template <class T>
struct FunctionType : FunctionType<decltype(&T::operator())> {};
template <class R, class... P>
struct FunctionType<R (*)(P...)> {
  using Return = R;
  using Parameters = std::tuple<P...>;
};
template <class C, class R, class... P>
struct FunctionType<R (C::*)(P...) const> : FunctionType<R (*)(P...)> {};

// This counts parameters: the next one of each kind is found at its index.
struct Cursor {
  size_t argument = 0, result = 0, attribute = 0;
};

// One parameter's kind: what it adds to the signature, and how it is fetched for a call. The primary template
// is a plain value of an argument.
template <class P>
struct Parameter {
  using T = std::remove_cvref_t<P>;
  static constexpr Needs kNeeds = Needs::kAvailable;
  static void describe(OperationInfo& info, const Registry& registry) {
    info.argument_types.emplace_back(registered_name(registry, typeid(T)));
    info.needs.push_back(kNeeds);
  }
  static T& get(OperationCall& call, Cursor& at) { return call.argument(at.argument++)->template get<T>(); }
};
template <class T>
struct Parameter<Argument<T>> {
  static void describe(OperationInfo& info, const Registry& registry) {
    Parameter<T>::describe(info, registry);
  }
  static Argument<T> get(OperationCall& call, Cursor& at) {
    return Argument<T>(call.argument(at.argument++));
  }
};
// An out variant's result: a HostBytes that is there before the call.
template <>
struct Parameter<OutBytes> {
  static void describe(OperationInfo& info, const Registry&) { info.result_types.emplace_back("bytes"); }
  static OutBytes get(OperationCall& call, Cursor& at) {
    return {call.results()[at.result++]->get<HostBytes>(), call.request().host().memory()};
  }
};
template <>
struct Parameter<After> {
  static void describe(OperationInfo& info, const Registry&) {
    info.argument_types.emplace_back("event");
    info.needs.push_back(Needs::kEnqueued);
  }
  static After get(OperationCall& call, Cursor& at) { return After(call.argument(at.argument++)); }
};
template <class T>
struct Parameter<Result<T>> {
  static void describe(OperationInfo& info, const Registry& registry) {
    info.result_types.emplace_back(registered_name(registry, typeid(T)));
  }
  static Result<T> get(OperationCall& call, Cursor& at) { return Result<T>(&call.results()[at.result++]); }
};
template <class T>
struct Parameter<Constant<T>> {
  using Stored = std::conditional_t<
      std::is_same_v<T, bool>, bool,
      std::conditional_t<std::is_integral_v<T>, int64_t,
                         std::conditional_t<std::is_floating_point_v<T>, double, std::string>>>;
  static_assert(std::is_same_v<T, bool> || std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t> ||
                    std::is_floating_point_v<T> || std::is_same_v<T, std::string_view>,
                "no attribute has this type");
  static constexpr AttributeKind kKind = std::is_same_v<T, bool>       ? AttributeKind::kBool
                                         : std::is_same_v<T, int32_t>  ? AttributeKind::kInt32
                                         : std::is_same_v<T, int64_t>  ? AttributeKind::kInt64
                                         : std::is_same_v<T, float>    ? AttributeKind::kReal32
                                         : std::is_floating_point_v<T> ? AttributeKind::kReal
                                                                       : AttributeKind::kString;
  static void describe(OperationInfo& info, const Registry&) { info.attributes.push_back({kKind}); }
  // The loader has checked that the value fits.
  static Constant<T> get(OperationCall& call, Cursor& at) {
    return Constant<T>(static_cast<T>(std::get<Stored>(*call.attribute(at.attribute++).value)));
  }
};
template <class T>
struct Parameter<Constant<std::span<const T>>> {
  static_assert(std::is_same_v<T, int64_t> || std::is_same_v<T, double> || std::is_same_v<T, std::string>,
                "no list has items of this type");
  static constexpr AttributeKind kKind = std::is_same_v<T, int64_t>  ? AttributeKind::kIntegers
                                         : std::is_same_v<T, double> ? AttributeKind::kReals
                                                                     : AttributeKind::kStrings;
  static void describe(OperationInfo& info, const Registry&) { info.attributes.push_back({kKind}); }
  // An empty list is one of integers, whatever the operation takes.
  static Constant<std::span<const T>> get(OperationCall& call, Cursor& at) {
    const auto* items = std::get_if<std::vector<T>>(call.attribute(at.attribute++).value);
    return Constant<std::span<const T>>(items != nullptr ? *items : std::span<const T>());
  }
};
template <>
struct Parameter<Constant<LoadedFunction>> {
  static void describe(OperationInfo& info, const Registry&) {
    info.attributes.push_back({AttributeKind::kFunction});
  }
  static Constant<LoadedFunction> get(OperationCall& call, Cursor& at) {
    return Constant<LoadedFunction>(call.attribute(at.attribute++).function);
  }
};
template <class T>
struct Parameter<Named<T>> {
  static void describe(OperationInfo& info, const Registry& registry) {
    info.attributes.push_back({AttributeKind::kBinding, std::string(registered_name(registry, typeid(T)))});
  }
  // The loader has checked its type.
  static Named<T> get(OperationCall& call, Cursor& at) {
    return Named<T>(call.attribute(at.attribute++).binding->template get<T>());
  }
};
template <>
struct Parameter<MoreEvents> {
  static void describe(OperationInfo& info, const Registry&) {
    info.more_arguments = true, info.more_needs = Needs::kEnqueued, info.more_type = "event";
  }
  static MoreEvents get(OperationCall& call, Cursor& at) { return {call, at.argument}; }
};
template <>
struct Parameter<RemainingArguments> {
  static void describe(OperationInfo& info, const Registry&) { info.more_arguments = true; }
  static RemainingArguments get(OperationCall& call, Cursor& at) { return {call, at.argument}; }
};
template <>
struct Parameter<RemainingResults> {
  static void describe(OperationInfo& info, const Registry&) { info.more_results = true; }
  static RemainingResults get(OperationCall& call, Cursor& at) { return call.results().subspan(at.result); }
};
template <>
struct Parameter<RemainingAttributes> {
  static void describe(OperationInfo& info, const Registry&) { info.more_attributes = true; }
  static RemainingAttributes get(OperationCall& call, Cursor& at) {
    return call.attributes().subspan(at.attribute);
  }
};
template <>
struct Parameter<Request&> {
  static void describe(OperationInfo&, const Registry&) {}
  static Request& get(OperationCall& call, Cursor&) { return call.request(); }
};
template <>
struct Parameter<OperationCall&> {
  static void describe(OperationInfo&, const Registry&) {}
  static OperationCall& get(OperationCall& call, Cursor&) { return call; }
};

// Parameters that are read at the call and kept by nobody.
template <class P>
inline constexpr bool kIsPlainParameter =
    !std::is_lvalue_reference_v<P> || std::is_const_v<std::remove_reference_t<P>>;
template <class T>
inline constexpr bool kIsPlainParameter<Argument<T>> = false;
template <class T>
inline constexpr bool kIsPlainParameter<Result<T>> = false;
template <>
inline constexpr bool kIsPlainParameter<After> = false;
template <>
inline constexpr bool kIsPlainParameter<MoreEvents> = false;
template <>
inline constexpr bool kIsPlainParameter<RemainingArguments> = false;
template <>
inline constexpr bool kIsPlainParameter<RemainingResults> = false;
template <>
inline constexpr bool kIsPlainParameter<RemainingAttributes> = false;
template <>
inline constexpr bool kIsPlainParameter<Constant<LoadedFunction>> = false;
template <>
inline constexpr bool kIsPlainParameter<OutBytes> = false;
template <class R>
inline constexpr bool kIsPlainReturn = true;
template <class T>
inline constexpr bool kIsPlainReturn<AsyncValueRef<T>> = false;
template <>
inline constexpr bool kIsPlainReturn<StreamEvent> = false;
template <class... R>
inline constexpr bool kIsPlainReturn<std::tuple<R...>> = (kIsPlainReturn<R> && ...);

template <class R, class... P>
constexpr bool is_native(std::type_identity<std::tuple<P...>>) {
  return kIsPlainReturn<R> && (kIsPlainParameter<P> && ...);
}

template <class... P>
constexpr bool is_out_variant(std::type_identity<std::tuple<P...>>) {
  return ((kIsPlainParameter<P> || std::is_same_v<P, OutBytes> || std::is_same_v<P, Request&>)&&...);
}

// Describes and stores a function's return value as results.
template <class R>
struct Returned {
  static void describe(OperationInfo& info, const Registry& registry) {
    info.result_types.emplace_back(registered_name(registry, typeid(R)));
  }
  static void store(OperationCall& call, Cursor& at, R&& value) {
    call.results()[at.result++] =
        make_available_async_value<R>(std::move(value)).release_rc_reference().release();
  }
  // Writes into the value that is there, and makes one where there is none.
  static void store_in_place(OperationCall& call, Cursor& at, R&& value) {
    if constexpr (std::is_trivially_copyable_v<R>) {
      if (AsyncValue* const there = call.results()[at.result]; there != nullptr) {
        there->get<R>() = value;
        ++at.result;
        return;
      }
    }
    store(call, at, std::move(value));
  }
};
template <class T>
struct Returned<AsyncValueRef<T>> {
  static void describe(OperationInfo& info, const Registry& registry) {
    info.result_types.emplace_back(registered_name(registry, typeid(T)));
  }
  static void store(OperationCall& call, Cursor& at, AsyncValueRef<T>&& value) {
    call.results()[at.result++] = value.release_rc_reference().release();
  }
};
template <>
struct Returned<StreamEvent> {
  static void describe(OperationInfo& info, const Registry&) { info.result_types.emplace_back("event"); }
  static void store(OperationCall& call, Cursor& at, StreamEvent&& event) {
    call.results()[at.result++] = event.done.release_rc_reference().release();
  }
};
template <class... R>
struct Returned<std::tuple<R...>> {
  static void describe(OperationInfo& info, const Registry& registry) {
    (Returned<R>::describe(info, registry), ...);
  }
  static void store(OperationCall& call, Cursor& at, std::tuple<R...>&& values) {
    std::apply([&](R&... value) { (Returned<R>::store(call, at, std::move(value)), ...); }, values);
  }
  static void store_in_place(OperationCall& call, Cursor& at, std::tuple<R...>&& values) {
    std::apply([&](R&... value) { (Returned<R>::store_in_place(call, at, std::move(value)), ...); }, values);
  }
};
template <>
struct Returned<void> {
  static void describe(OperationInfo&, const Registry&) {}
};

template <class R>
inline constexpr size_t kNumReturned = 1;
template <>
inline constexpr size_t kNumReturned<void> = 0;
template <class... R>
inline constexpr size_t kNumReturned<std::tuple<R...>> = sizeof...(R);

}  // namespace detail
}  // namespace coppice::executor
