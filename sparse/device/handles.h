// Field handles: what a kernel touches, how far it reaches, and what it may do there.
//
// Device-clean, and the same types on the host, where a handle is made from a field (sparse/field.h). The role is the
// contract: it licenses vectorisation (handles do not alias), halo tiles (reach) and activation (only Grow activates).
//
//   Read<T, Reach>   reads; `field[cell]` its own cell or element, `field(cell, dx, dy, dz)` within the reach,
//                    `field.at(coord)` anywhere. Inactive cells read as zero and stay inactive.
//   Write<T>         `field[cell] = v`, own cell or element only. Write-only: inactive cells are never written.
//   Update<T>        `field[cell]` is a reference to the own cell's value (in-place change).
//   Accumulate<T>    `field.add(from, coord, v)`, atomic, any active cell; an inactive one is a counted miss.
//   Accumulate<T, Reach>  `field.add(cell, offset, v)`, the same to cells within the reach, with fewer atomics.
//   Grow<T>          `field.set(from, coord, v)` activates the cell and stores; `activate`, `deactivate` and
//                    `is_active` change and test topology. Sums go through Accumulate in a later launch.
//   Append<T>        on a dynamic node (list_handles.h): `field.append(from, coord, v)`, `set`, `length`, `deactivate`.
//
// What breaks a role only while it runs is found by COPPICE_DEBUG=checks (checks.h, docs/debugging.md).
#pragma once
#include <type_traits>

#include "sparse/device/places.h"

namespace coppice::device {

// Eigen's matrices of a fixed size, known by their members so that kernels without Eigen need not include it.
template <class T>
concept FixedEigenMatrix = requires {
  typename T::Scalar;
  T::RowsAtCompileTime, T::ColsAtCompileTime;
}
&&(T::RowsAtCompileTime > 0) && (T::ColsAtCompileTime > 0);

// What its bytes are enough to copy: Eigen's fixed-size matrices, and plain structs of them, are so in all but the
// language's eyes. (A struct that owns something has something to destroy.)
template <class T>
inline constexpr bool is_value = std::is_trivially_copyable_v<T> || FixedEigenMatrix<T> ||
                                 (std::is_aggregate_v<T> && std::is_trivially_destructible_v<T>);

}  // namespace coppice::device

