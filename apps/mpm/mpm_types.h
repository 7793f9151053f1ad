// Small fixed-size vectors and matrices, and the enumerations that host and device code of the MPM solver
// share.
//
// Device-clean: compiled to bitcode as well as by the host compiler. Everything is passed by value and every
// loop has a constant trip count and is fully unrolled, so that the arrays dissolve into registers and a loop
// over particles around these calls vectorises. Matrices are row-major: m[row * D + column].
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "apps/scene/material_kind.h"
#include "core/device_macros.h"

namespace coppice::mpm {

using scene::BoundaryKind;
using scene::MaterialKind;

template <class T, int D>
struct SmallVec {
  T v[D];

  COPPICE_INLINE constexpr T& operator[](int i) { return v[i]; }
  COPPICE_INLINE constexpr T operator[](int i) const { return v[i]; }
};

template <class T, int D>
struct SmallMat {
  T m[D * D];  // row-major

  COPPICE_INLINE constexpr T& operator()(int row, int column) { return m[row * D + column]; }
  COPPICE_INLINE constexpr T operator()(int row, int column) const { return m[row * D + column]; }
};

static_assert(sizeof(SmallVec<float, 3>) == 12 && sizeof(SmallMat<float, 3>) == 36);
static_assert(std::is_trivially_copyable_v<SmallMat<float, 3>> && std::is_aggregate_v<SmallMat<float, 3>>);

// Selects instead of std::min/max: they become one instruction each and never a branch. A NaN in `a` yields
// `b`.
template <class T>
COPPICE_INLINE constexpr T min_of(T a, T b) {
  return a < b ? a : b;
}
template <class T>
COPPICE_INLINE constexpr T max_of(T a, T b) {
  return a > b ? a : b;
}
template <class T>
COPPICE_INLINE constexpr T clamp_to(T x, T low, T high) {
  return min_of(max_of(x, low), high);
}

template <class T, int D>
COPPICE_INLINE constexpr SmallVec<T, D> operator+(SmallVec<T, D> a, SmallVec<T, D> b) {
  COPPICE_UNROLL for (int i = 0; i < D; ++i) a.v[i] += b.v[i];
  return a;
}
template <class T, int D>
COPPICE_INLINE constexpr SmallVec<T, D> operator-(SmallVec<T, D> a, SmallVec<T, D> b) {
  COPPICE_UNROLL for (int i = 0; i < D; ++i) a.v[i] -= b.v[i];
  return a;
}
template <class T, int D>
COPPICE_INLINE constexpr SmallVec<T, D> operator*(T s, SmallVec<T, D> a) {
  COPPICE_UNROLL for (int i = 0; i < D; ++i) a.v[i] *= s;
  return a;
}
template <class T, int D>
COPPICE_INLINE constexpr T dot(SmallVec<T, D> a, SmallVec<T, D> b) {
  T sum = a.v[0] * b.v[0];
  COPPICE_UNROLL for (int i = 1; i < D; ++i) sum = a.v[i] * b.v[i] + sum;
  return sum;
}
template <class T>
COPPICE_INLINE constexpr SmallVec<T, 3> cross(SmallVec<T, 3> a, SmallVec<T, 3> b) {
  return {{a.v[1] * b.v[2] - a.v[2] * b.v[1], a.v[2] * b.v[0] - a.v[0] * b.v[2],
           a.v[0] * b.v[1] - a.v[1] * b.v[0]}};
}

template <class T, int D>
COPPICE_INLINE constexpr SmallMat<T, D> scaled_identity(T s) {
  SmallMat<T, D> r{};
  COPPICE_UNROLL for (int i = 0; i < D; ++i) r.m[i * D + i] = s;
  return r;
}
template <class T, int D>
COPPICE_INLINE constexpr SmallMat<T, D> identity() {
  return scaled_identity<T, D>(T(1));
}
template <class T, int D>
COPPICE_INLINE constexpr SmallMat<T, D> operator+(SmallMat<T, D> a, SmallMat<T, D> b) {
  COPPICE_UNROLL for (int i = 0; i < D * D; ++i) a.m[i] += b.m[i];
  return a;
}
template <class T, int D>
COPPICE_INLINE constexpr SmallMat<T, D> operator-(SmallMat<T, D> a, SmallMat<T, D> b) {
  COPPICE_UNROLL for (int i = 0; i < D * D; ++i) a.m[i] -= b.m[i];
  return a;
}
template <class T, int D>
COPPICE_INLINE constexpr SmallMat<T, D> operator*(T s, SmallMat<T, D> a) {
  COPPICE_UNROLL for (int i = 0; i < D * D; ++i) a.m[i] *= s;
  return a;
}

// c + a * b, each entry one chain of multiply-adds.
template <class T, int D>
COPPICE_INLINE constexpr SmallMat<T, D> multiply_add(SmallMat<T, D> a, SmallMat<T, D> b, SmallMat<T, D> c) {
  COPPICE_UNROLL for (int i = 0; i < D; ++i) {
    COPPICE_UNROLL for (int j = 0; j < D; ++j) {
      T sum = c.m[i * D + j];
      COPPICE_UNROLL for (int k = 0; k < D; ++k) sum = a.m[i * D + k] * b.m[k * D + j] + sum;
      c.m[i * D + j] = sum;
    }
  }
  return c;
}
template <class T, int D>
COPPICE_INLINE constexpr SmallMat<T, D> operator*(SmallMat<T, D> a, SmallMat<T, D> b) {
  SmallMat<T, D> r{};
  COPPICE_UNROLL for (int i = 0; i < D; ++i) {
    COPPICE_UNROLL for (int j = 0; j < D; ++j) {
      T sum = a.m[i * D] * b.m[j];
      COPPICE_UNROLL for (int k = 1; k < D; ++k) sum = a.m[i * D + k] * b.m[k * D + j] + sum;
      r.m[i * D + j] = sum;
    }
  }
  return r;
}
template <class T, int D>
COPPICE_INLINE constexpr SmallVec<T, D> operator*(SmallMat<T, D> a, SmallVec<T, D> x) {
  SmallVec<T, D> r{};
  COPPICE_UNROLL for (int i = 0; i < D; ++i) {
    T sum = a.m[i * D] * x.v[0];
    COPPICE_UNROLL for (int k = 1; k < D; ++k) sum = a.m[i * D + k] * x.v[k] + sum;
    r.v[i] = sum;
  }
  return r;
}
template <class T, int D>
COPPICE_INLINE constexpr SmallMat<T, D> transpose(SmallMat<T, D> a) {
  SmallMat<T, D> r{};
  COPPICE_UNROLL for (int i = 0; i < D; ++i) {
    COPPICE_UNROLL for (int j = 0; j < D; ++j) r.m[i * D + j] = a.m[j * D + i];
  }
  return r;
}
template <class T, int D>
COPPICE_INLINE constexpr SmallVec<T, D> column(SmallMat<T, D> a, int j) {
  SmallVec<T, D> r{};
  COPPICE_UNROLL for (int i = 0; i < D; ++i) r.v[i] = a.m[i * D + j];
  return r;
}
template <class T, int D>
COPPICE_INLINE constexpr T trace(SmallMat<T, D> a) {
  T sum = a.m[0];
  COPPICE_UNROLL for (int i = 1; i < D; ++i) sum += a.m[i * D + i];
  return sum;
}
template <class T, int D>
COPPICE_INLINE constexpr T determinant(SmallMat<T, D> a) {
  if constexpr (D == 2) {
    return a.m[0] * a.m[3] - a.m[1] * a.m[2];
  } else {
    return a.m[0] * (a.m[4] * a.m[8] - a.m[5] * a.m[7]) - a.m[1] * (a.m[3] * a.m[8] - a.m[5] * a.m[6]) +
           a.m[2] * (a.m[3] * a.m[7] - a.m[4] * a.m[6]);
  }
}

// u * diag(s) * u^T. Only one triangle is computed, so the result is symmetric to the last bit.
template <class T, int D>
COPPICE_INLINE constexpr SmallMat<T, D> conjugate_diagonal(SmallMat<T, D> u, SmallVec<T, D> s) {
  SmallMat<T, D> r{};
  COPPICE_UNROLL for (int i = 0; i < D; ++i) {
    COPPICE_UNROLL for (int j = i; j < D; ++j) {
      T sum = u.m[i * D] * s.v[0] * u.m[j * D];
      COPPICE_UNROLL for (int k = 1; k < D; ++k) sum = u.m[i * D + k] * s.v[k] * u.m[j * D + k] + sum;
      r.m[i * D + j] = sum;
      r.m[j * D + i] = sum;
    }
  }
  return r;
}

}  // namespace coppice::mpm
