// Elastic energy of a particle, for the table of per-frame numbers.
//
// Device-clean.
#pragma once
#include "apps/mpm/solver_types.h"

namespace coppice::mpm {

// Returns J; J per metre of depth in 2-D.
template <int D>
COPPICE_INLINE float elastic_energy(const ParticleArrays& p, const Group<D>* groups, std::int64_t i) {
  using A = Attribute<D>;
  const auto load = [&](int attribute) { return p.base[attribute * p.stride + i]; };
  const Group<D>& group = groups[static_cast<int>(load(A::kGroup))];
  SmallMat<float, D> f{};
  COPPICE_UNROLL for (int k = 0; k < D * D; ++k) f.m[k] = load(A::kDeformation + k);
  return group.volume * with_material(
                            group, [&](const auto& material) __attribute__((always_inline)) {
                              return material.energy(f, load(A::kScalar));
                            });
}

}  // namespace coppice::mpm
