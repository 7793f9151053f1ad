// A float of 16 bits, for fields that are stored in half the room.
//
// Device-clean. Kernels and host compute with floats; a Half is what they load from and store to.
#pragma once
#include <stdint.h>

#if !defined(__clang__)
#include "core/math.h"
#endif

namespace coppice {

// This is IEEE 754's binary16: 11 significant bits, from 6e-8 to 65504; larger ones become infinite. A float
// is rounded to the nearest one, and of two as near to the even one.
struct Half {
  Half() = default;
#if defined(__clang__)
  Half(float value) : bits(__builtin_bit_cast(uint16_t, static_cast<_Float16>(value))) {}
  operator float() const { return __builtin_bit_cast(_Float16, bits); }
#else
  Half(float value) : bits(Eigen::half_impl::float_to_half_rtne(value).x) {}
  operator float() const {
    return Eigen::half_impl::half_to_float(Eigen::half_impl::raw_uint16_to_half(bits));
  }
#endif

  uint16_t bits;
};
static_assert(sizeof(Half) == 2);

}  // namespace coppice
