// Launching kernels over trees and ranges.
//
//     Program program(device);
//     program.launch(diffuse, over(leaf), Heat{now, next}, 0.1f);       // AsyncValueRef<Chain>
//     program.launch(advect, range(n_particles), Particles{...}, dt);
//     BoundLaunch step = program.bind(diffuse, over(leaf), Heat{now, next}, 0.1f);
//     for (int i = 0; i < n; ++i) step.launch();                        // prepared once
//
// A kernel is specialized once for the trees behind its handles and what it loops over, and kept. The types
// of a launch's arguments are checked at compile time; roles against trees when launched: an Error
// kInvalidArgument says which handle is wrong. Every call of a Program or BoundLaunch that was moved from is
// such an Error. Launches run in order on the device's default stream. Thread-compatible.
#pragma once
#include <cstring>
#include <memory>
#include <optional>

#include "gpu/device.h"
#include "sparse/kernel.h"
#include "sparse/read_back.h"
#include "sparse/tree.h"

namespace coppice {

struct KernelVersion;

// Describes what a launch runs over.
struct Loop {
  TreeRef tree;  // null: a range
  uint32_t node = 0;
  int64_t begin = 0;
  uint64_t count = 0;
  const uint64_t* device_count = nullptr;
  std::optional<device::LoopBox> box = {};  // of over_box()
};
// Loops over the active cells of a node (Cell kernels), its containers (Block and BlockTeam kernels) or,
// for a dynamic node, the elements of its lists (Entry kernels). Errors: kInvalidArgument for a node that
// was moved from.
Loop over(const Node& node);
// Loops over the cells of a node from `low` up to, not including, `high`, coordinates in tree axes: those
// that are not active become so first, and are zero, with all nodes above them; then a Cell kernel runs
// over the cells of the box. Cells outside of it are neither visited nor activated; where a container that
// the box meets has no cells of its own accord (a dense leaf below a pointer node), the container becomes
// active as a whole. An empty box does nothing. Fixes the tree's layout. For pointer, bitmasked and dense
// nodes. The launch's order of things, growth and collection are those of a launch that activates the
// cells and one over the node behind it, and an Error (kOutOfMemory) of the first is the launch's. Cost:
// for each container that the box meets a walk, and an atomic operation per 64 bits of a mask; then that
// of over(node), of whose containers each is looked at, those that the box does not meet by a few
// comparisons. The last cell of a domain that ends at 2^31 is in no box: `high` is a coordinate, too.
// Errors: kOutOfRange where the box is not within the domain, kOutOfMemory where it meets more than 2^40
// containers, kInvalidArgument for another node or number of axes, or a kernel that takes no Cell.
Loop over_box(const Node& node, const detail::GivenCoord& low, const detail::GivenCoord& high);
inline Loop range(int64_t begin, int64_t end) {
  return {{}, 0, begin, end > begin ? static_cast<uint64_t>(end - begin) : 0};
}
inline Loop range(int64_t end) { return range(0, end); }
// Loops over as many items as device memory says when the launch starts.
inline Loop range_on_device(const uint64_t* count) { return {{}, 0, 0, 0, count}; }

namespace detail {

struct HandleUse {
  FieldId id;
  Role role;
  int radius;
  uint32_t value_bytes;
  bool star;   // of a reach
  bool exact;  // sums of its values do not depend on their order
};

// Describes an argument that leads to memory.
struct PointerUse {
  uint32_t argument, offset;  // which one, from 1 on; where the packed arguments have its address
  bool is_const;
};
inline constexpr uint32_t kMostPointers = kLaunchArgumentBytes / sizeof(void*);

// Describes a launch with its types gone.
struct LaunchRequest {
  const KernelBitcode* file;
  std::string_view name;
  bool active_only;
  enum class LoopItem { kCell, kBlock, kBlockTeam, kEntry, kItem, kTeam } item;
  int place_dims;
  uint32_t fast_bytes = 0;  // that a BlockTeam has
  Loop loop;
  uint32_t effects = ~0u;  // of the kernel (gpu/jit/kernel_effects.h)
  uint32_t num_handles = 0;
  HandleUse handles[device::kMaxBindings];
  uint32_t num_arguments = 0;  // that the caller gave
  uint32_t num_pointers = 0;   // pointers and Views among them
  PointerUse pointers[kMostPointers];
  bool has_hidden_pointers = false;  // some argument is, or leads to, a struct, which may have pointers
  uint32_t argument_bytes = 0;
  uint32_t box_at = 0;  // the loop's box among the arguments, plus 1; 0: there is none
  // This launch runs in place of that one, as one that makes room; it has the other's name.
  const LaunchRequest* makes_room_for = nullptr;
  alignas(16) unsigned char arguments[kLaunchArgumentBytes];
};

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

// Puts one argument into the request: the parameter's type decides, the argument is converted to it.
template <class Parameter, class Argument>
void add_argument(LaunchRequest& request, size_t& at, const Argument& argument) {
  static_assert(LaunchArgument<Parameter, Argument>,
                "a launch argument does not convert to the kernel's parameter");
  Parameter value = [&]() -> Parameter {
    if constexpr (std::is_convertible_v<const Argument&, Parameter>)
      return argument;
    else
      return Parameter{argument};
  }();
  ++request.num_arguments;
  if constexpr (device::is_handle_argument<Parameter>) {
    device::for_each_handle(value, [&]<class H>(const H& h) {
      int radius = 0;
      bool star = false;
      if constexpr (requires { H::kRadius; }) radius = H::kRadius, star = H::kStar;
      request.handles[request.num_handles++] = {
          device::HandleAccess::id_of(h), H::kRole, radius,
          sizeof(typename H::Value),      star,     std::is_integral_v<typename H::Value>};
    });
  } else {
    at = device::align_up(at, alignof(Parameter));
    add_pointer<Parameter>(request, static_cast<uint32_t>(at));
    std::memcpy(request.arguments + at, &value, sizeof value);
    at += sizeof value;
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
    add_argument<First>(request, at, std::get<index()>(arguments));
    if constexpr (sizeof...(Rest) > 0) {
      add_arguments<Rest...>(request, at, arguments, std::integral_constant<size_t, index() + 1>{});
    }
  }
}

// Puts the loop's box behind the arguments. Errors: kInvalidArgument where they leave no room for it.
void add_box(LaunchRequest& request, size_t& at);

template <class... Parameters, class... Arguments>
LaunchRequest make_request(const Kernel<void(Parameters...)>& kernel, const Loop& loop,
                           const Arguments&... arguments) {
  static_assert(
      sizeof...(Arguments) + 1 == sizeof...(Parameters),
      "a launch gives every kernel argument but the Cell, Block, BlockTeam, Entry, Item or Team, in order");
  LaunchRequest request;
  request.file = kernel.file, request.name = kernel.name, request.active_only = kernel.active_only;
  request.effects = kernel.effects;
  request.loop = loop;
  size_t at = 0;
  if constexpr (sizeof...(Arguments) + 1 == sizeof...(Parameters)) {
    add_arguments<Parameters...>(request, at, std::tie(arguments...), std::integral_constant<size_t, 0>{});
  }
  if (loop.box) add_box(request, at);
  request.argument_bytes = static_cast<uint32_t>(at);
  return request;
}

}  // namespace detail

namespace detail {
struct Bound;  // sparse/bound_launches.h
}

// Holds a launch that has been prepared: its kernel, loop, handles and arguments as they were when it was
// bound. Giving it to the stream again costs a queue entry. It keeps its trees and device, not what its
// arguments point to. Copies share it.
class BoundLaunch {
 public:
  BoundLaunch(IntrusivePtr<Device> device, Launch launch);
  AsyncValueRef<Chain> launch() const { return stream().launch(shared()); }
  std::string name() const { return std::string(shared()->launch.name); }  // "file.kernel"
  Device& device() const;
  Stream& stream() const { return device().default_stream(); }
  // Returns another one once its kernel was replaced (sparse/kernel_reload.h), by whichever thread.
  IntrusivePtr<const SharedLaunch> shared() const;
  // Returns what it touches; text_of() in sparse/uses.h makes text of that.
  IntrusivePtr<const LaunchUses> uses() const { return shared()->launch.uses; }

