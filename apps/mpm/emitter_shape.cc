// Shapes of emitters (see emitter_shape.h).
#include "apps/mpm/emitter_shape.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

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

}  // namespace

std::unique_ptr<Shape> make_emitter_shape(const scene::Emitter& e, int dim) {
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

std::optional<double> enclosed_volume(const scene::Emitter& e, const Shape& shape, int dim) {
  switch (e.shape) {
    case scene::EmitterShape::kSphere:
      return dim == 2 ? M_PI * e.radius * e.radius : 4.0 / 3 * M_PI * std::pow(e.radius, 3);
    case scene::EmitterShape::kBox:
      return 4 * e.half_size.x() * e.half_size.y() * (dim == 2 ? 1 : 2 * e.half_size.z());
    case scene::EmitterShape::kCylinder:
      return 2 * M_PI * e.radius * e.radius * e.half_height;
    case scene::EmitterShape::kMesh:
      break;
  }
  const auto& mesh = dynamic_cast<const MeshShape&>(shape);
  if (mesh.open_edges() > 0) return std::nullopt;
  return std::abs(mesh.volume());
}

}  // namespace coppice::mpm
