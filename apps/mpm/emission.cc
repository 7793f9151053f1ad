// Turns a scene's emitters into particles (see emission.h).
#include "apps/mpm/emission.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "apps/geometry/sampling.h"
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

 private:
  std::unique_ptr<Shape> shape_;
  Mat3f world_from_local_;
  Vec3f center_;
};

std::unique_ptr<Shape> make_mesh_shape(const scene::Emitter& e) {
  const InputLocation& where = e.origin.of("mesh");
  try {
    TriangleMesh mesh = load_mesh(e.mesh_path.string());
    transform_mesh(mesh, {1.0f, rotation_from_euler_degrees(e.rotate_deg.cast<float>()), Vec3f::Zero()});
    const Vec3f to = e.translate.cast<float>();
    if (e.fit) {
      const Vec3f half = Vec3f::Constant(static_cast<float>(*e.fit) / 2);
      fit_mesh_into(mesh, {to - half, to + half});
    } else {
      transform_mesh(mesh, {static_cast<float>(e.scale), Mat3f::Identity(), to});
    }
    return std::make_unique<MeshShape>(std::move(mesh), e.mesh_path.string(),
                                       e.strict ? OpenMesh::kRefuse : OpenMesh::kWarn);
  } catch (const Error& error) {
    // The mesh's own place goes into the message; the scene's line is where the user starts looking.
    throw Error(error.code(), error.what(), where);
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
      return std::make_unique<SphereShape>(c, static_cast<float>(e.radius));
    case scene::EmitterShape::kMesh:
      return make_mesh_shape(e);
    case scene::EmitterShape::kBox:
      shape = std::make_unique<BoxShape>(c - half, c + half);
      break;
    case scene::EmitterShape::kCylinder: {
      const Vec3f axis(0, static_cast<float>(e.half_height), 0);
      shape = std::make_unique<CylinderShape>(c - axis, c + axis, static_cast<float>(e.radius));
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
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} of the emitter's {} particles are outside the domain, one at ({:.4g}, {:.4g}, "
                          "{:.4g}); the domain is ({:.4g}, {:.4g}, {:.4g}) to ({:.4g}, {:.4g}, {:.4g})",
                          outside, particles.size(), (*first)[0], (*first)[1], (*first)[2], low[0], low[1],
                          low[2], high[0], high[1], high[2]),
              e.origin.table);
}

}  // namespace

EmittedParticles emit_particles(const scene::SceneConfig& scene) {
  EmittedParticles all;
  for (size_t i = 0; i < scene.emitters.size(); ++i) {
    const scene::Emitter& e = scene.emitters[i];
    const std::unique_ptr<Shape> shape = make_shape(e, scene.dim);
    const SamplingOptions options{scene.dim, static_cast<float>(scene.dx_m()), e.particles_per_cell,
                                  static_cast<uint64_t>(*e.seed)};
    const std::vector<Vec3f> particles = sample_particles(*shape, options);
    if (particles.empty()) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("the emitter yields no particles: it is smaller than a grid cell of {:.4g} m",
                              scene.dx_m()),
                  e.origin.table);
    }
    check_inside(scene, e, particles);
    all.position.insert(all.position.end(), particles.begin(), particles.end());
    all.emitter.insert(all.emitter.end(), particles.size(), static_cast<uint8_t>(i));
  }
  return all;
}

}  // namespace coppice::mpm
