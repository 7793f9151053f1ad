// Makes a LaunchRequest of a kernel, a loop and arguments, and checks the arguments' types.
#pragma once
#include <concepts>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "sparse/launch_request.h"

namespace coppice::detail {

template <class T>
struct PlaceTraits {
  static constexpr bool kIsPlace = false;
};
template <int D>
struct PlaceTraits<Cell<D>> {
  static constexpr bool kIsPlace = true;
  static constexpr auto kItem = LaunchRequest::LoopItem::kCell;
  static constexpr int kDims = D;
};
template <int D>
struct PlaceTraits<Block<D>> {
  static constexpr bool kIsPlace = true;
  static constexpr auto kItem = LaunchRequest::LoopItem::kBlock;
  static constexpr int kDims = D;
};
template <int D, uint32_t kBytes>
struct PlaceTraits<BlockTeam<D, kBytes>> {
  static constexpr bool kIsPlace = true;
  static constexpr auto kItem = LaunchRequest::LoopItem::kBlockTeam;
  static constexpr int kDims = D;
  static constexpr uint32_t kFastBytes = kBytes;
};
template <int D>
struct PlaceTraits<Entry<D>> {
  static constexpr bool kIsPlace = true;
  static constexpr auto kItem = LaunchRequest::LoopItem::kEntry;
  static constexpr int kDims = D;
};
template <>
struct PlaceTraits<Item> {
  static constexpr bool kIsPlace = true;
  static constexpr auto kItem = LaunchRequest::LoopItem::kItem;
  static constexpr int kDims = 0;
};
template <int D>
struct PlaceTraits<GridItem<D>> {
  static constexpr bool kIsPlace = true;
  static constexpr auto kItem = LaunchRequest::LoopItem::kItem;
  static constexpr int kDims = D;
};
template <>
struct PlaceTraits<Team> {
  static constexpr bool kIsPlace = true;
  static constexpr auto kItem = LaunchRequest::LoopItem::kTeam;
  static constexpr int kDims = 0;
};

// Converts as in a call; a struct of one handle is made from its field, too. No other struct is made from
// its first member.
template <class Parameter, class Argument>
concept LaunchArgument = std::is_convertible_v<const Argument&, Parameter> ||
    (device::is_handle_argument<Parameter>&& requires(const Argument& argument) { Parameter{argument}; });

template <class Parameter, class Given>
constexpr bool may_be_given() {
  if constexpr (is_slot<Given>)
    return std::is_same_v<Given, Slot<Parameter>> && !device::is_handle_argument<Parameter>;
  else
    return LaunchArgument<Parameter, Given>;
}
// Compilers name this where a launch does not compile: the argument's number in the launch, from 1, what is
// given there and what the kernel takes. A slot has the very type of the kernel's parameter, no handle's.
template <size_t kNumber, class Given, class Parameter>
struct WrongLaunchArgument {
  static constexpr bool kIsBuffer = std::is_same_v<Given, IntrusivePtr<Buffer>>;
  static constexpr bool kIsNode = std::is_same_v<Given, Node>;
  static constexpr bool kIsOnHost =
      !kIsBuffer && (device::is_view<Parameter> || std::is_pointer_v<Parameter>)&&requires(const Given& g) {
    g.data(), g.size();
  };
  static_assert(!kIsBuffer,
                "a launch argument does not convert to the kernel's parameter: a View takes *buffer, a "
                "pointer buffer->as<T>()");
  static_assert(!kIsNode,
                "a launch argument does not convert to the kernel's parameter: a Topology takes "
                "node.topology(), other handles a field");
  static_assert(!kIsOnHost,
                "a launch argument does not convert to the kernel's parameter: kernels do not reach the "
                "host's memory; copy it into a buffer (Device::reserve(), wait_copy()) and give *buffer");
  static_assert(kIsBuffer || kIsNode || kIsOnHost,
                "a launch argument does not convert to the kernel's parameter");
};
template <size_t kNumber, class Given, class Parameter>
constexpr bool check_argument() {
  constexpr bool kIsRight = may_be_given<Parameter, Given>();
  if constexpr (!kIsRight) (void)sizeof(WrongLaunchArgument<kNumber, Given, Parameter>);
  return kIsRight;
}
// Checks all arguments; `All` has the parameters that a launch gives, in order.
template <class All, class... Given, size_t... I>
constexpr bool check_arguments(std::index_sequence<I...>) {
  return (check_argument<I + 1, Given, typename std::tuple_element_t<I, All>::type>() & ... & true);
}
template <class Parameter>
using GivenParameter = std::conditional_t<PlaceTraits<Parameter>::kIsPlace, std::tuple<>,
                                          std::tuple<std::type_identity<Parameter>>>;

// Notes where an argument leads to memory, and where it may.
template <class Parameter>
void add_pointer(LaunchRequest& request, uint32_t at) {
  const auto add = [&]<class T>(std::type_identity<T>) {
    request.pointers[request.num_pointers++] = {request.num_arguments, at, std::is_const_v<T>};
    request.has_hidden_pointers |= !std::is_arithmetic_v<T> && !std::is_enum_v<T>;  // in that memory
  };
  if constexpr (std::is_pointer_v<Parameter>)
    add(std::type_identity<std::remove_pointer_t<Parameter>>{});
  else if constexpr (device::is_view<Parameter>)
    add(std::type_identity<std::remove_pointer_t<decltype(Parameter::items)>>{});
  else
    request.has_hidden_pointers |= !std::is_arithmetic_v<Parameter> && !std::is_enum_v<Parameter>;
}

// Leaves room for an argument whose value a slot has.
template <class Parameter>
void add_slot(LaunchRequest& request, size_t& at, const Slot<Parameter>& slot) {
  ++request.num_arguments;
  request.has_hidden_pointers |= !std::is_arithmetic_v<Parameter> && !std::is_enum_v<Parameter>;
  if (request.num_plain < kMostSlotted) request.slot_mask |= 1u << request.num_plain;
  ++request.num_plain;
  request.slots.push_back({request.num_arguments, share(&slot.storage())});
  at = device::align_up(at, alignof(Parameter));
  std::memset(request.arguments + at, 0, sizeof(Parameter));
  at += sizeof(Parameter);
}

// Puts one argument into the request: the parameter's type decides, the argument is converted to it. A buffer
// lives as long as the launch, whoever else lets go of it.
template <class Parameter, class Argument>
void add_argument(LaunchRequest& request, size_t& at, const Argument& argument) {
  Parameter value = [&]() -> Parameter {
    if constexpr (std::is_convertible_v<const Argument&, Parameter>)
      return argument;
    else
      return Parameter{argument};
  }();
  ++request.num_arguments;
  if constexpr (std::is_base_of_v<Buffer, Argument>)
    request.keep_alive.push_back(share(const_cast<Argument*>(&argument)));
  if constexpr (device::is_handle_argument<Parameter>) {
    device::for_each_handle(value, [&]<class H>(const H& h) {
      int radius = 0;
      bool star = false;
      if constexpr (requires { H::kRadius; }) radius = H::kRadius, star = H::kStar;
      bool is_exact = true;
      device::SumKind sum = device::SumKind::kNone;
      if constexpr (H::kRole == Role::kAccumulate) {
        is_exact = device::has_integers_alone<typename H::Value>();
        sum = device::sum_kind<typename H::Value>();
      }
      request.handles[request.num_handles++] = {
          device::HandleAccess::id_of(h), H::kRole, radius, sizeof(typename H::Value), star, is_exact, sum};
    });
  } else {
    at = device::align_up(at, alignof(Parameter));
    add_pointer<Parameter>(request, static_cast<uint32_t>(at));
    std::memcpy(request.arguments + at, &value, sizeof value);
    at += sizeof value;
    ++request.num_plain;
  }
}

// Walks the parameters; the loop supplies the place, the caller all others in order.
template <class First, class... Rest, class Tuple>
void add_arguments(LaunchRequest& request, size_t& at, const Tuple& arguments, auto index) {
  if constexpr (PlaceTraits<First>::kIsPlace) {
    request.item = PlaceTraits<First>::kItem;
    request.place_dims = PlaceTraits<First>::kDims;
    if constexpr (requires { PlaceTraits<First>::kFastBytes; })
      request.fast_bytes = PlaceTraits<First>::kFastBytes;
    if constexpr (sizeof...(Rest) > 0) add_arguments<Rest...>(request, at, arguments, index);
  } else {
    using Given = std::remove_cvref_t<decltype(std::get<index()>(arguments))>;
    if constexpr (is_slot<Given>) {
      add_slot<First>(request, at, std::get<index()>(arguments));
    } else {
      add_argument<First>(request, at, std::get<index()>(arguments));
    }
    if constexpr (sizeof...(Rest) > 0) {
      add_arguments<Rest...>(request, at, arguments, std::integral_constant<size_t, index() + 1>{});
    }
  }
}

template <class... Parameters, class... Arguments>
LaunchRequest make_request(const Kernel<void(Parameters...)>& kernel, const Loop& loop,
                           const Arguments&... arguments) {
  static_assert(sizeof...(Arguments) + 1 == sizeof...(Parameters),
                "a launch gives every kernel argument but the Cell, Block, BlockTeam, Entry, Item, GridItem "
                "or Team, in order");
  LaunchRequest request;
  request.file = kernel.file, request.name = kernel.name, request.active_only = kernel.active_only;
  request.effects = kernel.effects;
  request.loop = loop;
  size_t at = 0;
  if constexpr (sizeof...(Arguments) + 1 == sizeof...(Parameters)) {
    using All = decltype(std::tuple_cat(GivenParameter<Parameters>()...));
    constexpr bool kAreRight = check_arguments<All, Arguments...>(std::index_sequence_for<Arguments...>());
    if constexpr (kAreRight)
      add_arguments<Parameters...>(request, at, std::tie(arguments...), std::integral_constant<size_t, 0>{});
  }
  if (!request.slots.empty()) add_slots(request, at);
  if (loop.box) add_box(request, at);
  request.argument_bytes = static_cast<uint32_t>(at);
  return request;
}

}  // namespace coppice::detail
