// Small fixed-size vectors and matrices: Eigen's, laid out alike in the host program and in kernels.
//
// Vec and Mat hold their elements densely, column by column, and align as one element does, whatever the
// compiler's vector extensions: Eigen's over-alignment (16 bytes for Vector4f when vectorised, 4 when not) is
// switched off here, so that clang's bitcode and the host agree on every struct. Include this before, or
// instead of, any Eigen header.
//
// Device-clean: kernels include it for arguments and values of these types.
#pragma once

#if defined(EIGEN_CORE_H) && !defined(COPPICE_CORE_MATH_H)
#error "include core/math.h before any Eigen header: it fixes the alignment of Eigen's types"
#endif
#define COPPICE_CORE_MATH_H
#ifndef EIGEN_MAX_STATIC_ALIGN_BYTES
#define EIGEN_MAX_STATIC_ALIGN_BYTES 0
#endif
#ifndef EIGEN_MPL2_ONLY
#define EIGEN_MPL2_ONLY
#endif

#include <Eigen/Core>
#include <Eigen/Geometry>
#include <Eigen/LU>
#include <cstdint>
#include <limits>

namespace coppice {

template <class T, int D>
using Vec = Eigen::Matrix<T, D, 1>;
template <class T, int D>
using Mat = Eigen::Matrix<T, D, D>;

using Vec2f = Vec<float, 2>;
using Vec3f = Vec<float, 3>;
using Vec4f = Vec<float, 4>;
using Vec2d = Vec<double, 2>;
using Vec3d = Vec<double, 3>;
using Vec2i = Vec<int32_t, 2>;
using Vec3i = Vec<int32_t, 3>;
using Mat2f = Mat<float, 2>;
using Mat3f = Mat<float, 3>;
using Mat4f = Mat<float, 4>;
using Mat2d = Mat<double, 2>;
using Mat3d = Mat<double, 3>;

static_assert(sizeof(Vec3f) == 12 && alignof(Vec3f) == 4);
static_assert(sizeof(Vec4f) == 16 && alignof(Vec4f) == 4, "Eigen's over-alignment is on");
static_assert(sizeof(Mat2f) == 16 && alignof(Mat2f) == 4 && sizeof(Mat3f) == 36);
static_assert(sizeof(Mat4f) == 64 && alignof(Mat4f) == 4);

// This is an axis-aligned box, both corners included; starts empty (min > max).
template <class T, int D>
struct Aabb {
  Vec<T, D> min = Vec<T, D>::Constant(std::numeric_limits<T>::max());
  Vec<T, D> max = Vec<T, D>::Constant(std::numeric_limits<T>::lowest());

  bool is_empty() const { return (min.array() > max.array()).any(); }
  bool contains(const Vec<T, D>& p) const {
    return (min.array() <= p.array()).all() && (p.array() <= max.array()).all();
  }
  Vec<T, D> size() const { return max - min; }  // meaningless when empty
  Vec<T, D> center() const { return min + (max - min) / T(2); }
  void extend(const Vec<T, D>& p) {
    min = min.cwiseMin(p);
    max = max.cwiseMax(p);
  }
  void extend(const Aabb& other) {
    min = min.cwiseMin(other.min);
    max = max.cwiseMax(other.max);
  }
};
using Aabb2f = Aabb<float, 2>;
using Aabb3f = Aabb<float, 3>;
using Aabb3d = Aabb<double, 3>;
static_assert(sizeof(Aabb3f) == 24 && alignof(Aabb3f) == 4);

}  // namespace coppice
