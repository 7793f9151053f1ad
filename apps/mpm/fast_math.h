// Branch-free exp, expm1, log, pow and the cosine of a third of an angle for kernels: they vectorise without
// a vector math library.
//
// Device-clean. The float versions are our own; the double overloads forward to <cmath> and exist so that
// tests can differentiate energies numerically through the same templates. Measured bounds are asserted in
// mpm_fast_math_test.cc; arguments out of the stated range are clamped into it, never undefined.
#pragma once

#include "apps/mpm/mpm_types.h"

namespace coppice::mpm {

// e^x - 1 split as 2^k * expm1(r) + (2^k - 1), |r| <= ln(2)/2; shared by exp and expm1.
struct ReducedExp {
  float scale;  // 2^k
  float tail;   // expm1(r)
};

COPPICE_INLINE ReducedExp reduce_exp(float x) {
  x = clamp_to(x, -87.0f, 88.0f);  // keeps 2^k a normal number
  const float k = std::floor(x * 1.44269504f + 0.5f);
  float r = x - k * 0.693359375f;  // ln 2 in two pieces: the product with the short one is exact
  r = r + k * 2.12194440e-4f;
  float p = 1.0f / 5040.0f;  // Taylor to r^7: the remainder is below 6e-9 of e^r
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = (p * r) * r + r;
  const std::int32_t bits = (static_cast<std::int32_t>(k) + 127) << 23;
  return {__builtin_bit_cast(float, bits), p};
}

// e^x for x in [-87, 88]; relative error <= 2e-7.
COPPICE_INLINE float fast_exp(float x) {
  const ReducedExp e = reduce_exp(x);
  return e.scale * e.tail + e.scale;
}

// e^x - 1 for x in [-87, 88]; relative error <= 4e-7, also for |x| near 0.
COPPICE_INLINE float fast_expm1(float x) {
  const ReducedExp e = reduce_exp(x);
  return e.scale * e.tail + (e.scale - 1.0f);
}

// ln(x) for normal positive x; smaller x, zero and negatives give ln(1.18e-38). Relative error <= 3e-7, also
// near 1. x = 2^e m with m in [1/sqrt 2, sqrt 2); ln m = 2 artanh(s), s = (m - 1)/(m + 1), |s| < 0.172.
COPPICE_INLINE float fast_log(float x) {
  x = max_of(x, 1.17549435e-38f);
  const std::int32_t bits = __builtin_bit_cast(std::int32_t, x);
  const std::int32_t offset = bits - 0x3f3504f3;  // distance from 1/sqrt 2, so that m is centred on 1
  const std::int32_t exponent = offset >> 23;
  const float m = __builtin_bit_cast(float, bits - (exponent << 23));
  const float s = (m - 1.0f) / (m + 1.0f);
  const float z = s * s;
  float p = 2.0f / 9.0f;  // series of 2 artanh to s^9: the remainder is below 3e-9 of ln m
  p = p * z + 2.0f / 7.0f;
  p = p * z + 2.0f / 5.0f;
  p = p * z + 2.0f / 3.0f;
  const float log_m = (p * z) * s + 2.0f * s;
  const float e = static_cast<float>(exponent);
  return e * 0.693359375f + (log_m - e * 2.12194440e-4f);
}

// x^y for normal positive x; relative error about (2 + 3 |y ln x|) * 1e-7, result clamped to e^[-87, 88].
COPPICE_INLINE float fast_pow(float x, float y) { return fast_exp(y * fast_log(x)); }

// cos(arccos(x) / 3) for x in [-1, 1], which it is clamped to: the largest root y of 4 y^3 - 3 y = x.
// Absolute error <= 4e-7. It is a smooth function of cos(arccos(x) / 2), and a polynomial through Chebyshev
// points of that.
COPPICE_INLINE float fast_cos_third(float x) {
  const float s = std::sqrt(0.5f * clamp_to(x, -1.0f, 1.0f) + 0.5f);
  float p = -0.0021034910f;
  p = p * s + 0.0105017536f;
  p = p * s - 0.0263997493f;
  p = p * s + 0.0514747633f;
  p = p * s - 0.1108054709f;
  p = p * s + 0.5773319021f;
  return p * s + 0.5000001860f;
}

COPPICE_INLINE double fast_exp(double x) { return std::exp(x); }
COPPICE_INLINE double fast_expm1(double x) { return std::expm1(x); }
COPPICE_INLINE double fast_log(double x) { return std::log(x > 1e-300 ? x : 1e-300); }
COPPICE_INLINE double fast_pow(double x, double y) { return std::pow(x, y); }
COPPICE_INLINE double fast_cos_third(double x) { return std::cos(std::acos(clamp_to(x, -1.0, 1.0)) / 3); }

}  // namespace coppice::mpm