namespace coppice {

// How far from its own cell a kernel reads: along the axes only, or the whole box.
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

enum class Role : uint32_t { kRead, kWrite, kUpdate, kAccumulate, kGrow, kAppend };

// What a handle holds: on the host the field it names, on the device the number of its binding.
struct FieldId {
  void* tree = nullptr;  // TreeStorage* on the host, null on the device
  uint32_t node = 0;
  uint32_t field = 0;  // on the device: index in coppice_fields
};
static_assert(sizeof(FieldId) == 16);

namespace device {

// A cell's value. Cells of a pointer node are elsewhere: the container holds their numbers.
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

// Are all cells of a bitmasked leaf computed into private storage, and the active ones kept? A GPU has none to spare.
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

// Entries of a neighbour table per element: 3^dims; a tree of fewer dimensions has the middle ones of the 27 only.
COPPICE_INLINE uint32_t neighbour_stride(uint32_t node) {
  const uint32_t dims = coppice_nodes[node].dims;
  return dims == 3 ? 27 : dims == 2 ? 9 : 3;
}

// The container that lies `n` (0..26, the middle one is 13) from an element's, through its neighbour table.
COPPICE_INLINE unsigned char* neighbour_container(const LaunchBlock* block, const uint32_t* neighbours,
                                                  uint32_t node, uint32_t tree, uint32_t n) {
  const NodeLayout& layout = coppice_nodes[node];
  const LevelLayout& parent = layout.level[layout.depth - 2];
  return tree_state(block, tree)->allocators[parent.allocator].cells +
         neighbours[n - (27 - neighbour_stride(node)) / 2] * parent.cell_bytes + parent.child_offset;
}

// The container of field `f` that belongs to a block: the block's own, or its sibling in the same parent cell.
template <int D>
COPPICE_INLINE unsigned char* block_container(const Block<D>& block, const FieldBinding& f) {
  if (f.node == coppice_loop.node) return block.container;
  const NodeLayout &own = coppice_nodes[coppice_loop.node], &other = coppice_nodes[f.node];
  if (own.depth == 1) return block.container - own.root_offset + other.root_offset;
  return block.container - own.level[own.depth - 2].child_offset + other.level[other.depth - 2].child_offset;
}

// A pointer to a block's own values; `T` is const for a Read. What cannot be had by pointer is refused by the host where
// a role tells (Write, Update), and here for a Read, which may be used otherwise.
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

// The same of the block that lies `d` blocks away; of an inactive one, zeros.
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

// An element of the node looped over.
template <class T, int D>
COPPICE_INLINE T* value_of(const Entry<D>& entry, const FieldBinding& f) {
  return reinterpret_cast<T*>(entry.chunk + f.offset + entry.slot * static_cast<uint64_t>(f.stride));
}

// What a field has for an element: on the node looped over its value; on another dynamic node the element of
// the same index of the list at the same coordinate, zero where it has none; on any other the value at that
// coordinate. Its node must have the same cells as the lists' (kSameCells).
template <class T, int D>
COPPICE_INLINE T load_for(const Entry<D>& entry, uint32_t binding) {
  const FieldBinding& f = coppice_fields[binding];
  if (f.node == coppice_loop.node) return *value_of<T>(entry, f);
  if (lacks_own_cell(entry.launch, binding, false)) return T{};
  const NodeLayout& node = coppice_nodes[f.node];
  const Coord list{entry.origin[0], entry.origin[1], entry.origin[2]};
  if (node.level[node.depth - 1].kind == NodeKind::kDynamic)
    return element<T>(entry.launch, binding, list, entry.index);
  const Place p = find(node, tree_state(entry.launch, f.tree), list);
  return *value_at<T>(entry.launch, f, p.container, p.index);
}

// A coordinate as the dimension count says it: missing leading ones are 0.
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

// The coordinate that a kernel gives with a handle: as many numbers as the field's tree has axes. Where it
// has others and the launch goes on, one outside of the domain.
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

// What a handle of a kernel is made from. Only ArgumentReader gives one out: what a kernel does with its
// fields is what its arguments say, so that it has no handles but those, and copies of them.
class BindingNumber {
 private:
  friend struct HandleAccess;
  explicit constexpr BindingNumber(uint32_t number) : number_(number) {}
  uint32_t number_;
};
// The runtime's way to what handles keep to themselves.
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
struct Handle {
  using Value = T;
  static constexpr Role kRole = R;
  static_assert(device::is_value<T>, "a field's values must be trivially copyable");

  // From the host's Field<T> of the same value type, which no kernel file has. Not from a handle of another
  // role or reach.
  template <class F>
  requires std::is_same_v<typename F::Value, T> && std::is_same_v<decltype(F::tree), TreeRef> Handle(
      const F& field)
      : id(field.id) {}
  constexpr Handle(device::BindingNumber binding) : id(device::HandleAccess::id_of(binding)) {}

 protected:
  friend struct device::HandleAccess;
  const device::FieldBinding& binding() const { return coppice_fields[id.field]; }
  const device::NodeLayout& layout() const { return coppice_nodes[binding().node]; }
  // Launches of kernels that read or ask alone do not look for a status: one that they left would stop all that
  // come behind them.
  template <class From, int D>
  COPPICE_INLINE Coord coord_of(const From& from, const int32_t (&coord)[D],
                                bool is_looked_for = R != Role::kRead) const {
    return device::coord_of(from, id.field, coord, is_looked_for);
  }
  // Whether the launch's uses say that it does this; known to be so without the checks. Of the values, or of
  // cells alone.
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

template <class T, class Reach = Point>
struct Read : Handle<T, Role::kRead> {
  using Handle<T, Role::kRead>::Handle;
  static constexpr int kRadius = Reach::kRadius;
  static constexpr bool kStar = Reach::kStar;

