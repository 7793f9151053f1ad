// All field handles have this in common: reach, role, the field they name, and how coordinates and blocks
// lead to values. Kernels name the handles themselves (handles.h, list_handles.h).
//
// Device-clean, and the same types on the host, where a handle is made from a field (sparse/tree.h). The file
// is long because the ways to a value are members of one class, which is all that a kernel has.
#pragma once
#include <type_traits>

#include "sparse/device/places.h"
#include "sparse/device/roles.h"

namespace coppice::device {

// Eigen's matrices of a fixed size are known by their members so that kernels without Eigen need not
// include it.
template <class T>
concept FixedEigenMatrix = requires {
  typename T::Scalar;
  T::RowsAtCompileTime, T::ColsAtCompileTime;
}
&&(T::RowsAtCompileTime > 0) && (T::ColsAtCompileTime > 0);

// This is true of a type that is copied by its bytes. Eigen's fixed-size matrices, and plain structs of
// them, are so in all but the language's eyes. (A struct that owns something has something to destroy.)
template <class T>
inline constexpr bool is_value = std::is_trivially_copyable_v<T> || FixedEigenMatrix<T> ||
                                 (std::is_aggregate_v<T> && std::is_trivially_destructible_v<T>);

}  // namespace coppice::device

namespace coppice {

// Says how far from its own cell a kernel reads: along the axes only, or the whole box.
struct Point {
  static constexpr int kRadius = 0;
  static constexpr bool kStar = true;
};
template <int R>
struct Star {
  static constexpr int kRadius = R;
  static constexpr bool kStar = true;
};
template <int R>
struct Box {
  static constexpr int kRadius = R;
  static constexpr bool kStar = false;
};

// A handle holds this: on the host the field it names, on the device the number of its binding.
struct FieldId {
  void* tree = nullptr;  // TreeStorage* on the host, null on the device
  uint32_t node = 0;
  uint32_t field = 0;  // on the device: index in coppice_fields
};
static_assert(sizeof(FieldId) == 16);

namespace device {

// Returns a cell's value. The values of a pointer node's cells are elsewhere: the container holds their
// numbers.
template <class T>
COPPICE_INLINE T* value_at(const LaunchBlock* block, const FieldBinding& f, unsigned char* container,
                           uint32_t index) {
  const LevelLayout& last = coppice_nodes[f.node].level[coppice_nodes[f.node].depth - 1];
  if (last.kind == NodeKind::kDynamic) {  // the first element of a list
    const TreeState* tree = tree_state(block, f.tree);
    const ListView list = view_list(last, tree, reinterpret_cast<ListHeader*>(container));
    return element_at<T>(last, f, chunk_at(last, tree, list.first), 0);
  }
  if (last.kind == NodeKind::kPointer) {
    unsigned char* cells = tree_state(block, f.tree)->allocators[last.allocator].cells;
    return reinterpret_cast<T*>(cells + slot_cell(container, index) * last.cell_bytes + f.offset);
  }
  return reinterpret_cast<T*>(container + f.offset + index * static_cast<uint64_t>(f.stride));
}

// Returns whether all cells of a bitmasked leaf are computed into private storage, and the active ones
// kept. A GPU has none to spare.
COPPICE_INLINE bool blends() { return coppice_loop.blend != 0 && coppice_has_private_tiles(); }

template <class From>
COPPICE_INLINE const LaunchBlock* launch_of(const From& from) {
  if constexpr (requires { from.context; })
    return from.context->block;
  else
    return from.launch;
}
template <class From>
COPPICE_INLINE WalkMemo* walks_of(const From& from) {
  if constexpr (requires { from.walks; })
    return from.walks;
  else
    return nullptr;
}

template <class From>
COPPICE_INLINE GatheredAppends* appends_of(const From& from) {
  const WalkMemo* const walks = walks_of(from);
  return walks == nullptr ? nullptr : walks->appends;
}

template <class From>
COPPICE_INLINE DelayedSums* sums_of(const From& from) {
  const WalkMemo* const walks = walks_of(from);
  return walks == nullptr ? nullptr : walks->sums;
}

// Returns the entries of a neighbour table per element: 3^dims; a tree of fewer dimensions has the middle
// ones of the 27 only.
COPPICE_INLINE uint32_t neighbour_stride(uint32_t node) {
  const uint32_t dims = coppice_nodes[node].dims;
  return dims == 3 ? 27 : dims == 2 ? 9 : 3;
}

// Returns the container that lies `n` (0..26, the middle one is 13) from an element's, through its
// neighbour table.
COPPICE_INLINE unsigned char* neighbour_container(const LaunchBlock* block, const uint32_t* neighbours,
                                                  uint32_t node, uint32_t tree, uint32_t n) {
  const NodeLayout& layout = coppice_nodes[node];
  const LevelLayout& parent = layout.level[layout.depth - 2];
  return tree_state(block, tree)->allocators[parent.allocator].cells +
         neighbours[n - (27 - neighbour_stride(node)) / 2] * parent.cell_bytes + parent.child_offset;
}

// Returns the container of field `f` that belongs to a block: the block's own, or its sibling in the same
// parent cell.
template <int D>
COPPICE_INLINE unsigned char* block_container(const Block<D>& block, const FieldBinding& f) {
  if (f.node == coppice_loop.node) return block.container;
  const NodeLayout &own = coppice_nodes[coppice_loop.node], &other = coppice_nodes[f.node];
  if (own.depth == 1) return block.container - own.root_offset + other.root_offset;
  return block.container - own.level[own.depth - 2].child_offset + other.level[other.depth - 2].child_offset;
}

// Returns a pointer to a block's own values; `T` is const for a Read. Values that cannot be had by pointer
// are refused by the host where a role tells (Write, Update), and here for a Read, which may be used
// otherwise.
template <class T, int D>
COPPICE_INLINE Values<T> block_values(const Block<D>& block, uint32_t binding) {
  const FieldBinding& f = coppice_fields[binding];
  const Coord origin{block.origin[0], block.origin[1], block.origin[2]};
  if ((f.access & (kBlockData | kContiguous)) != (kBlockData | kContiguous)) {
    raise_at(block.launch, f.access & kBlockData ? DeviceStatus::kNotContiguous : DeviceStatus::kNotBeside,
             binding, origin);
    return {reinterpret_cast<T*>(tree_state(block.launch, f.tree)->ambient), block.launch, binding, origin};
  }
  return {value_at<T>(block.launch, f, block_container(block, f), 0), block.launch, binding, origin};
}

// Returns the same for the block that lies `d` blocks away; zeros for an inactive one.
template <class T, int D>
COPPICE_INLINE Values<T> neighbour_values(const Block<D>& block, uint32_t binding, Coord d) {
  const FieldBinding& f = coppice_fields[binding];
  const Coord origin{block.origin[0], block.origin[1], block.origin[2]};
  constexpr uint32_t needed = kBlockData | kNeighbourData | kContiguous;
  const bool beyond = debug_checks() && !reaches(1, false, d);
  if ((f.access & needed) != needed || beyond) {
    raise_at(block.launch,
             !(f.access & kBlockData)       ? DeviceStatus::kNotBeside
             : !(f.access & kContiguous)    ? DeviceStatus::kNotContiguous
             : !(f.access & kNeighbourData) ? DeviceStatus::kNoNeighbourTable
                                            : DeviceStatus::kBlockOutOfReach,
             binding, origin, d);
    return {reinterpret_cast<T*>(tree_state(block.launch, f.tree)->ambient), block.launch, binding, origin};
  }
  const uint32_t n = ((d.x + 1) * 3 + d.y + 1) * 3 + d.z + 1;
  return {
      value_at<T>(block.launch, f, neighbour_container(block.launch, block.neighbours, f.node, f.tree, n), 0),
      block.launch, binding, origin};
}

// Stands for an element of the node looped over.
template <class T, int D>
COPPICE_INLINE T* value_of(const Entry<D>& entry, const FieldBinding& f) {
  return reinterpret_cast<T*>(entry.chunk + f.offset + entry.slot * static_cast<uint64_t>(f.stride));
}

// Loads what a field has for an element: on the node looped over its value; on another dynamic node the
// element of the same index of the list at the same coordinate, zero where it has none; on any other the
// value at that coordinate. Its node must have the same cells as the lists' (kSameCells).
template <class T, int D>
COPPICE_INLINE T load_for(const Entry<D>& entry, uint32_t binding) {
  const FieldBinding& f = coppice_fields[binding];
  if (f.node == coppice_loop.node) return *value_of<T>(entry, f);
  if (lacks_own_cell(entry.launch, binding, false)) return T{};
  const NodeLayout& node = coppice_nodes[f.node];
  const Coord list{entry.origin[0], entry.origin[1], entry.origin[2]};
  if (node.level[node.depth - 1].kind == NodeKind::kDynamic)
    return element<T>(entry.launch, binding, list, entry.index);
  const CellRef p = find(node, tree_state(entry.launch, f.tree), list);
  return *value_at<T>(entry.launch, f, p.container, p.index);
}

// Makes a Coord of as many numbers as there are dimensions: missing leading ones are 0.
template <int D>
COPPICE_INLINE Coord offset_coord(const int32_t (&o)[D]) {
  static_assert(D <= kMaxDims, "a coordinate has 1 to 3 numbers");
  if constexpr (D == 1)
    return {0, 0, o[0]};
  else if constexpr (D == 2)
    return {0, o[0], o[1]};
  else
    return {o[0], o[1], o[2]};
}

}  // namespace device

namespace device {

// Returns the coordinate that a kernel gives with a handle: as many numbers as the field's tree has axes.
// Where there are more or fewer and the launch goes on, it is one outside of the domain.
template <class From, int D>
COPPICE_INLINE Coord coord_of(const From& from, uint32_t binding, const int32_t (&coord)[D],
                              bool is_looked_for) {
  if constexpr (!requires { From::kPadsCoordinates; }) {
    const NodeLayout& node = coppice_nodes[coppice_fields[binding].node];
    if (node.dims != D && misuses(launch_of(from), DeviceStatus::kWrongAxes, binding, D, is_looked_for))
      return {0, 0, plus(node.origin[2], static_cast<int32_t>(node.domain[2]))};
  }
  return offset_coord(coord);
}

// Returns whether the cell of a field's node is active.
COPPICE_INLINE bool is_active_at(const LaunchBlock* block, uint32_t binding, Coord c) {
  const FieldBinding& f = coppice_fields[binding];
  const NodeLayout& node = coppice_nodes[f.node];
  return is_active(node, find(node, tree_state(block, f.tree), c));
}

// A list is asked for of a node that has none.
COPPICE_INLINE bool lacks_lists(const LaunchBlock* block, uint32_t binding) {
  const NodeLayout& node = coppice_nodes[coppice_fields[binding].node];
  if (node.level[node.depth - 1].kind == NodeKind::kDynamic) return false;
  misuses(block, DeviceStatus::kNoLists, binding, 0, false);
  return true;
}

}  // namespace device

class TreeRef;  // the host's (sparse/tree.h)

namespace device {

// A handle of a kernel is made from this number. Only ArgumentReader gives one out: a kernel does with its
// fields what its arguments say, so that it has no handles but those, and copies of them.
class BindingNumber {
 private:
  friend struct HandleAccess;
  explicit constexpr BindingNumber(uint32_t number) : number_(number) {}
  uint32_t number_;
};
// Lets the runtime reach what handles keep to themselves.
struct HandleAccess {
  static constexpr BindingNumber binding(uint32_t number) { return BindingNumber(number); }
  static constexpr FieldId id_of(BindingNumber binding) { return {.field = binding.number_}; }
  template <class H>
  static constexpr const FieldId& id_of(const H& handle) {
    return handle.id;
  }
};

}  // namespace device

template <class T, Role R>
struct Handle : device::OtherUses<T, R> {
  using Value = T;
  static constexpr Role kRole = R;
  static_assert(device::is_value<T>, "a field's values must be trivially copyable");

