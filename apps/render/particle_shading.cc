// Colours, smooth normals and ambient visibility of particles, and the shade they cast on the floor.
#include "apps/render/particle_shading.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "apps/render/density_grid.h"

namespace coppice::render {
namespace {

constexpr size_t kGrain = 4096;
constexpr int kPadCells = 10;

uint32_t pack_color(const Rgb& color) {
  const auto channel = [](float c) {
    return static_cast<uint32_t>(std::lround(std::clamp(c, 0.0f, 1.0f) * 255.0f));
  };
  return channel(color.x()) | channel(color.y()) << 8 | channel(color.z()) << 16;
}

ScalarRange range_of(std::span<const float> values) {
  ScalarRange range{std::numeric_limits<float>::max(), std::numeric_limits<float>::lowest()};
  for (float value : values) {
    if (!std::isfinite(value)) continue;
    range.min = std::min(range.min, value);
    range.max = std::max(range.max, value);
  }
  return range.min <= range.max ? range : ScalarRange{};
}

// Colour of each particle as a table look-up: 256 steps of the map, or the palette.
class Colorer {
 public:
  explicit Colorer(const RenderScene& scene) : scene_(scene) {
    if (scene.color_mode == ColorMode::kMaterial) {
      for (const Rgb& color : scene.palette) table_.push_back(pack_color(color));
      return;
    }
    for (int i = 0; i < 256; ++i)
      table_.push_back(pack_color(color_at(scene.color_map, static_cast<float>(i) / 255.0f)));
    range_ = scene.range ? *scene.range : range_of(scene.scalar);
    // A reversed range reverses the map; an empty one shows its middle.
    scale_ = range_.max != range_.min ? 1.0f / (range_.max - range_.min) : 0.0f;
  }

  uint32_t operator()(size_t i) const {
    if (scene_.color_mode == ColorMode::kMaterial) {
      return table_[scene_.materials.empty() ? 0 : scene_.materials[i] % table_.size()];
    }
    if (std::isnan(scene_.scalar[i])) return pack_color(Rgb::Constant(0.5f));
    const float t = scale_ == 0.0f ? 0.5f : (scene_.scalar[i] - range_.min) * scale_;
    return table_[static_cast<size_t>(std::clamp(t, 0.0f, 1.0f) * 255.0f + 0.5f)];
  }

 private:
  const RenderScene& scene_;
  std::vector<uint32_t> table_;
  ScalarRange range_;
  float scale_ = 0.0f;
};

// Rays through the density: light that arrives from the sky and, dimmer, from the floor.
class AmbientRays {
 public:
  AmbientRays(const DensityGrid& grid, std::span<const float> near, std::span<const float> far,
              float floor_y_m)
      : grid_(grid), near_(near), far_(far), floor_y_(grid.cell_from_world(Vec3f::Constant(floor_y_m)).y()) {
    for (int z = -1; z <= 1; ++z) {
      for (int y = -1; y <= 1; ++y) {
        for (int x = -1; x <= 1; ++x) {
          // The faces and corners of a cube: 14 directions.
          const int axes = std::abs(x) + std::abs(y) + std::abs(z);
          if (axes == 1 || axes == 3) directions_.push_back(Vec3i(x, y, z).cast<float>().normalized());
        }
      }
    }
  }

  // 0 to 1 at a point in cells, for a surface that faces `normal` (zero: all ways).
  float visibility(const Vec3f& point, const Vec3f& normal) const {
    float arrived = 0.0f;
    float possible = 0.0f;
    for (const Vec3f& direction : directions_) {
      const float facing = 0.35f + 0.65f * std::max(0.0f, direction.dot(normal));
      const float sky = facing * (0.62f + 0.38f * direction.y());
      possible += sky;
      arrived += sky * transmittance(point, direction);
    }
    return arrived / possible;
  }

 private:
  // Steps double, and with them the width of what is averaged.
  float transmittance(const Vec3f& point, const Vec3f& direction) const {
    float light = 1.0f;
    for (const float distance : {1.6f, 3.2f, 6.4f}) {
      const Vec3f p = point + distance * direction;
      if (p.y() < floor_y_) return light * 0.55f;  // the floor, itself lit
      light *= 1.0f - 0.8f * grid_.sample(distance < 2.0f ? near_ : far_, p);
    }
    return light;
  }

