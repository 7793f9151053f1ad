// Checks of what kernels do with their handles, compiled in with COPPICE_DEBUG=checks and folded away without
// it.
//
// Device-clean. A check that fails raises a status (gpu/launch_block.h) that names field, coordinate
// or index, and offset; the access itself is then harmless: it reads zeros, or writes where nobody
// reads. docs/debugging.md lists them.
#pragma once
#include <type_traits>

#include "gpu/effects.h"
#include "sparse/device/activation.h"
#include "sparse/device/marks.h"

namespace coppice::device {

COPPICE_INLINE bool debug_checks() { return coppice_debug_checks != 0; }

COPPICE_INLINE void raise_at(const LaunchBlock* block, DeviceStatus status, uint32_t binding, Coord c,
                             Coord offset = {0, 0, 0}) {
  raise_status(block, status, coppice_fields[binding].tree, binding, c, offset);
}

// Returns where a refused access goes: zeros that may be overwritten. Larger values go to `instead`.
template <class T>
COPPICE_INLINE T& refused(const LaunchBlock* block, T* instead) {
  if constexpr (sizeof(T) > kSinkBytes) return *instead;
  __builtin_memset(block->context->sink, 0, sizeof(T));
  return *reinterpret_cast<T*>(block->context->sink);
}

// Returns whether the launch's uses say that it does `effects` to a handle's field, as far away as
// `reach`. A false answer is an error: the handle was made of other bytes than those of a launch's
// argument, or the list of what the kernel does is not its own. It is a function of its own in a kernel
// file's bitcode, since it is called wherever a handle is used.
[[gnu::noinline]] inline bool is_used(const LaunchBlock* block, uint32_t binding, uint32_t effects,
                                      int32_t reach, uint32_t value_bytes) {
  if (binding < static_cast<uint32_t>(kMaxBindings)) {
    const FieldBinding& f = coppice_fields[binding];
    const bool fits = value_bytes == 0 || value_bytes == f.value_bytes;
    if ((f.uses & effects) == effects && reach <= f.reach && fits) return true;
  }
  raise_status(block, DeviceStatus::kOutOfUses, 0, binding, Coord{static_cast<int32_t>(effects), 0, 0});
  return false;
}

// Reading outside the domain gives zeros; it is an error only to the checks.
COPPICE_INLINE void check_domain(const LaunchBlock* block, uint32_t binding, Coord c) {
  if (debug_checks() && !in_domain(coppice_nodes[coppice_fields[binding].node], c))
    raise_at(block, DeviceStatus::kOutsideDomain, binding, c);
}

// Deactivating a dense node's cell does nothing; it is an error only to the checks.
COPPICE_INLINE void check_deactivates(const LaunchBlock* block, uint32_t binding, Coord c) {
  if (!debug_checks()) return;
  const NodeLayout& node = coppice_nodes[coppice_fields[binding].node];
  if (node.level[node.depth - 1].kind == NodeKind::kDense)
    raise_at(block, DeviceStatus::kAlwaysActive, binding, c);
}

// Raises an error where other cells are changing meanwhile. That is known when the kernel is specialized,
// so that it costs nothing where it is fine.
COPPICE_INLINE bool refuses_others(const LaunchBlock* block, uint32_t binding, Coord c) {
  if ((coppice_fields[binding].access & kChangedHere) == 0) return false;
  raise_at(block, DeviceStatus::kReadOfChanged, binding, c);
  return true;
}

// Records what a kernel must not do with a handle, where the test for it has come out so
// (coppice_misuse()). Returns true where it is a status, too: of launches that look for one. What is done
// then must be harmless.
COPPICE_INLINE bool misuses(const LaunchBlock* block, DeviceStatus what, uint32_t binding, uint32_t given,
                            bool is_looked_for) {
  coppice_misuse(static_cast<uint32_t>(what), binding, given);
  if (!is_looked_for && !debug_checks()) return false;
  raise_at(block, what, binding, {static_cast<int32_t>(given), 0, 0});
  return true;
}

// Returns true where the own cell's value is asked for of a field whose node has other cells than the one
// looped over.
COPPICE_INLINE bool lacks_own_cell(const LaunchBlock* block, uint32_t binding, bool is_looked_for) {
  const uint32_t access = coppice_fields[binding].access;
  return (access & kSameCells) == 0 && misuses(block, DeviceStatus::kOtherCells, binding, 0, is_looked_for);
}

// Returns whether an offset is within a Star or Box of this radius.
COPPICE_INLINE bool reaches(int radius, bool star, Coord d) {
  const bool box =
      d.x >= -radius && d.x <= radius && d.y >= -radius && d.y <= radius && d.z >= -radius && d.z <= radius;
  return box && (!star || (d.x != 0) + (d.y != 0) + (d.z != 0) <= 1);
}

}  // namespace coppice::device

namespace coppice {

// Gives the values of a block, cell 0 first: it converts to a pointer, and knows its length, and which values
// a temporary has, while it is indexed.
template <class T>
class Values {
 public:
  static constexpr uint32_t kRefused = ~0u;  // for a binding: these are no values of a field
  COPPICE_INLINE Values(T* first, const LaunchBlock* launch, uint32_t binding, device::Coord origin)
      : first_(first), launch_(launch), binding_(binding), origin_(origin) {}
  COPPICE_INLINE operator T*() const { return first_; }
  COPPICE_INLINE T* operator->() const { return first_; }
  template <class Index, class = std::enable_if_t<std::is_integral_v<Index>>>
  COPPICE_ACCESS COPPICE_INLINE T& operator[](Index i) const {
    if (device::debug_checks()) {
      if (binding_ == kRefused) return device::refused(launch_, first_);
      const device::FieldBinding& f = coppice_fields[binding_];
      const auto index = static_cast<int64_t>(i);
      if (index < 0 || index >= f.num_values) {
        device::raise_status(launch_, DeviceStatus::kOutOfValues, f.tree, binding_,
                             device::StatusPlace{{index, f.num_values, 0}, origin_});
        return device::refused(launch_, first_);
      }
      if (f.mark != 0 && must_be_written_ && !is_written(f, static_cast<uint32_t>(index)))
        return device::refused(launch_, first_);
    }
    return first_[i];
  }
  // Returns the same values for who changes what is there.
  COPPICE_INLINE Values changed() const {
    Values values = *this;
    values.must_be_written_ = true;
    return values;
  }

 private:
  COPPICE_INLINE bool is_written(const device::FieldBinding& f, uint32_t index) const {
    const device::NodeLayout& node = coppice_nodes[f.node];
    const device::LevelLayout& leaf = node.level[node.depth - 1];
    auto* const container =
        reinterpret_cast<unsigned char*>(const_cast<std::remove_const_t<T>*>(first_)) - f.offset;
    if (!device::is_there(node, device::tree_state(launch_, f.tree), container)) return true;
    const device::Coord c{origin_.x + static_cast<int32_t>(index / leaf.extent[2] / leaf.extent[1]),
                          origin_.y + static_cast<int32_t>(index / leaf.extent[2] % leaf.extent[1]),
                          origin_.z + static_cast<int32_t>(index % leaf.extent[2])};
    return device::is_marked(
        launch_, binding_,
        reinterpret_cast<uint64_t*>(container + f.marks_offset + index * uint64_t{f.marks_stride}), c);
  }

  T* first_;
  const LaunchBlock* launch_;
  uint32_t binding_;
  device::Coord origin_;
  bool must_be_written_ = std::is_const_v<T>;
};

}  // namespace coppice
