// Turns a scene's emitters into particles (see emission.h).
#include "apps/mpm/emission.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <memory>
#include <numeric>
#include <span>

#include "apps/geometry/philox.h"
#include "apps/geometry/sampling.h"
#include "apps/mpm/emitter_shape.h"
#include "apps/mpm/inflow_pattern.h"
#include "apps/mpm/overlaps.h"
#include "apps/mpm/place_text.h"
#include "apps/mpm/placed_mesh.h"
#include "core/error.h"

namespace coppice::mpm {
namespace {

void check_inside(const scene::SceneConfig& scene, const scene::Emitter& e,
                  const std::vector<Vec3f>& particles) {
  const Vec3f low = scene.domain.min.cast<float>(), high = scene.domain.max.cast<float>();
  size_t outside = 0;
  const Vec3f* first = nullptr;
  for (const Vec3f& p : particles) {
    bool inside = true;
    for (int a = 0; a < scene.dim; ++a) inside = inside && p[a] >= low[a] && p[a] <= high[a];
    if (inside) continue;
    ++outside;
    if (first == nullptr) first = &p;
  }
  if (outside == 0) return;
  throw Error(
      ErrorCode::kInvalidArgument,
      fmt::format("{} of the emitter's {} particles are outside the domain, one at {}; the domain is {} "
                  "to {}",
                  outside, particles.size(), place_text(*first, scene.dim), place_text(low, scene.dim),
                  place_text(high, scene.dim)),
      e.origin.table);
}

// By more than a rounding of its coordinates.
bool reaches_beyond_domain(const scene::SceneConfig& scene, const Aabb3f& bounds) {
  const auto rounding = static_cast<float>(1e-3 * scene.dx_m());
  const Vec3f low = scene.domain.min.cast<float>(), high = scene.domain.max.cast<float>();
  bool is_inside = true;
  for (int a = 0; a < scene.dim; ++a)
    is_inside = is_inside && bounds.min[a] >= low[a] - rounding && bounds.max[a] <= high[a] + rounding;
  return !is_inside;
}

// Names as the cause of too many particles that a shape is larger than what it should be in.
void refuse_beyond_domain(const scene::SceneConfig& scene, const scene::Emitter& e, const Shape& shape) {
  const Aabb3f bounds = shape.bounds();
  const Vec3f low = scene.domain.min.cast<float>(), high = scene.domain.max.cast<float>();
  if (!reaches_beyond_domain(scene, bounds)) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("the emitter reaches from {} to {}, beyond the domain, which is {} to {}",
                          place_text(bounds.min, scene.dim), place_text(bounds.max, scene.dim),
                          place_text(low, scene.dim), place_text(high, scene.dim)),
              e.origin.table);
}

// Returns true for a mesh without an inside, as a single triangle or a sheet is. An open mesh is tested
// at some 10^5 points of its bounds.
bool encloses_nothing(const MeshShape& mesh) {
  const Vec3f size = mesh.bounds().size();
  constexpr double kRounding = 1e-9;  // of a volume beside that of its bounds
  if (mesh.open_edges() == 0) return mesh.volume() <= kRounding * size.cast<double>().prod();
  const float spacing = size.maxCoeff() / 48;
  return !(spacing > 0) || sample_particles(mesh, {.dx = spacing, .particles_per_cell = 1}).empty();
}

[[noreturn]] void refuse_emptiness(const scene::SceneConfig& scene, const scene::Emitter& e,
                                   const Shape& shape) {
  const auto* mesh = dynamic_cast<const MeshShape*>(&shape);
  if (mesh != nullptr && encloses_nothing(*mesh)) {
    const std::string why = mesh->open_edges() == 0 ? "its volume is zero"
                                                    : fmt::format("it has {} open edges", mesh->open_edges());
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the emitter yields no particles: its mesh encloses nothing, {}", why),
                e.origin.of("mesh"));
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("the emitter yields no particles: {} smaller than a grid cell of {:.4g} m",
                          mesh == nullptr ? "it is" : "what its mesh encloses is", scene.dx_m()),
              e.origin.table);
}

std::vector<Vec3f> sample_emitter(const scene::SceneConfig& scene, size_t emitter, const Shape& shape) {
  const scene::Emitter& e = scene.emitters[emitter];
  if (e.inflow) return InflowPattern(scene, emitter).enter(-1, 0, 0);
  try {
    return sample_particles(shape, {scene.dim, static_cast<float>(scene.dx_m()), e.particles_per_cell,
                                    static_cast<uint64_t>(*e.seed)});
  } catch (const Error& error) {
    throw error.with_location(e.origin.table);
  }
}

// Returns what a particle's volume must be multiplied with so that all `n` have the shape's; 1 where that
// is not known.
double volume_factor(const scene::SceneConfig& scene, const scene::Emitter& e, const Shape& shape, size_t n) {
  if (e.inflow || reaches_beyond_domain(scene, shape.bounds())) return 1;
  const std::optional<double> volume = enclosed_volume(e, shape, scene.dim);
  if (!volume) return 1;
  const double sampled = static_cast<double>(n) * std::pow(scene.dx_m(), scene.dim) / e.particles_per_cell;
  const double factor = *volume / sampled;
  // Boxes of whole cells keep the mass of a cell's share to the last bit.
  constexpr double kRounding = 1e-6;
  if (std::abs(factor - 1) < kRounding) return 1;
  // Where a mesh passes through itself, its triangles enclose more than its inside.
  constexpr double kMostOfMesh = 0.05;
  if (e.shape == scene::EmitterShape::kMesh && std::abs(factor - 1) > kMostOfMesh) return 1;
  return factor;
}