  template <int D>
  COPPICE_HARMLESS COPPICE_INLINE T operator[](const Cell<D>& cell) const {
    if (!this->may(cell, effect::kReads)) return T{};
    return load(cell, 0, 0, 0);
  }
  template <int D>
  COPPICE_ACCESS COPPICE_INLINE T operator[](const Entry<D>& entry) const {
    if (!this->may(entry, effect::kReads)) return T{};
    return device::load_for<T>(entry, this->id.field);
  }
  COPPICE_HARMLESS_NEAR COPPICE_INLINE T operator()(const Cell<1>& cell, int dx) const {
    return reach(cell, {0, 0, dx});
  }
  COPPICE_HARMLESS_NEAR COPPICE_INLINE T operator()(const Cell<2>& cell, int dx, int dy) const {
    return reach(cell, {0, dx, dy});
  }
  COPPICE_HARMLESS_NEAR COPPICE_INLINE T operator()(const Cell<3>& cell, int dx, int dy, int dz) const {
    return reach(cell, {dx, dy, dz});
  }
  // Anywhere, by a tree walk. `from` is the kernel's cell, block or item.
  template <class From, int D>
  COPPICE_HARMLESS COPPICE_ANYWHERE COPPICE_INLINE T at(const From& from, const int32_t (&coord)[D]) const {
    if (!this->may(from, effect::kReads, device::kAnyReach)) return T{};
    const device::FieldBinding& f = this->binding();
    const LaunchBlock* block = device::launch_of(from);
    const Coord c = this->coord_of(from, coord);
    if (device::refuses_others(block, this->id.field, c)) return T{};
    device::check_domain(block, this->id.field, c);
    const device::Place p = device::find(this->layout(), device::tree_state(block, f.tree), c);
    return *device::value_at<T>(block, f, p.container, p.index);
  }
  // Element `index` of the list at `coord` of a dynamic node (without an index: the first); zero where there is none.
  template <class From, int D>
  COPPICE_HARMLESS COPPICE_ANYWHERE COPPICE_INLINE T at(const From& from, const int32_t (&coord)[D],
                                                        int64_t index) const {
    if (!this->may(from, effect::kReads, device::kAnyReach)) return T{};
    const Coord c = this->coord_of(from, coord);
    if (device::lacks_lists(device::launch_of(from), this->id.field)) return T{};
    if (device::refuses_others(device::launch_of(from), this->id.field, c)) return T{};
    return device::element<T>(device::launch_of(from), this->id.field, c, index);
  }
  template <class From, int D>
  COPPICE_HARMLESS COPPICE_ANYWHERE COPPICE_INLINE uint32_t length(const From& from,
                                                                   const int32_t (&coord)[D]) const {
    if (!this->may(from, effect::kReads, device::kAnyReach)) return 0;
    if (device::lacks_lists(device::launch_of(from), this->id.field)) return 0;
    return device::length_at(device::launch_of(from), this->id.field, this->coord_of(from, coord));
  }
  // The values of a block's own container, cell 0 first (struct-of-arrays leaves; sibling leaves of the same cell too).
  template <int D>
  COPPICE_ACCESS COPPICE_INLINE Values<const T> data(const Block<D>& block) const {
    if (!this->may(block, effect::kReads)) return this->template no_values<const T>(block);
    return device::block_values<const T>(block, this->id.field);
  }
  // The values of a neighbouring block, (dx, dy, dz) in -1..1; an inactive one reads as zeros.
  template <int D>
  COPPICE_ACCESS COPPICE_ANYWHERE COPPICE_INLINE Values<const T> neighbour_data(const Block<D>& block,
                                                                                const int32_t (&d)[D]) const {
    if (!this->may(block, effect::kReads, device::kAnyReach)) return this->template no_values<const T>(block);
    device::refuses_others(block.launch, this->id.field, {block.origin[0], block.origin[1], block.origin[2]});
    return device::neighbour_values<const T>(block, this->id.field, device::offset_coord(d));
  }

