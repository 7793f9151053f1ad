// Mirrors at walls, fields of water and jelly, and the colours of jelly.
#include "apps/render/particle_surface.h"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "apps/render/brick_splat.h"
#include "apps/render/particle_kernels.h"

namespace coppice::render {
namespace {

constexpr float kCellsPerSpacing = 1.25f;
constexpr int kSmoothingPasses = 2;
// Particles stand out of a surface that is smooth; those are spray whose place has less than this. Of jelly,
// which does not splash, sharp corners do.
constexpr float kEnclosed[] = {0.5f * kSurfaceThreshold, 0.15f * kSurfaceThreshold};
constexpr float kColorCell = 1.6f;      // spacings
constexpr float kMostColorCells = 128;  // along the longest side

// Adds `position` mirrored at each wall within reach, and at the edges and corners between them.
void add_mirrored(const Vec3f& position, const Aabb3f& domain, float reach_m, std::vector<Vec3f>& out) {
  const size_t first = out.size();
  out.push_back(position);
  for (int axis = 0; axis < 3; ++axis) {
    const size_t so_far = out.size();
    for (const float wall : {domain.min[axis], domain.max[axis]}) {
      if (std::abs(position[axis] - wall) > reach_m) continue;
      for (size_t i = first; i < so_far; ++i) {
        Vec3f image = out[i];
        image[axis] = 2 * wall - image[axis];
        out.push_back(image);
      }
    }
  }
}

struct Body {
  float spacing_m = 0;
  std::vector<Vec3f> positions;  // with mirrored ones; the particle itself comes before its images
  std::vector<size_t> particle;  // of the scene, one per particle
  std::vector<size_t> place;     // in positions, one per particle
};

Body gather_body(const RenderScene& scene, int which) {
  const Look look = which == ParticleSurfaces::kWater ? Look::kWater : Look::kJelly;
  const float own_m = scene.body_spacing_m[static_cast<size_t>(which)],
              spacing_m = own_m > 0 ? own_m : scene.radius_m / kRadiusPerSpacing;
  Body body;
  body.spacing_m = spacing_m;
  for (size_t i = 0; i < scene.looks.size(); ++i) {
    if (scene.looks[i] != look) continue;
    // Walls give way a little; what left the domain by more is spray.
    const Vec3f inside = scene.positions[i].cwiseMax(scene.domain.min).cwiseMin(scene.domain.max);
    if (!((inside - scene.positions[i]).norm() <= spacing_m)) continue;
    body.particle.push_back(i);
    body.place.push_back(body.positions.size());
    add_mirrored(inside, scene.domain, kKernelReach * spacing_m, body.positions);
  }
  return body;
}

SurfaceColors make_colors(const RenderScene& scene, std::span<const uint32_t> colors,
                          std::span<const size_t> particles, float spacing_m) {
  SurfaceColors out;
  Aabb3f bounds;
  for (const size_t i : particles) bounds.extend(scene.positions[i]);
  out.cell_m = std::max(kColorCell * spacing_m, bounds.size().maxCoeff() / kMostColorCells);
  out.origin = bounds.min - Vec3f::Constant(2 * out.cell_m);
  out.size = (bounds.size() / out.cell_m).cast<int>() + Vec3i::Constant(5);
  const auto index = [&](const Vec3i& c) {
    return (static_cast<size_t>(c.z()) * static_cast<size_t>(out.size.y()) + static_cast<size_t>(c.y())) *
               static_cast<size_t>(out.size.x()) +
           static_cast<size_t>(c.x());
  };
  const size_t n = index(Vec3i(0, 0, out.size.z()));
  std::vector<uint64_t> sums(4 * n, 0);  // red, green, blue, weight
  for (const size_t i : particles) {
    const Vec3f at = (scene.positions[i] - out.origin) / out.cell_m - Vec3f::Constant(0.5f);
    const Vec3i low = at.cast<int>();
    // One cell beyond the eight around it, so that the surface, a little outside, has colours, too.
    for (int corner = 0; corner < 64; ++corner) {
      const Vec3i cell = low + Vec3i(corner & 3, corner >> 2 & 3, corner >> 4) - Vec3i::Ones();
      const float reach = 2.0f - (cell.cast<float>() - at).norm();
      if (reach <= 0) continue;
      const auto weight = static_cast<uint64_t>(reach * reach * 256.0f);
      uint64_t* const sum = &sums[4 * index(cell)];
      for (int channel = 0; channel < 3; ++channel)
        sum[channel] += weight * ((colors[i] >> (8 * channel)) & 255u);
      sum[3] += weight;
    }
  }
  out.texels.resize(4 * n);
  for (size_t i = 0; i < n; ++i) {
    const uint64_t weight = sums[4 * i + 3];
    if (weight == 0) continue;
    for (size_t channel = 0; channel < 3; ++channel)
      out.texels[4 * i + channel] = static_cast<uint8_t>(sums[4 * i + channel] / weight);
    out.texels[4 * i + 3] = 255;
  }
  return out;
}

}  // namespace

ParticleSurfaces make_particle_surfaces(const RenderScene& scene, std::span<const uint32_t> colors,
                                        const GoesOn& goes_on) {
  ParticleSurfaces out;
  out.volume.format = BrickFormat::kFloat;
  out.is_enclosed.assign(scene.positions.size(), 0);
  if (scene.dim != 3 || scene.looks.empty()) return out;
  const std::array bodies = {gather_body(scene, ParticleSurfaces::kWater),
                             gather_body(scene, ParticleSurfaces::kJelly)};
  // Both are in one atlas, with cells that are fine enough for either.
  float least_m = std::numeric_limits<float>::max();
  for (const Body& body : bodies)
    if (!body.particle.empty()) least_m = std::min(least_m, body.spacing_m);
  if (bodies[0].particle.empty() && bodies[1].particle.empty()) return out;
  out.cell_m = least_m / kCellsPerSpacing;
  std::optional<int> end_x;  // cells, of the bricks so far
  for (const int which : {ParticleSurfaces::kWater, ParticleSurfaces::kJelly}) {
    const Body& body = bodies[static_cast<size_t>(which)];
    if (body.particle.empty()) continue;
    const auto kernels = make_particle_kernels(body.positions, body.spacing_m, goes_on);
    if (goes_on && !goes_on()) return out;
    const BrickSplat splat(kernels, out.cell_m, kSmoothingPasses);
    if (splat.is_empty()) continue;
    SurfaceField& field = out.fields[static_cast<size_t>(which)];
    const Vec3i shift(end_x ? std::max(0, *end_x + kBrickCells - splat.low().x()) : 0, 0, 0);
    splat.append_to(out.volume, shift);
    end_x = splat.high().x() + shift.x();
    field.is_empty = false;
    field.shift = shift.cast<float>();
    field.box.min = (splat.low().cast<float>() * out.cell_m).cwiseMax(scene.domain.min);
    field.box.max = (splat.high().cast<float>() * out.cell_m).cwiseMin(scene.domain.max);
    tbb::parallel_for(size_t{0}, body.particle.size(), [&](size_t i) {
      const bool is_inside = splat.sample(body.positions[body.place[i]]) >= kEnclosed[which];
      out.is_enclosed[body.particle[i]] = is_inside ? 1 : 0;
    });
    if (which == ParticleSurfaces::kJelly)
      out.jelly_colors = make_colors(scene, colors, body.particle, body.spacing_m);
  }
  return out;
}

}  // namespace coppice::render
