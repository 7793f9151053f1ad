// Field handles: what a kernel touches, how far it reaches, and what it may do there.
//
// Device-clean, and the same types on the host, where a handle is made from a field (sparse/tree.h). The
// role is the contract: it licenses vectorisation (handles do not alias), halo tiles (reach) and
// activation (only Grow activates).
//
//   Read<T, Reach>   reads; `field[cell]` its own cell or element, `field(cell, dx, dy, dz)` within the reach,
//                    `field.at(coord)` anywhere. Inactive cells read as zero and stay inactive.
//   Write<T>         `field[cell] = v`, own cell or element only. Write-only: inactive cells are never written.
//   Update<T>        `field[cell]` is a reference to the own cell's value (in-place change).
//   Accumulate<T>    `field.add(from, coord, v)`, atomic, any active cell; an inactive one is a counted miss.
//   Accumulate<T, Reach>  `field.add(cell, offset, v)`, the same to cells within the reach, with fewer atomics.
//   Atomic<T>        (atomic_handles.h) `field.max(from, coord, v)` and others, any active cell.
//   Grow<T>          `field.set(from, coord, v)` activates the cell and stores, `add` activates and adds;
//                    `activate`, `deactivate` and `is_active` change and test topology.
//   Append<T>        on a dynamic node (list_handles.h): `field.append(from, coord, v)`, `set`, `length`, `deactivate`.
//
// An access that breaks a role only while it runs is found by COPPICE_DEBUG=checks (checks.h,
// docs/debugging.md).
#pragma once
#include <type_traits>

#include "sparse/device/atomics.h"
#include "sparse/device/temporary_checks.h"

namespace coppice {

template <class T, class Reach = Point>
struct Read : Handle<T, Role::kRead> {
  using Handle<T, Role::kRead>::Handle;
  static constexpr int kRadius = Reach::kRadius;
  static constexpr bool kStar = Reach::kStar;

