// The emitters' inside tests.
#include "apps/geometry/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/geometry/mesh_orientation.h"
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

// Checks what a mesh emitter needs, lets its triangles face alike, counts its open edges, tells of what it
// finds, and returns the mesh with its triangles facing outward.
TriangleMesh prepare(TriangleMesh mesh, const std::string& name, OpenMesh open_mesh, int64_t& open) {
  check_mesh(mesh, name);
  if (const int64_t turned = orient_alike(mesh); turned > 0) {
    log_warning(
        "{}: {} of the mesh's {} triangles faced another way than their neighbours, and are turned over",
        name, turned, mesh.triangles.size());
  }
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

double SphereShape::about_volume(int dim) const {
  const double r = radius_;
  return dim == 2 ? M_PI * r * r : 4.0 / 3 * M_PI * r * r * r;
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

double BoxShape::about_volume(int dim) const {
  const Vec3d size = box_.size().cast<double>();
  return size.x() * size.y() * (dim == 2 ? 1 : size.z());
}

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

double CylinderShape::about_volume(int) const {
  return M_PI * radius_ * radius_ * static_cast<double>(axis_.norm());
}

MeshShape::MeshShape(TriangleMesh mesh, const std::string& name, OpenMesh open_mesh)
    : bounds_(), winding_number_([&] {
        mesh = prepare(std::move(mesh), name, open_mesh, open_edges_);
        return WindingNumber(mesh);
      }()) {
  bounds_ = mesh_bounds(mesh);
  volume_ = signed_volume(mesh);
}

double MeshShape::about_volume(int) const {
  return std::min(std::abs(volume_), bounds_.size().cast<double>().prod());
}

bool MeshShape::contains(const Vec3f& point) const {
  return bounds_.contains(point) && winding_number_(point) > 0.5f;
}

}  // namespace coppice
