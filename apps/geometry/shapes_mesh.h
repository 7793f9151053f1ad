// Meshes of shapes that a formula makes: box, sphere, torus knot; and the OBJ writer.
//
// All are closed, oriented outward and free of duplicate vertices. assets/meshes/knot.obj is
// obj_text(torus_knot_mesh({}), kKnotComment), and a test compares the two.
#pragma once

#include <string>

#include "apps/geometry/mesh.h"

namespace coppice {

// 12 triangles.
TriangleMesh box_mesh(const Vec3f& min, const Vec3f& max);

// Rings of latitude; n_rings >= 2, n_segments >= 3.
TriangleMesh sphere_mesh(const Vec3f& centre, float radius, int n_rings, int n_segments);

// A tube along the (p, q) torus knot, p and q coprime: p turns about the z axis while it makes q about the
// torus' core.
struct TorusKnot {
  int p = 2, q = 3;
  double major_radius = 1.0;  // of the torus' core circle
  double minor_radius = 0.45;
  double tube_radius = 0.24;
  int n_segments = 168;  // along the tube
  int n_sides = 14;      // around it
};
TriangleMesh torus_knot_mesh(const TorusKnot& knot);
inline constexpr const char* kKnotComment =
    "Coppice's trefoil: made by torus_knot_mesh() in apps/geometry/shapes_mesh.cc";

// The mesh as OBJ, coordinates to five decimals; `comment` becomes the first line unless empty.
std::string obj_text(const TriangleMesh& mesh, const std::string& comment = "");

// Writes obj_text() to `path`, whole or not at all. Throws Error(kIo).
void write_obj(const std::string& path, const TriangleMesh& mesh, const std::string& comment = "");

}  // namespace coppice
