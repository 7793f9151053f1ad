// Walks over the edges between triangles (see mesh_orientation.h).
#include "apps/geometry/mesh_orientation.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace coppice {
namespace {

constexpr int32_t kNone = -1;

struct Edge {
  uint64_t key;  // the smaller vertex id above the larger
  int32_t triangle;
  bool is_upward;  // the triangle runs from the smaller to the larger id
};

// The neighbours of a triangle across edges of exactly two triangles, and whether these face alike.
struct Neighbours {
  std::array<int32_t, 3> triangle{kNone, kNone, kNone};
  std::array<bool, 3> faces_alike{};

  void add(int32_t other, bool alike) {
    const auto free = std::ranges::find(triangle, kNone);
    *free = other;
    faces_alike[static_cast<size_t>(free - triangle.begin())] = alike;
  }
};

std::vector<Neighbours> neighbours_of(const TriangleMesh& mesh) {
  const std::vector<int32_t> representative = weld_by_position(mesh);
  std::vector<Edge> edges;
  edges.reserve(mesh.triangles.size() * 3);
  for (size_t t = 0; t < mesh.triangles.size(); ++t) {
    for (int corner = 0; corner < 3; ++corner) {
      const uint64_t a = representative[mesh.triangles[t][corner]];
      const uint64_t b = representative[mesh.triangles[t][(corner + 1) % 3]];
      if (a != b) edges.push_back({std::min(a, b) << 32 | std::max(a, b), static_cast<int32_t>(t), a < b});
    }
  }
  std::ranges::sort(edges, {}, [](const Edge& e) { return std::pair(e.key, e.triangle); });
  std::vector<Neighbours> all(mesh.triangles.size());
  for (size_t first = 0, last = 0; first < edges.size(); first = last) {
    while (last < edges.size() && edges[last].key == edges[first].key) ++last;
    const Edge &a = edges[first], &b = edges[last - 1];
    if (last - first != 2 || a.triangle == b.triangle) continue;
    const bool alike = a.is_upward != b.is_upward;
    all[static_cast<size_t>(a.triangle)].add(b.triangle, alike);
    all[static_cast<size_t>(b.triangle)].add(a.triangle, alike);
  }
  return all;
}

}  // namespace

int64_t orient_alike(TriangleMesh& mesh) {
  enum class Side : uint8_t { kUnknown, kKept, kTurned };
  const std::vector<Neighbours> neighbours = neighbours_of(mesh);
  std::vector<Side> sides(mesh.triangles.size(), Side::kUnknown);
  int64_t turned = 0;
  std::vector<int32_t> part;  // the triangles that hang together with a first one
  for (size_t first = 0; first < sides.size(); ++first) {
    if (sides[first] != Side::kUnknown) continue;
    part.assign(1, static_cast<int32_t>(first));
    sides[first] = Side::kKept;
    bool has_two_sides = true;
    double kept_area = 0, turned_area = 0;
    for (size_t i = 0; i < part.size(); ++i) {
      const auto t = static_cast<size_t>(part[i]);
      (sides[t] == Side::kKept ? kept_area : turned_area) += twice_area(mesh, mesh.triangles[t]);
      for (size_t k = 0; k < 3 && neighbours[t].triangle[k] != kNone; ++k) {
        const int32_t other = neighbours[t].triangle[k];
        const bool is_kept = (sides[t] == Side::kKept) == neighbours[t].faces_alike[k];
        const Side wanted = is_kept ? Side::kKept : Side::kTurned;
        Side& side = sides[static_cast<size_t>(other)];
        if (side == Side::kUnknown) part.push_back(other);
        has_two_sides = has_two_sides && (side == Side::kUnknown || side == wanted);
        if (side == Side::kUnknown) side = wanted;
      }
    }
    if (!has_two_sides) continue;
    const Side minority = kept_area < turned_area ? Side::kKept : Side::kTurned;
    for (const int32_t t : part) {
      if (sides[static_cast<size_t>(t)] != minority) continue;
      Vec3i& triangle = mesh.triangles[static_cast<size_t>(t)];
      std::swap(triangle[1], triangle[2]);
      ++turned;
    }
  }
  return turned;
}

}  // namespace coppice
