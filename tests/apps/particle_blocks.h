// Particles as a solver leaves them: a lattice of one particle per cube of side `spacing`, moved at random.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "apps/render/render_scene.h"

namespace coppice::render {

// Fills what `contains` says of a box; `jitter` is how far each may be from its place, in spacings.
template <class Contains>
std::vector<Vec3f> fill_with_particles(const Aabb3f& box, float spacing, float jitter,
                                       const Contains& contains) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> move(-jitter * spacing, jitter * spacing);
  std::vector<Vec3f> positions;
  const Vec3i n = (box.size() / spacing).array().round().cast<int>();
  for (int k = 0; k < n.z(); ++k) {
    for (int j = 0; j < n.y(); ++j) {
      for (int i = 0; i < n.x(); ++i) {
        const Vec3f place = box.min + spacing * (Vec3i(i, j, k).cast<float>() + Vec3f::Constant(0.5f));
        if (!contains(place)) continue;
        const Vec3f moved = place + Vec3f(move(random), move(random), move(random));
        positions.push_back(moved.cwiseMax(box.min).cwiseMin(box.max));
      }
    }
  }
  return positions;
}
inline std::vector<Vec3f> fill_box(const Aabb3f& box, float spacing, float jitter) {
  return fill_with_particles(box, spacing, jitter, [](const Vec3f&) { return true; });
}
inline std::vector<Vec3f> fill_ball(const Vec3f& center, float radius, float spacing, float jitter) {
  const Vec3f half = Vec3f::Constant(std::ceil(radius / spacing) * spacing);
  const Aabb3f box{center - half, center + half};
  return fill_with_particles(box, spacing, jitter,
                             [&](const Vec3f& p) { return (p - center).norm() <= radius; });
}

}  // namespace coppice::render