  // Converts the host's Field<T> of the same value type, which no kernel file has, but no handle of
  // another role or reach.
  template <class F>
  requires std::is_same_v<typename F::Value, T> && std::is_same_v<decltype(F::tree), TreeRef> Handle(
      const F& field)
      : id(field.id) {}
  constexpr Handle(device::BindingNumber binding) : id(device::HandleAccess::id_of(binding)) {}

 protected:
  friend struct device::HandleAccess;
  const device::FieldBinding& binding() const { return coppice_fields[id.field]; }
  const device::NodeLayout& layout() const { return coppice_nodes[binding().node]; }
  // Launches of kernels that read or ask alone do not look for a status: one that they left would
  // stop all that come behind them.
  template <class From, int D>
  COPPICE_INLINE Coord coord_of(const From& from, const int32_t (&coord)[D],
                                bool is_looked_for = R != Role::kRead) const {
    return device::coord_of(from, id.field, coord, is_looked_for);
  }
  // Returns whether the launch's uses say that it does this; true without the checks. may() asks about the
  // values, may_do() also about cells alone.
  template <class From>
  COPPICE_INLINE bool may(const From& from, uint32_t effects, int32_t reach = 0) const {
    return may_do(from, effects, reach, sizeof(T));
  }
  template <class From>
  COPPICE_INLINE bool may_do(const From& from, uint32_t effects, int32_t reach = device::kAnyReach,
                             uint32_t value_bytes = 0) const {
    return !device::debug_checks() ||
           device::is_used(device::launch_of(from), id.field, effects, reach, value_bytes);
  }
  // A refused value that is too large for the sink goes where it would have gone.
  template <class From>
  COPPICE_INLINE bool may_or_is_wide(const From& from, uint32_t effects) const {
    return may(from, effects) || sizeof(T) > kSinkBytes;
  }
  template <class V, int D>
  COPPICE_INLINE Values<V> no_values(const Block<D>& block) const {
    return {reinterpret_cast<V*>(block.launch->context->sink), block.launch, Values<V>::kRefused, Coord{}};
  }

  FieldId id;
};

}  // namespace coppice
