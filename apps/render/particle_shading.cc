// Colours, smooth normals and ambient visibility of particles, and the shade they cast on the floor.
#include "apps/render/particle_shading.h"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "apps/render/density_grid.h"
#include "apps/render/scatter.h"

namespace coppice::render {
namespace {

constexpr size_t kGrain = 4096;
constexpr int kPadCells = 10;
constexpr int kGrainsPerParticle = 24;
constexpr ptrdiff_t kMostGrains = 1'000'000;

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
    if (!std::isfinite(scene_.scalar[i])) return pack_color(Rgb(1, 0, 1));  // magenta, as in the window
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

void keep_density(const DensityGrid& grid, std::span<const float> values, ParticleShading* out) {
  out->density_size = grid.size();
  out->density_origin = grid.origin();
  out->density_cell_m = grid.cell_m();
  out->density.resize(values.size());
  std::transform(values.begin(), values.end(), out->density.begin(), [](float v) {
    return static_cast<uint8_t>(std::lround(std::clamp(v, 0.0f, 1.0f) * 255.0f));
  });
}

// The finite particles of a scene, sorted by what is computed for them.
struct Gathered {
  std::vector<Vec3f> solid;     // all but water: what light does not pass
  std::vector<size_t> spheres;  // numbers of those that are drawn
};

Look look_of(const RenderScene& scene, size_t i) {
  return scene.dim == 2 || scene.looks.empty() ? Look::kSpheres : scene.looks[i];
}
bool is_granular(Look look) { return look == Look::kSnow || look == Look::kSand; }

Gathered gather(const RenderScene& scene, std::span<const uint8_t> is_enclosed, Aabb3f& bounds) {
  Gathered out;
  // Beyond this, squares overflow in the shaders; nothing that far away could be seen.
  const float limit = 1e6f * std::max(1.0f, scene.domain.size().maxCoeff());
  for (size_t i = 0; i < scene.positions.size(); ++i) {
    const Vec3f& p = scene.positions[i];
    if (!p.allFinite() || p.cwiseAbs().maxCoeff() > limit) continue;
    bounds.extend(p);
    if (look_of(scene, i) != Look::kWater) out.solid.push_back(p);
    if (is_enclosed.empty() || is_enclosed[i] == 0) out.spheres.push_back(i);
  }
  return out;
}

uint32_t pack_look(uint32_t color, Look look, float radius) {
  const auto steps = static_cast<uint32_t>(std::lround(std::clamp(radius * 32.0f, 1.0f, 32.0f))) - 1;
  return color | static_cast<uint32_t>(look) << 24 | steps << 27;
}

// A number from 0 to 1 that depends on the grain alone.
float random_of(size_t particle, int grain, int which) {
  const size_t seed = (particle * 64 + static_cast<size_t>(grain)) * 8 + static_cast<size_t>(which);
  return static_cast<float>(scatter(seed) >> 8) / static_cast<float>(1 << 24);
}

uint32_t vary(uint32_t color, float factor) {
  uint32_t out = 0;
  for (int shift = 0; shift < 24; shift += 8) {
    const float channel = factor * static_cast<float>((color >> shift) & 255u);
    out |= static_cast<uint32_t>(std::min(channel, 255.0f)) << shift;
  }
  return out;
}

// A sphere for the particle, or its grains.
void add_spheres(const RenderScene& scene, size_t i, uint32_t color, int n_grains,
                 const PackedSurface& surface, ParticleShading& out) {
  const Look look = look_of(scene, i);
  if (!is_granular(look)) {
    // Drops are smaller than what they are part of in a body.
    const float radius = look == Look::kWater || look == Look::kJelly ? 0.5f : 1.0f;
    out.particles.push_back({scene.positions[i], pack_look(color, look, radius)});
    out.surfaces.push_back(surface);
    return;
  }
  const float spacing_m = scene.radius_m / kRadiusPerSpacing;
  const float size = 1.15f / std::cbrt(static_cast<float>(n_grains));  // of a grain, were they alike
  const bool varies = scene.color_mode == ColorMode::kMaterial;
  for (int g = 0; g < n_grains; ++g) {
    // The sum of two: denser in the middle, where a particle that flies alone is seen.
    Vec3f offset;
    for (int axis = 0; axis < 3; ++axis)
      offset[axis] = 0.5f * (random_of(i, g, 2 * axis) + random_of(i, g, 2 * axis + 1));
    const float radius = size * (0.7f + 0.5f * random_of(i, g, 6));
    const float spread = look == Look::kSand ? 0.30f : 0.06f;
    const float shade = varies ? 1.0f - spread * random_of(i, g, 7) : 1.0f;
    const Vec3f place = scene.positions[i] + 1.8f * spacing_m * (offset - Vec3f::Constant(0.5f));
    out.particles.push_back({place, pack_look(vary(color, shade), look, radius)});
    out.surfaces.push_back(surface);
  }
}

// Returns as many grains as make a fine surface, in a bounded time.
int grains_per_particle(const RenderScene& scene, std::span<const size_t> spheres) {
  const auto n =
      std::count_if(spheres.begin(), spheres.end(), [&](size_t i) { return is_granular(look_of(scene, i)); });
  return n == 0 ? 1 : static_cast<int>(std::clamp<ptrdiff_t>(kMostGrains / n, 1, kGrainsPerParticle));
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

std::vector<uint32_t> compute_particle_colors(const RenderScene& scene) {
  const Colorer color(scene);
  std::vector<uint32_t> colors(scene.positions.size());
  for (size_t i = 0; i < colors.size(); ++i) colors[i] = color(i);
  return colors;
}

ParticleShading compute_particle_shading(const RenderScene& scene, std::span<const uint32_t> colors,
                                         std::span<const uint8_t> is_enclosed) {
  ParticleShading out;
  const Gathered gathered = gather(scene, is_enclosed, out.bounds);
  const std::vector<size_t>& spheres = gathered.spheres;
  std::vector<PackedSurface> surfaces(spheres.size(), pack_surface(Vec3f::Zero(), 1.0f));
  if (!gathered.solid.empty()) {
    Aabb3f solid_bounds;
    for (const Vec3f& p : gathered.solid) solid_bounds.extend(p);
    const DensityGrid grid(grid_bounds(scene, solid_bounds), scene.domain, scene.radius_m, scene.dim,
                           kPadCells, gathered.solid);
    const std::vector<float> near = grid.blurred(1);
    const std::vector<float> far = grid.blurred(4);
    const bool is_3d = scene.dim == 3;
    const float floor_y_m = is_3d ? scene.domain.min.y() : -1e9f;
    const AmbientRays rays(grid, near, far, floor_y_m);
    tbb::parallel_for(
        tbb::blocked_range<size_t>(0, spheres.size(), kGrain), [&](const tbb::blocked_range<size_t>& range) {
          for (size_t s = range.begin(); s != range.end(); ++s) {
            if (look_of(scene, spheres[s]) == Look::kWater) continue;
            const Vec3f point = grid.cell_from_world(scene.positions[spheres[s]]);
            const Vec3f normal = smooth_normal(grid, is_3d ? near : far, point);
            surfaces[s] = pack_surface(normal, is_3d ? rays.visibility(point + normal, normal) : 1.0f);
          }
        });
    if (is_3d) shade_floor(grid, rays, floor_y_m, &out);
    if (is_3d) keep_density(grid, near, &out);
  }
  const int n_grains = grains_per_particle(scene, spheres);
  for (size_t s = 0; s < spheres.size(); ++s)
    add_spheres(scene, spheres[s], colors[spheres[s]], n_grains, surfaces[s], out);
  return out;
}

}  // namespace coppice::render
