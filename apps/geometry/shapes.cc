// The emitters' inside tests.
#include "apps/geometry/shapes.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "core/log.h"

namespace coppice {
namespace {

void require_finite(const Vec3f& p, const char* what) {
  if (p.allFinite()) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} is not finite: ({}, {}, {})", what, p[0], p[1], p[2]));
}

void require_positive(float value, const char* what) {
  if (std::isfinite(value) && value > 0) return;
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{} is {}, expected a positive number", what, value));
}

// Checks what a mesh emitter needs, counts its open edges and tells of them, and returns the mesh
// with its triangles facing outward.
TriangleMesh prepare(TriangleMesh mesh, const std::string& name, OpenMesh open_mesh, int64_t& open) {
  check_mesh(mesh, name);
  open = open_edge_count(mesh);
  if (open > 0 && open_mesh == OpenMesh::kRefuse) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the mesh has {} open edges, and strict = true wants a closed one", open),
                {name});
  }
  if (open > 0) {
    log_warning(
        "{}: the mesh has {} open edges; inside is decided by the winding number (strict = true refuses)",
        name, open);
  }
  if (signed_volume(mesh) < 0) {
    log_warning("{}: the mesh is inside out; its triangles are turned over", name);
    flip_orientation(mesh);
  }
  return mesh;
}

}  // namespace

SphereShape::SphereShape(const Vec3f& centre, float radius) : centre_(centre), radius_(radius) {
  require_finite(centre, "a sphere's centre");
  require_positive(radius, "a sphere's radius");
}

bool SphereShape::contains(const Vec3f& point) const {
  return (point - centre_).squaredNorm() <= radius_ * radius_;
}

Aabb3f SphereShape::bounds() const {
  return {centre_ - Vec3f::Constant(radius_), centre_ + Vec3f::Constant(radius_)};
}

BoxShape::BoxShape(const Vec3f& min, const Vec3f& max) : box_{min, max} {
  require_finite(min, "a box's min");
  require_finite(max, "a box's max");
  for (int axis = 0; axis < 3; ++axis) {
    if (min[axis] < max[axis]) continue;
    throw Error(ErrorCode::kInvalidArgument, fmt::format("a box's min {} is not below its max {} on axis {}",
                                                         min[axis], max[axis], "xyz"[axis]));
  }
}

bool BoxShape::contains(const Vec3f& point) const { return box_.contains(point); }

CylinderShape::CylinderShape(const Vec3f& a, const Vec3f& b, float radius)
    : a_(a), axis_(b - a), radius_(radius) {
  require_finite(a, "a cylinder's end");
  require_finite(b, "a cylinder's end");
  require_positive(axis_.norm(), "a cylinder's length");
  require_positive(radius, "a cylinder's radius");
}

bool CylinderShape::contains(const Vec3f& point) const {
  const Vec3f offset = point - a_;
  const float along = offset.dot(axis_) / axis_.squaredNorm();
  return along >= 0 && along <= 1 && (offset - along * axis_).squaredNorm() <= radius_ * radius_;
}

// A disc of radius r across the unit axis d reaches r * sqrt(1 - d_i^2) on axis i.
Aabb3f CylinderShape::bounds() const {
  const Vec3f d = axis_.normalized();
  const Vec3f reach = radius_ * (Vec3f::Ones() - d.cwiseAbs2()).cwiseMax(0.0f).cwiseSqrt();
  const Vec3f b = a_ + axis_;
  return {a_.cwiseMin(b) - reach, a_.cwiseMax(b) + reach};
}

MeshShape::MeshShape(TriangleMesh mesh, const std::string& name, OpenMesh open_mesh)
    : bounds_(), winding_number_([&] {
        mesh = prepare(std::move(mesh), name, open_mesh, open_edges_);
        return WindingNumber(mesh);
      }()) {
  bounds_ = mesh_bounds(mesh);
  volume_ = signed_volume(mesh);
}

bool MeshShape::contains(const Vec3f& point) const {
  return bounds_.contains(point) && winding_number_(point) > 0.5f;
}

}  // namespace coppice
