// Triangle meshes: loading (OBJ, PLY), checking, placing, and counting open edges.
//
// Every function that reads a file or a text throws coppice::Error whose location is the file and, for text
// formats, the line. A mesh that load_mesh() returns has at least one triangle of non-zero area, finite
// vertices and indices that are all in range. Nothing here keeps state; all functions may be called from
// several threads.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/math.h"

namespace coppice {

// Triangles are counter-clockwise seen from outside.
struct TriangleMesh {
  std::vector<Vec3f> vertices;   // f32[n_vertices][3], in the file's unit until transformed; beside `origin`
  std::vector<Vec3i> triangles;  // i32[n_triangles][3], indices into `vertices`
  // Zero but for a mesh that lies far from there, whose vertices would lose what tells them apart.
  Vec3d origin = Vec3d::Zero();
};

// Reads the mesh at `path`; the extension (.obj or .ply, any case) names the format.
// Errors: kNotFound (no such file), kIo (unreadable), kInvalidArgument (unknown extension, bad content),
// kDataLoss (fewer elements than the file promises).
TriangleMesh load_mesh(const std::string& path);

// The two parsers behind load_mesh(), for text that is already in memory; `name` is what errors call it.
// OBJ: polygons are cut (append_polygon()), negative and `v/vt/vn` indices are understood, all
// but `v` and `f` is ignored. PLY: ascii and both binary byte orders; polygons are cut, the strips of an
// element `tristrips` are, too (append_strip(); -1 ends one), other elements and properties are skipped.
TriangleMesh parse_obj(std::string_view text, const std::string& name);
TriangleMesh parse_ply(std::string_view bytes, const std::string& name);

// Cuts a polygon into its `corners.size()` - 2 triangles; none for fewer than three corners. Right for
// concave ones too, as far as the winding number goes: the signed triangles have the polygon's boundary, and
// for a plane polygon that alone decides. The halves are cut in turn, so that most triangles are as short as
// an edge: in a fan all are as long as the polygon, and no cluster of them is ever far from a point inside.
void append_polygon(std::span<const int32_t> corners, std::vector<Vec3i>& triangles);

// Cuts a triangle strip: every other triangle has its first two corners swapped, so that all face alike. The
// triangles with two equal corners that join strips are left out.
void append_strip(std::span<const int32_t> corners, std::vector<Vec3i>& triangles);

// Returns the text behind the mark that some programs begin UTF-8 files with. Errors: kInvalidArgument for
// that of UTF-16; `name` is what it calls the file.
std::string_view without_byte_order_mark(std::string_view text, const std::string& name);

// Throws unless `mesh` keeps the promises at the top of this file. `name` is what the error calls the mesh.
void check_mesh(const TriangleMesh& mesh, const std::string& name);

// Twice the area of a triangle of the mesh, which is given by its corners.
double twice_area(const TriangleMesh& mesh, const Vec3i& triangle);

// i32[n_vertices]: for each vertex the smallest index with the same position.
std::vector<int32_t> weld_by_position(const TriangleMesh& mesh);

// Makes these the vertices of a mesh that has none, beside its origin.
void take_vertices(TriangleMesh& mesh, std::span<const Vec3d> vertices);

// The box around all vertices that a triangle uses.
Aabb3f mesh_bounds(const TriangleMesh& mesh);

// The enclosed volume, summed over signed tetrahedra in double; positive when the triangles face outward. For
// an open mesh it is an estimate: each hole is closed by a cone to the middle of the bounds.
double signed_volume(const TriangleMesh& mesh);

// world = rotation * (scale * mesh) + translation.
struct MeshTransform {
  float scale = 1.0f;
  Mat3f rotation = Mat3f::Identity();
  Vec3f translation = Vec3f::Zero();
};
void transform_mesh(TriangleMesh& mesh, const MeshTransform& world_from_mesh);

// The rotation about x, then y, then z, angles in degrees.
Mat3f rotation_from_euler_degrees(const Vec3f& angles_deg);

// Scales uniformly and moves `mesh` so that its bounds touch `box` on the tightest axis and share its middle.
// Throws kInvalidArgument when `box` is empty or not finite.
void fit_mesh_into(TriangleMesh& mesh, const Aabb3f& box);

// Turns every triangle over.
void flip_orientation(TriangleMesh& mesh);

// Edges that as many triangles do not cross one way as the other: 0 means closed and oriented, so that the
// winding number is an integer everywhere off the surface. An edge with two triangles on it that face alike
// counts as open; one where two closed parts touch (four triangles) does not. Vertices at the same position
// count as one, so that a "triangle soup" written with three vertices per triangle is not all edges.
int64_t open_edge_count(const TriangleMesh& mesh);

}  // namespace coppice