  const DensityGrid& grid_;
  std::span<const float> near_;
  std::span<const float> far_;
  float floor_y_;
  std::vector<Vec3f> directions_;
};

PackedSurface pack_surface(const Vec3f& normal, float visibility) {
  PackedSurface surface;
  for (int axis = 0; axis < 3; ++axis) {
    surface.normal[static_cast<size_t>(axis)] =
        static_cast<uint8_t>(std::lround(normal[axis] * 127.0f + 128.0f));
  }
  surface.visibility = static_cast<uint8_t>(std::lround(std::clamp(visibility, 0.0f, 1.0f) * 255.0f));
  return surface;
}

// Outward, of length 0 (no clear side) to 1.
Vec3f smooth_normal(const DensityGrid& grid, std::span<const float> blurred, const Vec3f& cell_point) {
  const Vec3f gradient = grid.gradient(blurred, cell_point);
  const float steepness = gradient.norm();
  if (steepness < 1e-4f) return Vec3f::Zero();
  const float clear = std::min(1.0f, steepness / 0.16f);
  return -gradient / steepness * (clear * clear);
}

void shade_floor(const DensityGrid& grid, const AmbientRays& rays, float floor_y_m, ParticleShading* out) {
  const float floor_y = grid.cell_from_world(Vec3f::Constant(floor_y_m)).y();
  out->floor_size = {grid.size().x(), grid.size().z()};
  out->floor_bounds.min = grid.origin();
  out->floor_bounds.max = grid.origin() + grid.size().cast<float>() * grid.cell_m();
  out->floor_visibility.resize(static_cast<size_t>(grid.size().x()) * static_cast<size_t>(grid.size().z()));
  tbb::parallel_for(0, grid.size().z(), [&](int k) {
    for (int i = 0; i < grid.size().x(); ++i) {
      const Vec3f point(static_cast<float>(i) + 0.5f, floor_y + 0.3f, static_cast<float>(k) + 0.5f);
      const float visibility = rays.visibility(point, Vec3f::UnitY());
      out->floor_visibility[static_cast<size_t>(k) * static_cast<size_t>(grid.size().x()) +
                            static_cast<size_t>(i)] =
          static_cast<uint8_t>(std::lround(std::clamp(visibility, 0.0f, 1.0f) * 255.0f));
    }
  });
}

// Fills particles and bounds; returns the finite positions.
std::vector<Vec3f> gather(const RenderScene& scene, ParticleShading* out) {
  const Colorer color(scene);
  std::vector<Vec3f> positions;
  positions.reserve(scene.positions.size());
  out->particles.reserve(scene.positions.size());
  // Beyond this, squares overflow in the shaders; nothing that far away could be seen.
  const float limit = 1e6f * std::max(1.0f, scene.domain.size().maxCoeff());
  for (size_t i = 0; i < scene.positions.size(); ++i) {
    const Vec3f& p = scene.positions[i];
    if (!p.allFinite() || p.cwiseAbs().maxCoeff() > limit) continue;
    positions.push_back(p);
    out->particles.push_back({p, color(i)});
    out->bounds.extend(p);
  }
  return positions;
}

// Particles that flew off must not coarsen the grid for all others.
Aabb3f grid_bounds(const RenderScene& scene, const Aabb3f& particles) {
  Aabb3f bounds;
  bounds.min = particles.min.cwiseMax(scene.domain.min - 0.1f * scene.domain.size());
  bounds.max = particles.max.cwiseMin(scene.domain.max + 0.1f * scene.domain.size());
  bounds.max = bounds.max.cwiseMax(bounds.min);
  return bounds;
}

}  // namespace

ParticleShading compute_particle_shading(const RenderScene& scene) {
  ParticleShading out;
  const std::vector<Vec3f> positions = gather(scene, &out);
  if (positions.empty()) return out;
  const DensityGrid grid(grid_bounds(scene, out.bounds), scene.domain, scene.radius_m, scene.dim, kPadCells,
                         positions);
  const std::vector<float> near = grid.blurred(1);
  const std::vector<float> far = grid.blurred(4);
  const bool is_3d = scene.dim == 3;
  const float floor_y_m = is_3d ? scene.domain.min.y() : -1e9f;
  const AmbientRays rays(grid, near, far, floor_y_m);
  out.surfaces.resize(positions.size());
  tbb::parallel_for(
      tbb::blocked_range<size_t>(0, positions.size(), kGrain), [&](const tbb::blocked_range<size_t>& range) {
        for (size_t i = range.begin(); i != range.end(); ++i) {
          const Vec3f point = grid.cell_from_world(positions[i]);
          const Vec3f normal = smooth_normal(grid, is_3d ? near : far, point);
          out.surfaces[i] = pack_surface(normal, is_3d ? rays.visibility(point + normal, normal) : 1.0f);
        }
      });
  if (is_3d) shade_floor(grid, rays, floor_y_m, &out);
  return out;
}

}  // namespace coppice::render
