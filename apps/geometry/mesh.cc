// Mesh checks, placement, open edges, and the choice of the reader by file extension.
#include "apps/geometry/mesh.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <limits>
#include <numeric>
#include <tuple>

#include "core/error.h"
#include "core/read_file.h"

namespace coppice {
namespace {

std::string read_whole_file(const std::string& path) {
  std::error_code status;
  if (!std::filesystem::exists(path, status)) throw Error(ErrorCode::kNotFound, "no such mesh file", {path});
  if (std::filesystem::is_directory(path, status)) {
    throw Error(ErrorCode::kIo, "expected a mesh file, found a folder", {path});
  }
  std::string text;
  constexpr size_t kMostBytes = size_t{4} << 30;
  if (const int error = read_file(path, text, kMostBytes); error != 0) {
    const bool was_opened = error == EIO || error == EFBIG;
    throw Error(
        ErrorCode::kIo,
        fmt::format("cannot {} mesh: {}", was_opened ? "read" : "open", why_unread(error, kMostBytes)),
        {path});
  }
  return text;
}

// The box around the used vertices as they stand, beside the mesh's origin.
Aabb3f own_bounds(const TriangleMesh& mesh) {
  Aabb3f box;
  for (const Vec3i& triangle : mesh.triangles) {
    for (int corner = 0; corner < 3; ++corner) box.extend(mesh.vertices[triangle[corner]]);
  }
  return box;
}

// So far away from the origin six and more of a number's 24 bits say nothing about a mesh of this size.
bool is_far(const Vec3d& middle, double size) { return middle.cwiseAbs().maxCoeff() > 64 * size; }

}  // namespace

void take_vertices(TriangleMesh& mesh, std::span<const Vec3d> vertices) {
  Vec3d low = Vec3d::Constant(std::numeric_limits<double>::infinity()), high = -low;
  for (const Vec3d& p : vertices) low = low.cwiseMin(p), high = high.cwiseMax(p);
  const Vec3d middle = 0.5 * low + 0.5 * high;
  if (!vertices.empty() && is_far(middle, (high - low).maxCoeff())) mesh.origin = middle;
  mesh.vertices.reserve(vertices.size());
  for (const Vec3d& p : vertices) mesh.vertices.emplace_back((p - mesh.origin).cast<float>());
}

double twice_area(const TriangleMesh& mesh, const Vec3i& t) {
  const Vec3d a = mesh.vertices[t[0]].cast<double>();
  return (mesh.vertices[t[1]].cast<double>() - a).cross(mesh.vertices[t[2]].cast<double>() - a).norm();
}

std::vector<int32_t> weld_by_position(const TriangleMesh& mesh) {
  std::vector<int32_t> order(mesh.vertices.size()), representative(mesh.vertices.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](int32_t id) {
    const Vec3f& p = mesh.vertices[id];
    return std::tuple(p[0], p[1], p[2]);
  };
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return std::tuple_cat(key(a), std::tuple(a)) < std::tuple_cat(key(b), std::tuple(b));
  });
  for (size_t i = 0; i < order.size(); ++i) {
    const bool same = i > 0 && key(order[i]) == key(order[i - 1]);
    representative[order[i]] = same ? representative[order[i - 1]] : order[i];
  }
  return representative;
}

TriangleMesh load_mesh(const std::string& path) {
  std::string extension = std::filesystem::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (extension != ".obj" && extension != ".ply") {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("unknown mesh format '{}', expected .obj or .ply", extension), {path});
  }
  const std::string text = read_whole_file(path);
  return extension == ".obj" ? parse_obj(text, path) : parse_ply(text, path);
}

std::string_view without_byte_order_mark(std::string_view text, const std::string& name) {
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    throw Error(ErrorCode::kInvalidArgument, "the file is UTF-16 text; expected UTF-8 or ASCII", {name, 1});
  }
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text;
}

void append_strip(std::span<const int32_t> corners, std::vector<Vec3i>& triangles) {
  for (size_t i = 0; i + 2 < corners.size(); ++i) {
    const int32_t a = corners[i], b = corners[i + 1], c = corners[i + 2];
    if (a == b || b == c || c == a) continue;
    triangles.push_back(i % 2 == 0 ? Vec3i(a, b, c) : Vec3i(b, a, c));
  }
}

void append_polygon(std::span<const int32_t> corners, std::vector<Vec3i>& triangles) {
  if (corners.size() < 3) return;
  const size_t middle = corners.size() / 2;
  append_polygon(corners.first(middle + 1), triangles);
  triangles.emplace_back(corners.front(), corners[middle], corners.back());
  append_polygon(corners.subspan(middle), triangles);
}

