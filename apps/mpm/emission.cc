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
#include "apps/mpm/overlaps.h"
#include "apps/mpm/place_text.h"
#include "apps/mpm/placed_mesh.h"
#include "core/error.h"

namespace coppice::mpm {
namespace {

// A shape turned about a point.
class TurnedShape final : public Shape {
 public:
  TurnedShape(std::unique_ptr<Shape> shape, const Mat3f& world_from_local, const Vec3f& center)
      : shape_(std::move(shape)), world_from_local_(world_from_local), center_(center) {}
  bool contains(const Vec3f& p) const override {
    return shape_->contains(world_from_local_.transpose() * (p - center_) + center_);
  }
  Aabb3f bounds() const override {
    const Aabb3f box = shape_->bounds();
    Vec3f low = Vec3f::Constant(INFINITY), high = -low;
    for (int corner = 0; corner < 8; ++corner) {
      const Vec3f local{corner & 1 ? box.max.x() : box.min.x(), corner & 2 ? box.max.y() : box.min.y(),
                        corner & 4 ? box.max.z() : box.min.z()};
      const Vec3f world = world_from_local_ * (local - center_) + center_;
      low = low.cwiseMin(world), high = high.cwiseMax(world);
    }
    return {low, high};
  }
  double about_volume(int dim) const override { return shape_->about_volume(dim); }

 private:
  std::unique_ptr<Shape> shape_;
  Mat3f world_from_local_;
  Vec3f center_;
};

std::unique_ptr<Shape> make_mesh_shape(const scene::Emitter& e) {
  const InputLocation& where = e.origin.of("mesh");
  try {
    return std::make_unique<MeshShape>(load_placed_mesh(e), e.mesh_path.string(),
                                       e.strict ? OpenMesh::kRefuse : OpenMesh::kWarn);
  } catch (const Error& error) {
    // The mesh's own place goes into the message; the scene's line is where the user starts looking.
    throw Error(error.code(), error.what(), where);
  }
}

// A length above zero in the scene may be none any more beside the center, in 32 bits. What the shape says of
// it gets the key that it came from.
template <class S, class... Sizes>
std::unique_ptr<Shape> make_sized(const scene::Emitter& e, const char* key, const Sizes&... sizes) {
  try {
    return std::make_unique<S>(sizes...);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("the emitter's '{}' is too small: {}", key, error.message()),
                e.origin.of(key));
  }
}

std::unique_ptr<Shape> make_shape(const scene::Emitter& e, int dim) {
  const Vec3f c = e.center.cast<float>();
  // A 2-D shape reaches through the plane z = 0 that is sampled.
  const Vec3f half = dim == 3 ? e.half_size.cast<float>()
                              : Vec3f(e.half_size.cast<float>().x(), e.half_size.cast<float>().y(), 1.0f);
  std::unique_ptr<Shape> shape;
  switch (e.shape) {
    case scene::EmitterShape::kSphere:
      return make_sized<SphereShape>(e, "radius", c, static_cast<float>(e.radius));
    case scene::EmitterShape::kMesh:
      return make_mesh_shape(e);
    case scene::EmitterShape::kBox:
      shape = make_sized<BoxShape>(e, "half_size", Vec3f(c - half), Vec3f(c + half));
      break;
    case scene::EmitterShape::kCylinder: {
      const Vec3f axis(0, static_cast<float>(e.half_height), 0);
      const auto radius = static_cast<float>(e.radius);
      shape = make_sized<CylinderShape>(e, radius > 0 ? "half_height" : "radius", Vec3f(c - axis),
                                        Vec3f(c + axis), radius);
      break;
    }
  }
  if (e.rotate_deg.isZero()) return shape;
  return std::make_unique<TurnedShape>(std::move(shape),
                                       rotation_from_euler_degrees(e.rotate_deg.cast<float>()), c);
}

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

// Names as the cause of too many particles that a shape is larger than what it should be in.
void refuse_beyond_domain(const scene::SceneConfig& scene, const scene::Emitter& e, const Shape& shape) {
  const Aabb3f bounds = shape.bounds();
  const Vec3f low = scene.domain.min.cast<float>(), high = scene.domain.max.cast<float>();
  bool is_inside = true;
  for (int a = 0; a < scene.dim; ++a)
    is_inside = is_inside && bounds.min[a] >= low[a] && bounds.max[a] <= high[a];
  if (is_inside) return;
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

std::vector<Vec3f> sample_emitter(const scene::SceneConfig& scene, const scene::Emitter& e,
                                  const Shape& shape) {
  try {
    return sample_particles(shape, {scene.dim, static_cast<float>(scene.dx_m()), e.particles_per_cell,
                                    static_cast<uint64_t>(*e.seed)});
  } catch (const Error& error) {
    throw error.with_location(e.origin.table);
  }
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
    shapes.push_back(make_shape(e, scene.dim));
    about.push_back(shapes.back()->about_volume(scene.dim) / std::pow(scene.dx_m(), scene.dim) *
                    e.particles_per_cell);
  }
  const auto largest = static_cast<size_t>(std::ranges::max_element(about) - about.begin());
  try {
    require_memory(scene, std::reduce(about.begin(), about.end()), limits);
  } catch (const Error& error) {
    refuse_beyond_domain(scene, scene.emitters[largest], *shapes[largest]);
    throw error.with_location(scene.emitters[largest].origin.table);
  }
  EmittedParticles all;
  for (size_t i = 0; i < scene.emitters.size(); ++i) {
    const scene::Emitter& e = scene.emitters[i];
    const std::vector<Vec3f> particles = sample_emitter(scene, e, *shapes[i]);
    if (particles.empty()) refuse_emptiness(scene, e, *shapes[i]);
    check_inside(scene, e, particles);
    warn_of_overlaps(scene, i, particles, std::span(shapes).first(i));
    all.position.insert(all.position.end(), particles.begin(), particles.end());
    all.emitter.insert(all.emitter.end(), particles.size(), static_cast<uint32_t>(i));
  }
  return all;
}

}  // namespace coppice::mpm
