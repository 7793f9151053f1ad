// Bounds, lights, lines and packed colliders of a scene.
#include "apps/render/scene_geometry.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace coppice::render {
namespace {

constexpr size_t kFloatsPerCollider = 24;
// Distances begin at whole multiples of so many, whose numbers are exact in a float.
constexpr size_t kAlignedDistances = 64;

Vec3f extent_of(const RenderCollider& c, int dim) {
  if (c.shape == RenderColliderShape::kSphere) return Vec3f::Constant(c.radius_m);
  Vec3f half = c.half_size;
  if (dim == 2)
    half.z() = std::max(1e-3f, std::max(half.x(), half.y()));  // seen along z, so that any depth will do
  return half;
}

void extend_by_sphere(const Vec3f& center, float radius, Aabb3f* bounds) {
  bounds->extend(Vec3f(center - Vec3f::Constant(radius)));
  bounds->extend(Vec3f(center + Vec3f::Constant(radius)));
}

}  // namespace

std::vector<float> pack_colliders(const RenderScene& scene) {
  std::vector<float> packed;
  packed.reserve(scene.colliders.size() * kFloatsPerCollider);
  for (const RenderCollider& c : scene.colliders) {
    const bool is_turned = c.shape != RenderColliderShape::kSphere && c.shape != RenderColliderShape::kPlane;
    const Vec3f half = extent_of(c, scene.dim);
    packed.insert(packed.end(),
                  {c.center.x(), c.center.y(), c.center.z(), static_cast<float>(static_cast<int>(c.shape))});
    for (int axis = 0; axis < 3; ++axis) {
      const Vec3f direction = is_turned ? Vec3f(c.world_from_local.col(axis)) : Vec3f(Vec3f::Unit(axis));
      packed.insert(packed.end(), {direction.x(), direction.y(), direction.z(), half[axis]});
    }
    const RenderDistances& d = c.distances;
    const bool is_mesh = c.shape == RenderColliderShape::kMesh;
    const Vec3f first = is_mesh ? d.low : c.normal;
    packed.insert(packed.end(), {first.x(), first.y(), first.z(), is_mesh ? d.spacing_m : c.offset_m});
    packed.insert(packed.end(), {static_cast<float>(d.nodes.x()), static_cast<float>(d.nodes.y()),
                                 static_cast<float>(d.nodes.z()), 0.0f});
  }
  for (size_t i = 0; i < scene.colliders.size(); ++i) {
    const auto& values = scene.colliders[i].distances.values;
    if (!values) continue;
    packed.resize((packed.size() + kAlignedDistances - 1) / kAlignedDistances * kAlignedDistances);
    packed[(i + 1) * kFloatsPerCollider - 1] = static_cast<float>(packed.size() / kAlignedDistances);
    packed.insert(packed.end(), values->begin(), values->end());
  }
  packed.resize((packed.size() + 3) / 4 * 4);
  return packed;
}

Aabb3f drawn_bounds(const RenderScene& scene, const Aabb3f& particles) {
  Aabb3f bounds = particles;
  if (!bounds.is_empty()) {
    bounds.min.array() -= scene.radius_m;
    bounds.max.array() += scene.radius_m;
  }
  for (const RenderCollider& c : scene.colliders) {
    extend_by_sphere(c.center, extent_of(c, scene.dim).norm(), &bounds);
  }
  const Vec3f slack = Vec3f::Constant(0.5f * scene.domain.size().maxCoeff() + scene.radius_m);
  bounds.min = bounds.min.cwiseMax(scene.domain.min - slack);
  bounds.max = bounds.max.cwiseMin(scene.domain.max + slack);
  return bounds.is_empty() ? scene.domain : bounds;
}