  template <int D>
  COPPICE_HARMLESS COPPICE_INLINE device::ReadValue<T> operator[](const Cell<D>& cell) const {
    if (!this->may(cell, effect::kReads)) return T{};
    const uint32_t b = this->id.field;
    if (device::is_checked_temporary(b) && !device::has_value_at(cell.context->block, b, cell.coord()))
      return T{};
    return load(cell, 0, 0, 0);
  }
  template <int D>
  COPPICE_ACCESS COPPICE_INLINE device::ReadValue<T> operator[](const Entry<D>& entry) const {
    if (!this->may(entry, effect::kReads)) return T{};
    const uint32_t b = this->id.field;
    if (device::is_checked_temporary(b) && !device::has_value_for(entry, b)) return T{};
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
  // Reads anywhere, by a tree walk. `from` is the kernel's cell, block or item.
  template <class From, int D>
  COPPICE_HARMLESS COPPICE_ANYWHERE COPPICE_INLINE T at(const From& from, const int32_t (&coord)[D]) const {
    if (!this->may(from, effect::kReads, device::kAnyReach)) return T{};
    const device::FieldBinding& f = this->binding();
    const LaunchBlock* block = device::launch_of(from);
    const Coord c = this->coord_of(from, coord);
    if (device::refuses_others(block, this->id.field, c)) return T{};
    device::check_domain(block, this->id.field, c);
    if (device::is_checked_temporary(this->id.field) && !device::has_value_at(block, this->id.field, c))
      return T{};
    const device::CellRef p = device::find(this->layout(), device::tree_state(block, f.tree), c);
    return *device::value_at<T>(block, f, p.container, p.index);
  }
  // Returns element `index` of the list at `coord` of a dynamic node (without an index: the first); zero
  // where there is none.
  template <class From, int D>
  COPPICE_HARMLESS COPPICE_ANYWHERE COPPICE_INLINE T at(const From& from, const int32_t (&coord)[D],
                                                        int64_t index) const {
    if (!this->may(from, effect::kReads, device::kAnyReach)) return T{};
    const Coord c = this->coord_of(from, coord);
    if (device::lacks_lists(device::launch_of(from), this->id.field)) return T{};
    if (device::refuses_others(device::launch_of(from), this->id.field, c)) return T{};
    if (device::is_checked_temporary(this->id.field) &&
        !device::has_element_at(device::launch_of(from), this->id.field, c, index))
      return T{};
    return device::element<T>(device::launch_of(from), this->id.field, c, index);
  }
  template <class From, int D>
  COPPICE_HARMLESS COPPICE_ANYWHERE COPPICE_INLINE uint32_t length(const From& from,
                                                                   const int32_t (&coord)[D]) const {
    if (!this->may(from, effect::kReads, device::kAnyReach)) return 0;
    if (device::lacks_lists(device::launch_of(from), this->id.field)) return 0;
    return device::length_at(device::launch_of(from), this->id.field, this->coord_of(from, coord));
  }
  // Returns whether the cell at a coordinate is active; outside of the domain none is.
  template <class From, int D>
  COPPICE_TESTS COPPICE_ANYWHERE COPPICE_INLINE bool is_active(const From& from,
                                                               const int32_t (&coord)[D]) const {
    if (!this->may_do(from, effect::kTests)) return false;
    return device::is_active_at(device::launch_of(from), this->id.field, this->coord_of(from, coord));
  }
  // Returns the values of a block's own container, cell 0 first (struct-of-arrays leaves; sibling leaves
  // of the same cell too).
  template <int D>
  COPPICE_ACCESS COPPICE_INLINE Values<const T> data(const Block<D>& block) const {
    if (!this->may(block, effect::kReads)) return this->template no_values<const T>(block);
    return device::block_values<const T>(block, this->id.field);
  }
  // Returns the values of a neighbouring block, (dx, dy, dz) in -1..1; an inactive one reads as zeros.
  template <int D>
  COPPICE_ACCESS COPPICE_NEIGHBOURS COPPICE_INLINE Values<const T> neighbour_data(
      const Block<D>& block, const int32_t (&d)[D]) const {
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
    const uint32_t b = this->id.field;
    if (device::is_checked_temporary(b) &&
        !device::has_value_at(cell.context->block, b, device::plus(cell.coord(), d)))
      return T{};
    return load(cell, d.x, d.y, d.z);
  }
  template <int D>
  COPPICE_INLINE T load(const Cell<D>& cell, int dx, int dy, int dz) const;
};

template <class T>
struct Write : Handle<T, Role::kWrite> {
  using Handle<T, Role::kWrite>::Handle;
  class Target : public device::StoreOnly<T> {
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
    if (device::is_checked_temporary(this->id.field))
      device::mark_cell(cell.context->block, this->id.field, cell.context->container, cell.index);
    if (device::blends())
      return Target(reinterpret_cast<T*>(cell.context->write_base[this->id.field]) + cell.index);
    return Target(device::value_at<T>(cell.context->block, f, cell.context->container, cell.index));
  }
  template <int D>
  COPPICE_ACCESS COPPICE_INLINE Target operator[](const Entry<D>& entry) const {
    if (!this->may(entry, effect::kStores)) return Target(nullptr);
    if (device::is_checked_temporary(this->id.field)) device::mark_element(entry, this->id.field);
    return Target(device::value_of<T>(entry, this->binding()));
  }
  template <int D>
  COPPICE_ACCESS COPPICE_INLINE Values<T> data(const Block<D>& block) const {
    if (!this->may(block, effect::kStores)) return this->template no_values<T>(block);
    if (device::is_checked_temporary(this->id.field)) device::mark_block(block, this->id.field);
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
    if (device::is_checked_temporary(this->id.field))
      device::has_value_at(cell.context->block, this->id.field, cell.coord());
    return *device::value_at<T>(cell.context->block, this->binding(), cell.context->container, cell.index);
  }
  template <int D>
  COPPICE_ACCESS COPPICE_INLINE T& operator[](const Entry<D>& entry) const {
    if (!this->may_or_is_wide(entry, effect::kChanges)) return device::refused<T>(entry.launch, nullptr);
    if (device::is_checked_temporary(this->id.field)) device::has_value_for(entry, this->id.field);
    return *device::value_of<T>(entry, this->binding());
  }
  template <int D>
  COPPICE_ACCESS COPPICE_INLINE Values<T> data(const Block<D>& block) const {
    if (!this->may(block, effect::kChanges)) return this->template no_values<T>(block);
    return device::block_values<T>(block, this->id.field).changed();
  }
};

// Adds to any active cells. T is a float, a double, an integer of 32 or 64 bits, one of Eigen's matrices or a
// std::array of these, or a struct of at most 8 of all of these (and no C arrays): a value costs one walk to
// its cell, and an atomic addition for each of its numbers. Others may see some of them added, and some not
// yet.
template <class T, class Reach = Point>
struct Accumulate : Handle<T, Role::kAccumulate> {
  using Handle<T, Role::kAccumulate>::Handle;
  template <class From, int D>
  COPPICE_ACCESS COPPICE_INLINE void add(const From& from, const int32_t (&coord)[D], const T& value) const;
};

// Sums of a leaf's cells meet in a tile first and go to the tree once per leaf.
template <class T, class Reach>
requires(Reach::kRadius > 0) struct Accumulate<T, Reach> : Handle<T, Role::kAccumulate> {
  using Handle<T, Role::kAccumulate>::Handle;
  static constexpr int kRadius = Reach::kRadius;
  static constexpr bool kStar = Reach::kStar;
  template <int D>
  COPPICE_ACCESS COPPICE_INLINE void add(const Cell<D>& cell, const int32_t (&offset)[D],
                                         const T& value) const;
};

// But for add(), everything Grow does is the same when done twice, so a launch that ran out of cells can be
// repeated after growth.
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
    const device::CellRef p = device::find_or_activate(block, this->layout(), f.tree, this->id.field,
                                                       this->coord_of(from, coord), device::walks_of(from));
    if (!p.active || device::makes_room()) return;
    if (device::is_checked_temporary(this->id.field))
      device::mark_cell(block, this->id.field, p.container, p.index);
    device::store_shared(device::value_at<T>(block, f, p.container, p.index), value);
  }
  // Activates the cell and adds to its value, which is zero where it has just become active. T is what
  // Accumulate adds, and so is the cost, behind that of the activation.
  template <class From, int D>
  COPPICE_ACTIVATES COPPICE_INLINE void add(const From& from, const int32_t (&coord)[D],
                                            const T& value) const;
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
    device::check_deactivates(device::launch_of(from), this->id.field, c);
    device::deactivate(device::launch_of(from), this->layout(), this->binding().tree, c);
  }
  template <class From, int D>
  COPPICE_TESTS COPPICE_INLINE bool is_active(const From& from, const int32_t (&coord)[D]) const {
    if (!this->may_do(from, effect::kTests)) return false;
    return device::is_active_at(device::launch_of(from), this->id.field, this->coord_of(from, coord, false));
  }
};

// Names a node's topology without a value (Node::topology() on the host).
using Topology = Grow<unsigned char>;

}  // namespace coppice
