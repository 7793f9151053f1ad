// Shapes that emit particles: sphere, box, cylinder, and closed (or nearly closed) meshes.
//
// Constructors throw coppice::Error(kInvalidArgument) on sizes that are not positive and finite. After
// construction a shape is constant, and any thread may ask it. In 2-D only the plane z = 0 counts: a disc is
// a sphere there, a rectangle a box.
#pragma once

#include <cstdint>
#include <string>

#include "apps/geometry/mesh.h"
#include "apps/geometry/winding_number.h"
#include "core/math.h"

namespace coppice {

class Shape {
 public:
  virtual ~Shape() = default;
  virtual bool contains(const Vec3f& point) const = 0;
  virtual Aabb3f bounds() const = 0;  // finite; contains() is false outside it
  // About its volume, m^3, with a depth of 1 m in 2-D: for estimates.
  virtual double about_volume(int dim) const = 0;
};

class SphereShape final : public Shape {
 public:
  SphereShape(const Vec3f& centre, float radius);
  bool contains(const Vec3f& point) const override;
  Aabb3f bounds() const override;
  double about_volume(int dim) const override;

 private:
  Vec3f centre_;
  float radius_;
};

class BoxShape final : public Shape {
 public:
  BoxShape(const Vec3f& min, const Vec3f& max);
  bool contains(const Vec3f& point) const override;
  Aabb3f bounds() const override { return box_; }
  double about_volume(int dim) const override;

 private:
  Aabb3f box_;
};

// Solid, with flat caps at `a` and `b`, the ends of its axis.
class CylinderShape final : public Shape {
 public:
  CylinderShape(const Vec3f& a, const Vec3f& b, float radius);
  bool contains(const Vec3f& point) const override;
  Aabb3f bounds() const override;
  double about_volume(int dim) const override;

 private:
  Vec3f a_, axis_;  // axis_ is b - a
  float radius_;
};

enum class OpenMesh { kWarn, kRefuse };

// The points where the winding number is above one half, within the mesh's bounds.
class MeshShape final : public Shape {
 public:
  // A mesh with open edges is logged as a warning that counts them, or refused with kInvalidArgument.
  // Triangles that face another way than their neighbours, and a mesh that is inside out, are turned over
  // before, with a warning. `name` is what messages call it.
  MeshShape(TriangleMesh mesh, const std::string& name, OpenMesh open_mesh = OpenMesh::kWarn);
  bool contains(const Vec3f& point) const override;
  Aabb3f bounds() const override { return bounds_; }
  double about_volume(int dim) const override;
  float winding_number(const Vec3f& point) const { return winding_number_(point); }
  int64_t open_edges() const { return open_edges_; }
  double volume() const { return volume_; }  // m^3; of a closed mesh

 private:
  int64_t open_edges_ = 0;
  double volume_ = 0;
  Aabb3f bounds_;
  WindingNumber winding_number_;
};

}  // namespace coppice
