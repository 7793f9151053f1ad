// The handle whose operations on single cells are atomic, and give what was there before.
//
// Device-clean.
#pragma once
#include "sparse/device/handles.h"

namespace coppice {

// Reads and changes any active cells, each by one atomic operation that gives what was there before; of a
// cell that is not active that is zero, and a counted miss. T is a float, a double or an integer of 32 or 64
// bits. All are relaxed: they order nothing but the cell's value. Where a sum alone is wanted, Accumulate
// takes fewer atomic operations, and its launches need not run one behind the other.
template <class T>
struct Atomic : Handle<T, Role::kAtomic> {
  using Handle<T, Role::kAtomic>::Handle;
  static_assert(device::AtomicNumber<T>, "an Atomic is of float, double, or integers of 32 or 64 bits");

  // Returns the value as it is at that moment.
  template <class From, int D>
  COPPICE_ACCESS COPPICE_INLINE T at(const From& from, const int32_t (&coord)[D]) const;
  template <class From, int D>
  COPPICE_ACCESS COPPICE_INLINE T add(const From& from, const int32_t (&coord)[D], T value) const;
  // Keep the smaller, or the larger, of the cell's value and this one. A NaN is neither.
  template <class From, int D>
  COPPICE_ACCESS COPPICE_INLINE T min(const From& from, const int32_t (&coord)[D], T value) const;
  template <class From, int D>
  COPPICE_ACCESS COPPICE_INLINE T max(const From& from, const int32_t (&coord)[D], T value) const;
  template <class From, int D>
  COPPICE_ACCESS COPPICE_INLINE T bit_or(const From& from, const int32_t (&coord)[D],
                                         T bits) const requires std::is_integral_v<T>;
  template <class From, int D>
  COPPICE_ACCESS COPPICE_INLINE T bit_and(const From& from, const int32_t (&coord)[D],
                                          T bits) const requires std::is_integral_v<T>;
  template <class From, int D>
  COPPICE_ACCESS COPPICE_INLINE T bit_xor(const From& from, const int32_t (&coord)[D],
                                          T bits) const requires std::is_integral_v<T>;
  template <class From, int D>
  COPPICE_ACCESS COPPICE_INLINE T exchange(const From& from, const int32_t (&coord)[D], T value) const;
  // Stores `desired` where the value is `expected`, which is so if that is what this returns. Bits are
  // compared: of floats, -0 is not +0, and a NaN is itself.
  template <class From, int D>
  COPPICE_ACCESS COPPICE_INLINE T compare_exchange(const From& from, const int32_t (&coord)[D], T expected,
                                                   T desired) const;

 private:
  // Gives visit(address) for an active cell's value.
  template <class From, int D, class Visit>
  COPPICE_INLINE T visit(const From& from, const int32_t (&coord)[D], uint32_t effects,
                         const Visit& visit) const;
};

}  // namespace coppice
