// Generates box, sphere and torus-knot meshes and writes OBJ.
#include "apps/geometry/shapes_mesh.h"

#include <fmt/format.h>

#include <cmath>

#include "core/atomic_file.h"
#include "core/check.h"

namespace coppice {
namespace {

// The two triangles of the quad a b c d, counter-clockwise.
void push_quad(TriangleMesh& mesh, int a, int b, int c, int d) {
  mesh.triangles.push_back({a, b, c});
  mesh.triangles.push_back({a, c, d});
}

// Five decimals, with no "-0.00000" that would depend on the last bit of a sine.
std::string coordinate(float value) {
  std::string text = fmt::format("{:.5f}", value);
  return text == "-0.00000" ? "0.00000" : text;
}

}  // namespace

TriangleMesh box_mesh(const Vec3f& min, const Vec3f& max) {
  TriangleMesh mesh;
  for (int corner = 0; corner < 8; ++corner) {
    mesh.vertices.push_back(
        {corner & 1 ? max[0] : min[0], corner & 2 ? max[1] : min[1], corner & 4 ? max[2] : min[2]});
  }
  push_quad(mesh, 0, 4, 6, 2);
  push_quad(mesh, 1, 3, 7, 5);
  push_quad(mesh, 0, 1, 5, 4);
  push_quad(mesh, 2, 6, 7, 3);
  push_quad(mesh, 0, 2, 3, 1);
  push_quad(mesh, 4, 5, 7, 6);
  return mesh;
}

TriangleMesh sphere_mesh(const Vec3f& centre, float radius, int n_rings, int n_segments) {
  COPPICE_CHECK(n_rings >= 2, "rings between the poles");
  COPPICE_CHECK(n_segments >= 3, "segments of a ring");
  TriangleMesh mesh;
  for (int ring = 1; ring < n_rings; ++ring) {
    const double theta = M_PI * ring / n_rings;  // from the north pole
    for (int segment = 0; segment < n_segments; ++segment) {
      const double phi = 2.0 * M_PI * segment / n_segments;
      const Vec3d direction(std::sin(theta) * std::cos(phi), std::sin(theta) * std::sin(phi),
                            std::cos(theta));
      mesh.vertices.push_back(centre + radius * direction.cast<float>());
    }
  }
  const int north = static_cast<int>(mesh.vertices.size()), south = north + 1;
  mesh.vertices.push_back(centre + Vec3f(0, 0, radius));
  mesh.vertices.push_back(centre - Vec3f(0, 0, radius));
  const int last_ring = (n_rings - 2) * n_segments;
  for (int segment = 0; segment < n_segments; ++segment) {
    const int next = (segment + 1) % n_segments;
    mesh.triangles.push_back({north, segment, next});
    for (int ring = 0; ring < last_ring; ring += n_segments) {
      push_quad(mesh, ring + segment, ring + n_segments + segment, ring + n_segments + next, ring + next);
    }
    mesh.triangles.push_back({south, last_ring + next, last_ring + segment});
  }
  return mesh;
}

TriangleMesh torus_knot_mesh(const TorusKnot& knot) {
  COPPICE_CHECK(knot.n_segments >= 3, "segments along the tube");
  COPPICE_CHECK(knot.n_sides >= 3, "sides around the tube");
  TriangleMesh mesh;
  for (int segment = 0; segment < knot.n_segments; ++segment) {
    const double t = 2.0 * M_PI * segment / knot.n_segments;
    const Vec3d outward(std::cos(knot.p * t), std::sin(knot.p * t), 0);  // from the z axis to the core circle
    const Vec3d along(-std::sin(knot.p * t), std::cos(knot.p * t), 0);   // of the core circle
    // Normal of the torus: periodic over the knot, so that the tube closes without a twist.
    const Vec3d normal = std::cos(knot.q * t) * outward + std::sin(knot.q * t) * Vec3d::UnitZ();
    const Vec3d around = -std::sin(knot.q * t) * outward + std::cos(knot.q * t) * Vec3d::UnitZ();
    const Vec3d centre = knot.major_radius * outward + knot.minor_radius * normal;
    const double ring_radius = knot.major_radius + knot.minor_radius * std::cos(knot.q * t);
    const Vec3d tangent = (knot.p * ring_radius * along + knot.q * knot.minor_radius * around).normalized();
    const Vec3d binormal = tangent.cross(normal);
    for (int side = 0; side < knot.n_sides; ++side) {
      const double angle = 2.0 * M_PI * side / knot.n_sides;
      const Vec3d p = centre + knot.tube_radius * (std::cos(angle) * normal + std::sin(angle) * binormal);
      mesh.vertices.push_back(p.cast<float>());
    }
  }
  for (int segment = 0; segment < knot.n_segments; ++segment) {
    const int ring = segment * knot.n_sides, next_ring = (segment + 1) % knot.n_segments * knot.n_sides;
    for (int side = 0; side < knot.n_sides; ++side) {
      const int next = (side + 1) % knot.n_sides;
      push_quad(mesh, ring + side, ring + next, next_ring + next, next_ring + side);
    }
  }
  return mesh;
}

std::string obj_text(const TriangleMesh& mesh, const std::string& comment) {
  std::string text = comment.empty() ? "" : "# " + comment + "\n";
  for (const Vec3f& p : mesh.vertices) {
    text += fmt::format("v {} {} {}\n", coordinate(p[0]), coordinate(p[1]), coordinate(p[2]));
  }
  for (const Vec3i& t : mesh.triangles) text += fmt::format("f {} {} {}\n", t[0] + 1, t[1] + 1, t[2] + 1);
  return text;
}

void write_obj(const std::string& path, const TriangleMesh& mesh, const std::string& comment) {
  AtomicFile file(path);
  file.write(obj_text(mesh, comment));
  file.commit();
}

}  // namespace coppice