// A ball without what is outside of a box, in `dim` dimensions.
class BallInBox final : public Shape {
 public:
  BallInBox(const Vec3f& center, float radius, const Aabb3f& box, int dim)
      : center_(center), radius_(radius) {
    const Vec3f reach = Vec3f::Constant(radius);
    bounds_ = {(center - reach).cwiseMax(box.min), (center + reach).cwiseMin(box.max)};
    if (dim == 2) bounds_.min.z() = bounds_.max.z() = 0;
  }
  bool contains(const Vec3f& p) const override {
    return bounds_.contains(p) && (p - center_).squaredNorm() <= radius_ * radius_;
  }
  Aabb3f bounds() const override { return bounds_; }
  double about_volume(int dim) const override { return SphereShape(center_, radius_).about_volume(dim); }

 private:
  Vec3f center_;
  float radius_;
  Aabb3f bounds_;
};

// Another one for each step and ball.
uint64_t seed_of(const scene::SceneConfig& scene, const Vec3f& center, float radius_m, uint64_t steps) {
  const auto seed = static_cast<uint64_t>(scene.seed);
  const auto words = [](uint64_t w) {
    return std::array{static_cast<uint32_t>(w), static_cast<uint32_t>(w >> 32)};
  };
  const auto mixed = philox4x32({std::bit_cast<uint32_t>(center.x()), std::bit_cast<uint32_t>(center.y()),
                                 std::bit_cast<uint32_t>(center.z()), std::bit_cast<uint32_t>(radius_m)},
                                words(seed));
  const auto last = philox4x32(mixed, words(steps));
  return last[0] | uint64_t{last[1]} << 32;
}

}  // namespace

int subcells_per_axis(const scene::SceneConfig& scene, size_t emitter) {
  int k = 1;
  while (std::pow(k, scene.dim) < scene.emitters[emitter].particles_per_cell) ++k;
  return k;
}

std::vector<Vec3f> sample_ball(const scene::SceneConfig& scene, size_t emitter, const Vec3f& center,
                               float radius_m, uint64_t steps, uint64_t most) {
  const int per_cell = scene.emitters[emitter].particles_per_cell;
  // Steps also leave particles in this box: not upon the walls.
  const Vec3f margin = Vec3f::Constant(static_cast<float>(0.01 * scene.dx_m()));
  const Aabb3f domain{scene.domain.min.cast<float>() + margin, scene.domain.max.cast<float>() - margin};
  const BallInBox ball(center, radius_m, domain, scene.dim);
  if (ball.bounds().is_empty()) return {};
  double about = per_cell * (scene.dim == 3 ? M_PI / 6 : M_PI / 4);
  for (int axis = 0; axis < scene.dim; ++axis)
    about *= static_cast<double>(ball.bounds().size()[axis]) / scene.dx_m();
  if (about > 2.0 * static_cast<double>(most) + 1000) {
    throw Error(ErrorCode::kUsage,
                fmt::format("emit: about {:.2g} particles; there is room for {} more", about, most));
  }
  return sample_particles(
      ball, {scene.dim, static_cast<float>(scene.dx_m()), per_cell, seed_of(scene, center, radius_m, steps)});
}

EmittedParticles emit_particles(const scene::SceneConfig& scene, const MemoryLimits& limits) {
  std::vector<std::unique_ptr<Shape>> shapes;
  std::vector<double> about;  // of each emitter: particles
  for (const scene::Emitter& e : scene.emitters) {
    shapes.push_back(make_emitter_shape(e, scene.dim));
    about.push_back(shapes.back()->about_volume(scene.dim) / std::pow(scene.dx_m(), scene.dim) *
                    e.particles_per_cell);
  }
  const auto largest = static_cast<size_t>(std::ranges::max_element(about) - about.begin());
  try {
    // Where there are outflows, nobody knows how many are there at a time.
    const double later = scene.outflows.empty() ? expected_inflow(scene) : 0;
    require_memory(scene, std::reduce(about.begin(), about.end()) + later, limits);
  } catch (const Error& error) {
    refuse_beyond_domain(scene, scene.emitters[largest], *shapes[largest]);
    throw error.with_location(scene.emitters[largest].origin.table);
  }
  EmittedParticles all;
  for (size_t i = 0; i < scene.emitters.size(); ++i) {
    const scene::Emitter& e = scene.emitters[i];
    std::vector<Vec3f> particles = sample_emitter(scene, i, *shapes[i]);
    if (particles.empty()) refuse_emptiness(scene, e, *shapes[i]);
    check_inside(scene, e, particles);
    all.volume_factor.push_back(1);
    if (e.inflow && e.inflow->from_s > 0) {
      shapes[i] = nullptr;
      continue;
    }
    const size_t sampled = particles.size();
    particles = without_overlaps(scene, i, std::move(particles), std::span(shapes).first(i));
    if (particles.size() == sampled) all.volume_factor.back() = volume_factor(scene, e, *shapes[i], sampled);
    all.position.insert(all.position.end(), particles.begin(), particles.end());
    all.emitter.insert(all.emitter.end(), particles.size(), static_cast<uint32_t>(i));
  }
  return all;
}

}  // namespace coppice::mpm
