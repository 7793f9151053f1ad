// Packs particles for drawing: 16 bytes each, position and one value.
//
// Device-clean.
#pragma once
#include "apps/mpm/solver_types.h"
#include "apps/mpm/stress_values.h"

namespace coppice::mpm {

enum class PointValue : std::int32_t {
  kMaterial = 0,     // MaterialKind
  kEmitter = 1,      // its index in the scene
  kSpeed = 2,        // m/s
  kVolumeRatio = 3,  // det F; water: J
  kPressure = 4,     // Pa, of Kirchhoff's stress, as the next
  kVonMises = 5,     // Pa
};

// `shift` are the coordinates of the grid's node (0, 0, 0) in the world, m; out: f32[n][4].
template <int D>
COPPICE_INLINE void pack_point(const ParticleArrays& p, const Group<D>* groups, std::int64_t i,
                               PointValue value, SmallVec<float, 3> shift, float* out) {
  using A = Attribute<D>;
  const auto load = [&](int attribute) { return p.base[attribute * p.stride + i]; };
  COPPICE_UNROLL for (int k = 0; k < 3; ++k) out[4 * i + k] =
      k < D ? load(A::kPosition + k) + shift[k] : 0.0f;
  const float group = load(A::kGroup);
  const MaterialKind kind = groups[static_cast<int>(group)].kind;
  float shown = group;
  if (value == PointValue::kMaterial) shown = static_cast<float>(static_cast<std::int32_t>(kind));
  if (value == PointValue::kSpeed) {
    float squared = 0;
    COPPICE_UNROLL for (int k = 0; k < D; ++k) squared += load(A::kVelocity + k) * load(A::kVelocity + k);
    shown = sqrtf(squared);
  }
  if (value == PointValue::kVolumeRatio) {
    SmallMat<float, D> f{};
    COPPICE_UNROLL for (int k = 0; k < D * D; ++k) f.m[k] = load(A::kDeformation + k);
    shown = kind == MaterialKind::kWater ? load(A::kScalar) : determinant(f);
  }
  if (value == PointValue::kPressure || value == PointValue::kVonMises) {
    SymmetricMat<D> tau{};
    COPPICE_UNROLL for (int k = 0; k < kSymmetric<D>; ++k) tau.m[k] = load(A::kStress + k);
    shown = value == PointValue::kPressure ? pressure_of<D>(tau) : von_mises_of<D>(tau);
  }
  out[4 * i + 3] = shown;
}

}  // namespace coppice::mpm