void check_mesh(const TriangleMesh& mesh, const std::string& name) {
  for (size_t v = 0; v < mesh.vertices.size(); ++v) {
    const Vec3f& p = mesh.vertices[v];
    if (!p.allFinite()) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("vertex {} is not finite: ({}, {}, {})", v, p[0], p[1], p[2]), {name});
    }
  }
  if (mesh.triangles.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the mesh has no triangles, and {} vert{}", mesh.vertices.size(),
                            mesh.vertices.size() == 1 ? "ex" : "ices"),
                {name});
  }
  const int64_t n_vertices = static_cast<int64_t>(mesh.vertices.size());
  double largest = 0;
  for (size_t t = 0; t < mesh.triangles.size(); ++t) {
    const Vec3i& triangle = mesh.triangles[t];
    if (triangle.minCoeff() < 0 || triangle.maxCoeff() >= n_vertices) {
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("triangle {} uses vertices ({}, {}, {}), expected 0 to {}", t, triangle[0],
                              triangle[1], triangle[2], n_vertices - 1),
                  {name});
    }
    largest = std::max(largest, twice_area(mesh, triangle));
  }
  if (largest <= 0) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("all {} triangles have zero area", mesh.triangles.size()), {name});
  }
}

Aabb3f mesh_bounds(const TriangleMesh& mesh) {
  const Aabb3f box = own_bounds(mesh);
  const Vec3f origin = mesh.origin.cast<float>();
  return {box.min + origin, box.max + origin};
}

double signed_volume(const TriangleMesh& mesh) {
  const Vec3d middle = own_bounds(mesh).center().cast<double>();
  double sum = 0;
  for (const Vec3i& t : mesh.triangles) {
    const Vec3d a = mesh.vertices[t[0]].cast<double>() - middle;
    const Vec3d b = mesh.vertices[t[1]].cast<double>() - middle;
    const Vec3d c = mesh.vertices[t[2]].cast<double>() - middle;
    sum += a.dot(b.cross(c));
  }
  return sum / 6.0;
}

void transform_mesh(TriangleMesh& mesh, const MeshTransform& world_from_mesh) {
  const Mat3f linear = world_from_mesh.rotation * world_from_mesh.scale;
  if (mesh.origin.isZero()) {
    for (Vec3f& p : mesh.vertices) p = (linear * p + world_from_mesh.translation).eval();
    return;
  }
  for (Vec3f& p : mesh.vertices) p = (linear * p).eval();
  mesh.origin = linear.cast<double>() * mesh.origin + world_from_mesh.translation.cast<double>();
  if (is_far(mesh.origin, own_bounds(mesh).size().maxCoeff())) return;
  for (Vec3f& p : mesh.vertices) p = (p.cast<double>() + mesh.origin).cast<float>();
  mesh.origin.setZero();
}

Mat3f rotation_from_euler_degrees(const Vec3f& angles_deg) {
  const Vec3f angles = angles_deg * static_cast<float>(M_PI / 180.0);
  return (Eigen::AngleAxisf(angles[2], Vec3f::UnitZ()) * Eigen::AngleAxisf(angles[1], Vec3f::UnitY()) *
          Eigen::AngleAxisf(angles[0], Vec3f::UnitX()))
      .toRotationMatrix();
}

void fit_mesh_into(TriangleMesh& mesh, const Aabb3f& box) {
  const Vec3f target = box.size();
  if (!target.allFinite() || !(target.minCoeff() > 0)) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("cannot fit a mesh into a box of size ({}, {}, {})",
                                                         target[0], target[1], target[2]));
  }
  const Aabb3f bounds = own_bounds(mesh);
  const Vec3f size = bounds.size();
  float scale = std::numeric_limits<float>::infinity();
  for (int axis = 0; axis < 3; ++axis) {
    if (size[axis] > 0) scale = std::min(scale, target[axis] / size[axis]);
  }
  const Vec3f middle = bounds.center(), centre = box.center();
  for (Vec3f& p : mesh.vertices) p = ((p - middle) * scale + centre).eval();
  mesh.origin.setZero();
}

void flip_orientation(TriangleMesh& mesh) {
  for (Vec3i& triangle : mesh.triangles) std::swap(triangle[1], triangle[2]);
}

int64_t open_edge_count(const TriangleMesh& mesh) {
  struct Edge {
    uint64_t key;       // the smaller vertex id above the larger
    int32_t direction;  // +1: the triangle runs from the smaller to the larger id
  };
  const std::vector<int32_t> representative = weld_by_position(mesh);
  std::vector<Edge> edges;
  edges.reserve(mesh.triangles.size() * 3);
  for (const Vec3i& triangle : mesh.triangles) {
    for (int corner = 0; corner < 3; ++corner) {
      const uint64_t a = representative[triangle[corner]], b = representative[triangle[(corner + 1) % 3]];
      if (a != b) edges.push_back({std::min(a, b) << 32 | std::max(a, b), a < b ? 1 : -1});
    }
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.key < b.key; });
  int64_t open = 0;
  for (size_t first = 0, last = 0; first < edges.size(); first = last) {
    int32_t balance = 0;
    for (; last < edges.size() && edges[last].key == edges[first].key; ++last)
      balance += edges[last].direction;
    open += balance != 0;
  }
  return open;
}

}  // namespace coppice
