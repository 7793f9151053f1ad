// The atomic operations of handles on single cells: Grow's sums, and all of Atomic's.
//
// Device-clean.
#pragma once
#include "sparse/device/tiles.h"

namespace coppice {

template <class T>
template <class From, int D>
COPPICE_INLINE void Grow<T>::add(const From& from, const int32_t (&coord)[D], const T& value) const {
  static_assert(device::is_sum<T>(), COPPICE_WHAT_IS_ADDED);
  using namespace device;
  if (!this->may(from, effect::kAdds | effect::kActivates, kAnyReach)) return;
  const LaunchBlock* block = launch_of(from);
  const FieldBinding& f = this->binding();
  const Coord c = this->coord_of(from, coord);
  const CellRef p = find_or_activate(block, this->layout(), f.tree, this->id.field, c, walks_of(from));
  if (!p.active || makes_room()) return;
  if (is_checked_temporary(this->id.field) && !has_value_at(block, this->id.field, c)) return;
  atomic_add_value(value_at<T>(block, f, p.container, p.index), value);
}

// A run that only makes room changes nothing, and gives what is there.
template <class T>
template <class From, int D, class Visit>
COPPICE_INLINE T Atomic<T>::visit(const From& from, const int32_t (&coord)[D], uint32_t effects,
                                  const Visit& visit) const {
  using namespace device;
  if (!this->may(from, effects, kAnyReach)) return T{};
  const LaunchBlock* block = launch_of(from);
  const Coord c = this->coord_of(from, coord);
  const FieldBinding& f = this->binding();
  const CellRef p = find(this->layout(), tree_state(block, f.tree), c);
  if (!is_active(this->layout(), p)) {
    if (!makes_room()) miss_sum(block, this->id.field, c);
    return T{};
  }
  if (is_checked_temporary(this->id.field) && !has_value_at(block, this->id.field, c)) return T{};
  T* const value = value_at<T>(block, f, p.container, p.index);
  return makes_room() ? load_shared(value) : visit(value);
}
template <class T>
template <class From, int D>
COPPICE_INLINE T Atomic<T>::at(const From& from, const int32_t (&coord)[D]) const {
  return visit(
      from, coord, effect::kReads,
      [](T * p) __attribute__((always_inline)) { return device::load_shared(p); });
}
template <class T>
template <class From, int D>
COPPICE_INLINE T Atomic<T>::add(const From& from, const int32_t (&coord)[D], T value) const {
  return visit(
      from, coord,
      effect::kChanges, [&](T * p) __attribute__((always_inline)) { return device::atomic_add(p, value); });
}
template <class T>
template <class From, int D>
COPPICE_INLINE T Atomic<T>::min(const From& from, const int32_t (&coord)[D], T value) const {
  return visit(
      from, coord,
      effect::kChanges, [&](T * p) __attribute__((always_inline)) { return device::fetch_min(p, value); });
}
template <class T>
template <class From, int D>
COPPICE_INLINE T Atomic<T>::max(const From& from, const int32_t (&coord)[D], T value) const {
  return visit(
      from, coord,
      effect::kChanges, [&](T * p) __attribute__((always_inline)) { return device::fetch_max(p, value); });
}
template <class T>
template <class From, int D>
COPPICE_INLINE T Atomic<T>::bit_or(const From& from, const int32_t (&coord)[D],
                                   T value) const requires std::is_integral_v<T> {
  return visit(
      from, coord,
      effect::kChanges, [&](T * p) __attribute__((always_inline)) { return device::fetch_or(p, value); });
}
template <class T>
template <class From, int D>
COPPICE_INLINE T Atomic<T>::bit_and(const From& from, const int32_t (&coord)[D],
                                    T value) const requires std::is_integral_v<T> {
  return visit(
      from, coord,
      effect::kChanges, [&](T * p) __attribute__((always_inline)) { return device::fetch_and(p, value); });
}
template <class T>
template <class From, int D>
COPPICE_INLINE T Atomic<T>::bit_xor(const From& from, const int32_t (&coord)[D],
                                    T value) const requires std::is_integral_v<T> {
  return visit(
      from, coord,
      effect::kChanges, [&](T * p) __attribute__((always_inline)) { return device::fetch_xor(p, value); });
}
template <class T>
template <class From, int D>
COPPICE_INLINE T Atomic<T>::exchange(const From& from, const int32_t (&coord)[D], T value) const {
  return visit(
      from, coord, effect::kChanges, [&](T * p) __attribute__((always_inline)) {
        return device::exchange_number(p, value);
      });
}
template <class T>
template <class From, int D>
COPPICE_INLINE T Atomic<T>::compare_exchange(const From& from, const int32_t (&coord)[D], T expected,
                                             T desired) const {
  return visit(
      from, coord, effect::kChanges, [&](T * p) __attribute__((always_inline)) {
        return device::compare_exchange_number(p, expected, desired);
      });
}

}  // namespace coppice