 private:
  friend class Program;
  detail::Bound& bound() const;  // Errors: kInvalidArgument when it was moved from
  std::shared_ptr<detail::Bound> bound_;
};

class Program {
 public:
  // COPPICE_DEBUG says how its kernels are compiled, unless `options` does.
  explicit Program(IntrusivePtr<Device> device, const CodegenOptions& options = codegen_options());
  ~Program();
  Program(Program&&) noexcept;

  template <class... Parameters, class... Arguments>
  AsyncValueRef<Chain> launch(const Kernel<void(Parameters...)>& kernel, const Loop& loop,
                              const Arguments&... arguments) {
    return device().default_stream().launch(prepare(detail::make_request(kernel, loop, arguments...)));
  }
  // Returns the launch as a value, for those who give it many times.
  template <class... Parameters, class... Arguments>
  BoundLaunch bind(const Kernel<void(Parameters...)>& kernel, const Loop& loop,
                   const Arguments&... arguments) {
    return bind_request(detail::make_request(kernel, loop, arguments...));
  }
  // Starts compiling what such a launch needs, and does nothing else.
  template <class... Parameters, class... Arguments>
  void compile(const Kernel<void(Parameters...)>& kernel, const Loop& loop, const Arguments&... arguments) {
    prepare(detail::make_request(kernel, loop, arguments...));
  }
  // Returns the launch itself, for those who run it inside a stream's own order.
  template <class... Parameters, class... Arguments>
  Launch make_launch(const Kernel<void(Parameters...)>& kernel, const Loop& loop,
                     const Arguments&... arguments) {
    return prepare(detail::make_request(kernel, loop, arguments...));
  }
  // Returns what such a launch touches, as data, and as text: the kernel's name and a line for each of its
  // uses (text_of() in sparse/uses.h). Checks the roles as a launch does, and freezes trees; compiles and
  // runs nothing.
  template <class... Parameters, class... Arguments>
  IntrusivePtr<const LaunchUses> uses(const Kernel<void(Parameters...)>& kernel, const Loop& loop,
                                      const Arguments&... arguments) const {
    return uses_of(detail::make_request(kernel, loop, arguments...));
  }
  template <class... Parameters, class... Arguments>
  std::string explain(const Kernel<void(Parameters...)>& kernel, const Loop& loop,
                      const Arguments&... arguments) const {
    return explain(detail::make_request(kernel, loop, arguments...));
  }
  Device& device() const;
  // Blocks the host until all that was launched is done. Throws the error of the first launch that failed.
  void wait() const;

 private:
  friend class BoundLaunches;
  friend class ProgramPtx;
  Launch prepare(const detail::LaunchRequest& request);
  // Prepares it with the kernel of that version of its file (null: the program's own), whether or not that
  // can be compiled.
  Launch prepare_at(const detail::LaunchRequest& request, const KernelVersion* version);
  BoundLaunch bind_request(const detail::LaunchRequest& request);
  void activate_box_first(Launch& launch, const detail::LaunchRequest& request);
  IntrusivePtr<const LaunchUses> uses_of(const detail::LaunchRequest& request) const;
  std::string explain(const detail::LaunchRequest& request) const;

  struct State;
  State& state() const;  // Errors: kInvalidArgument when it was moved from
  std::unique_ptr<State> state_;
};

}  // namespace coppice