 private:
  template <int D>
  COPPICE_INLINE T reach(const Cell<D>& cell, Coord d) const {
    static_assert(
        kRadius > 0,
        "a Read without a reach reads its own cell only; declare it Read<T, Star<1>> or Read<T, Box<1>>");
    if (!this->may(cell, effect::kReads, kRadius)) return T{};
    if (device::debug_checks() && !device::reaches(kRadius, kStar, d)) {
      device::raise_at(cell.context->block, DeviceStatus::kOutOfReach, this->id.field, cell.coord(), d);
      const unsigned char* zeros = device::tree_state(cell.context->block, this->binding().tree)->ambient;
      return *reinterpret_cast<const T*>(zeros);
    }
    return load(cell, d.x, d.y, d.z);
  }
  template <int D>
  COPPICE_INLINE T load(const Cell<D>& cell, int dx, int dy, int dz) const;
};

template <class T>
struct Write : Handle<T, Role::kWrite> {
  using Handle<T, Role::kWrite>::Handle;
  class Target {
   public:
    COPPICE_HARMLESS COPPICE_INLINE void operator=(const T& v) const {
      if (device::makes_room() || (device::debug_checks() && address_ == nullptr)) return;
      *address_ = v;
    }

   private:
    friend Write;
    COPPICE_INLINE explicit Target(T* address) : address_(address) {}
    T* address_;
  };
  template <int D>
  COPPICE_HARMLESS COPPICE_INLINE Target operator[](const Cell<D>& cell) const {
    const device::FieldBinding& f = this->binding();
    if (!this->may(cell, effect::kStores)) return Target(nullptr);
    if (device::blends())
      return Target(reinterpret_cast<T*>(cell.context->write_base[this->id.field]) + cell.index);
    return Target(device::value_at<T>(cell.context->block, f, cell.context->container, cell.index));
  }
  template <int D>
  COPPICE_ACCESS COPPICE_INLINE Target operator[](const Entry<D>& entry) const {
    if (!this->may(entry, effect::kStores)) return Target(nullptr);
    return Target(device::value_of<T>(entry, this->binding()));
  }
  template <int D>
  COPPICE_ACCESS COPPICE_INLINE Values<T> data(const Block<D>& block) const {
    if (!this->may(block, effect::kStores)) return this->template no_values<T>(block);
    return device::block_values<T>(block, this->id.field);
  }
};

template <class T>
struct Update : Handle<T, Role::kUpdate> {
  using Handle<T, Role::kUpdate>::Handle;
  template <int D>
  COPPICE_ACCESS COPPICE_INLINE T& operator[](const Cell<D>& cell) const {
    if (!this->may_or_is_wide(cell, effect::kChanges))
      return device::refused<T>(cell.context->block, nullptr);
    return *device::value_at<T>(cell.context->block, this->binding(), cell.context->container, cell.index);
  }
  template <int D>
  COPPICE_ACCESS COPPICE_INLINE T& operator[](const Entry<D>& entry) const {
    if (!this->may_or_is_wide(entry, effect::kChanges)) return device::refused<T>(entry.launch, nullptr);
    return *device::value_of<T>(entry, this->binding());
  }
  template <int D>
  COPPICE_ACCESS COPPICE_INLINE Values<T> data(const Block<D>& block) const {
    if (!this->may(block, effect::kChanges)) return this->template no_values<T>(block);
    return device::block_values<T>(block, this->id.field);
  }
};

namespace device {

COPPICE_INLINE void atomic_add(float* p, float v) { coppice_fetch_add_f32(p, v); }
COPPICE_INLINE void atomic_add(double* p, double v) { coppice_fetch_add_f64(p, v); }
COPPICE_INLINE void atomic_add(uint32_t* p, uint32_t v) { coppice_fetch_add_u32(p, v); }
COPPICE_INLINE void atomic_add(uint64_t* p, uint64_t v) { coppice_fetch_add_u64(p, v); }
COPPICE_INLINE void atomic_add(int32_t* p, int32_t v) {
  coppice_fetch_add_u32(reinterpret_cast<uint32_t*>(p), v);
}
COPPICE_INLINE void atomic_add(int64_t* p, int64_t v) {
  coppice_fetch_add_u64(reinterpret_cast<uint64_t*>(p), v);
}

}  // namespace device

template <class T, class Reach = Point>
struct Accumulate : Handle<T, Role::kAccumulate> {
  using Handle<T, Role::kAccumulate>::Handle;
  template <class From, int D>
  COPPICE_ACCESS COPPICE_INLINE void add(const From& from, const int32_t (&coord)[D], T value) const;
};

// Sums of a leaf's cells meet in a tile first and go to the tree once per leaf.
template <class T, class Reach>
requires(Reach::kRadius > 0) struct Accumulate<T, Reach> : Handle<T, Role::kAccumulate> {
  using Handle<T, Role::kAccumulate>::Handle;
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> ||
                    (std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8)),
                "an Accumulate with a reach adds float, double, or integers of 32 or 64 bits");
  static constexpr int kRadius = Reach::kRadius;
  static constexpr bool kStar = Reach::kStar;
  template <int D>
  COPPICE_ACCESS COPPICE_INLINE void add(const Cell<D>& cell, const int32_t (&offset)[D], T value) const;
};

// Everything Grow does is the same when done twice, so a launch that ran out of cells can be repeated after growth.
template <class T>
struct Grow : Handle<T, Role::kGrow> {
  using Handle<T, Role::kGrow>::Handle;
  // Activates the cell and stores a value; the last of several writers wins.
  template <class From, int D>
  COPPICE_ACTIVATES COPPICE_INLINE void set(const From& from, const int32_t (&coord)[D],
                                            const T& value) const {
    if (!this->may(from, effect::kStores | effect::kActivates, device::kAnyReach)) return;
    const LaunchBlock* block = device::launch_of(from);
    const device::FieldBinding& f = this->binding();
    const device::Place p = device::find_or_activate(block, this->layout(), f.tree, this->id.field,
                                                     this->coord_of(from, coord), device::walks_of(from));
    if (p.active && !device::makes_room())
      device::store_shared(device::value_at<T>(block, f, p.container, p.index), value);
  }
  template <class From, int D>
  COPPICE_ACTIVATES COPPICE_INLINE void activate(const From& from, const int32_t (&coord)[D]) const {
    if (!this->may_do(from, effect::kActivates)) return;
    device::find_or_activate(device::launch_of(from), this->layout(), this->binding().tree, this->id.field,
                             this->coord_of(from, coord), device::walks_of(from));
  }
  template <class From, int D>
  COPPICE_DEACTIVATES COPPICE_INLINE void deactivate(const From& from, const int32_t (&coord)[D]) const {
    if (!this->may_do(from, effect::kDeactivates)) return;
    const Coord c = this->coord_of(from, coord);
    device::check_domain(device::launch_of(from), this->id.field, c);
    device::deactivate(device::launch_of(from), this->layout(), this->binding().tree, c);
  }
  template <class From, int D>
  COPPICE_TESTS COPPICE_INLINE bool is_active(const From& from, const int32_t (&coord)[D]) const {
    if (!this->may_do(from, effect::kTests)) return false;
    const device::TreeState* tree = device::tree_state(device::launch_of(from), this->binding().tree);
    return device::is_active(this->layout(),
                             device::find(this->layout(), tree, this->coord_of(from, coord, false)));
  }
};

// A node's topology without a value (Node::topology() on the host).
using Topology = Grow<unsigned char>;

}  // namespace coppice