std::array<Vec2f, 2> shown_rectangle(const Aabb3f& domain, int dim) {
  constexpr float kFar = std::numeric_limits<float>::max();
  if (dim == 3) return {Vec2f::Constant(-kFar), Vec2f::Constant(kFar)};
  return {Vec2f(domain.min.head<2>()), Vec2f(domain.max.head<2>())};
}

Vec3f to_key_light() { return Vec3f(-0.42f, 1.0f, 0.5f).normalized(); }

Camera light_camera(const Aabb3f& bounds) {
  Camera camera;
  camera.projection = Projection::kOrthographic;
  camera.look_at = bounds.center();
  const float radius = std::max(0.5f * bounds.size().norm(), 1e-6f);
  camera.position = camera.look_at + to_key_light() * (2.0f * radius);
  camera.height_m = 2.04f * radius;
  return camera;
}

Aabb3f shadow_bounds(const RenderScene& scene, const Aabb3f& drawn) {
  const Vec3f light = to_key_light();
  const Vec3f down = light * (std::max(drawn.max.y() - scene.domain.min.y(), 0.0f) / light.y());
  Aabb3f bounds = drawn;
  bounds.extend(Vec3f(drawn.min - down));
  bounds.extend(Vec3f(drawn.max - down));
  return bounds;
}

Vec4f floor_sun_bounds(const RenderScene& scene) {
  const Vec3f light = to_key_light();
  const Vec3f away = -light / light.y() * scene.domain.size().y();  // where the shadow of the ceiling goes
  const float slack = 0.1f * scene.domain.size().maxCoeff();
  const Vec3f low = scene.domain.min + away.cwiseMin(0.0f) - Vec3f::Constant(slack);
  const Vec3f high = scene.domain.max + away.cwiseMax(0.0f) + Vec3f::Constant(slack);
  return {low.x(), low.z(), high.x(), high.z()};
}

float grid_spacing(const Aabb3f& domain) {
  const float wanted = std::max(domain.size().maxCoeff() / 10.0f, 1e-6f);
  const float decade = std::pow(10.0f, std::floor(std::log10(wanted)));
  const float step = wanted / decade;
  return decade * (step < 1.5f ? 1.0f : step < 3.5f ? 2.0f : step < 7.5f ? 5.0f : 10.0f);
}

std::vector<Vec4f> back_edges(const RenderScene& scene, int width, int height) {
  std::vector<Vec4f> edges;
  const Aabb3f& box = scene.domain;
  const Vec3f eye = scene.camera.position;
  const Mat4f view = scene.camera.view_from_world();
  const auto seen_from_inside = [&](int axis, int side) {
    return side != 0 ? eye[axis] < box.max[axis] : eye[axis] > box.min[axis];
  };
  for (int axis = 0; axis < 3; ++axis) {
    for (int sides = 0; sides < 4; ++sides) {
      const int u = (axis + 1) % 3;
      const int v = (axis + 2) % 3;
      const int at_u = sides & 1;
      const int at_v = sides >> 1;
      const bool on_floor = (u == 1 && at_u == 0) || (v == 1 && at_v == 0);
      if (on_floor || !(seen_from_inside(u, at_u) || seen_from_inside(v, at_v))) continue;
      Vec3f from = box.min;
      from[u] = at_u != 0 ? box.max[u] : box.min[u];
      from[v] = at_v != 0 ? box.max[v] : box.min[v];
      Vec3f to = from;
      to[axis] = box.max[axis];
      const auto depth = [&](const Vec3f& p) { return -(view.block<1, 3>(2, 0).dot(p) + view(2, 3)); };
      if (std::min(depth(from), depth(to)) <= 1e-3f * scene.camera.height_m) continue;
      const Vec2f a = scene.camera.pixel_from_world(from, width, height);
      const Vec2f b = scene.camera.pixel_from_world(to, width, height);
      const float top = static_cast<float>(height);
      edges.push_back(Vec4f(a.x(), top - a.y(), b.x(), top - b.y()));
    }
  }
  return edges;
}

}  // namespace coppice::render
