// Builds the cluster tree and evaluates the winding number.
#include "apps/geometry/winding_number.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace coppice {
namespace {

constexpr int32_t kLeafTriangles = 8;

// Signed solid angle of triangle (a, b, c) seen from the origin.
template <class Vec>
auto solid_angle(const Vec& a, const Vec& b, const Vec& c) {
  const auto la = a.norm(), lb = b.norm(), lc = c.norm();
  const auto determinant = a.dot(b.cross(c));
  const auto denominator = la * lb * lc + a.dot(b) * lc + b.dot(c) * la + c.dot(a) * lb;
  return 2 * std::atan2(determinant, denominator);
}

}  // namespace

WindingNumber::WindingNumber(const TriangleMesh& mesh, float beta) {
  COPPICE_CHECK(beta >= 1.0f, "beta");
  corners_.reserve(mesh.triangles.size());
  for (const Vec3i& t : mesh.triangles) {
    corners_.push_back({mesh.vertices[t[0]], mesh.vertices[t[1]], mesh.vertices[t[2]]});
  }
  if (corners_.empty()) return;
  nodes_.reserve(corners_.size() / 2);
  build(corners_, 0, static_cast<int32_t>(corners_.size()), beta);
}

// Median split of the triangles' centroids on the widest axis: depth log2(n), whatever the mesh.
int32_t WindingNumber::build(std::vector<Corners>& triangles, int32_t begin, int32_t end, float beta) {
  const int32_t id = static_cast<int32_t>(nodes_.size());
  nodes_.push_back(make_node(begin, end, beta));
  if (end - begin <= kLeafTriangles) {
    nodes_[id].first_triangle = begin;
  } else {
    const auto thrice_centroid = [](const Corners& t) -> Vec3f { return t.a + t.b + t.c; };
    Vec3f low = thrice_centroid(triangles[begin]), high = low;
    for (int32_t t = begin; t < end; ++t) {
      low = low.cwiseMin(thrice_centroid(triangles[t]));
      high = high.cwiseMax(thrice_centroid(triangles[t]));
    }
    int axis = 0;
    (high - low).maxCoeff(&axis);
    const int32_t middle = begin + (end - begin) / 2;
    std::nth_element(triangles.begin() + begin, triangles.begin() + middle, triangles.begin() + end,
                     [&](const Corners& s, const Corners& t) {
                       return s.a[axis] + s.b[axis] + s.c[axis] < t.a[axis] + t.b[axis] + t.c[axis];
                     });
    build(triangles, begin, middle, beta);
    build(triangles, middle, end, beta);
  }
  nodes_[id].next = static_cast<int32_t>(nodes_.size());
  return id;
}

WindingNumber::Node WindingNumber::make_node(int32_t begin, int32_t end, float beta) const {
  Vec3d weighted = Vec3d::Zero(), area_normal = Vec3d::Zero(), plain = Vec3d::Zero();
  double area = 0;
  const auto half_cross = [](const Corners& t) -> Vec3d {
    const Vec3d a = t.a.cast<double>();
    return 0.5 * (t.b.cast<double>() - a).cross(t.c.cast<double>() - a);
  };
  const auto centroid_of = [](const Corners& t) -> Vec3d {
    return (t.a.cast<double>() + t.b.cast<double>() + t.c.cast<double>()) / 3.0;
  };
  for (int32_t i = begin; i < end; ++i) {
    const Vec3d n = half_cross(corners_[i]), m = centroid_of(corners_[i]);
    area += n.norm();
    area_normal += n;
    weighted += n.norm() * m;
    plain += m;
  }
  // A cluster of zero-area triangles has no weights, and no field either.
  const Vec3d centroid = area > 0 ? Vec3d(weighted / area) : Vec3d(plain / (end - begin));
  Eigen::Matrix3d moment = Eigen::Matrix3d::Zero();
  double radius = 0;
  for (int32_t i = begin; i < end; ++i) {
    const Corners& t = corners_[i];
    moment += (centroid_of(t) - centroid) * half_cross(t).transpose();
    for (const Vec3f* p : {&t.a, &t.b, &t.c})
      radius = std::max(radius, (p->cast<double>() - centroid).norm());
  }
  Node node{};
  node.centroid = centroid.cast<float>();
  node.far_distance_sq = static_cast<float>(beta * beta * radius * radius);
  node.area_normal = area_normal.cast<float>();
  for (int i = 0; i < 3; ++i) node.moment[i] = static_cast<float>(moment(i, i));
  node.moment[3] = static_cast<float>(0.5 * (moment(0, 1) + moment(1, 0)));
  node.moment[4] = static_cast<float>(0.5 * (moment(0, 2) + moment(2, 0)));
  node.moment[5] = static_cast<float>(0.5 * (moment(1, 2) + moment(2, 1)));
  node.first_triangle = -1;
  node.n_triangles = end - begin;
  return node;
}

float WindingNumber::operator()(const Vec3f& point) const {
  float sum = 0;  // solid angle
  const int32_t n_nodes = static_cast<int32_t>(nodes_.size());
  for (int32_t id = 0; id < n_nodes;) {
    const Node& node = nodes_[id];
    const Vec3f r = node.centroid - point;
    const float r_sq = r.squaredNorm();
    if (r_sq > node.far_distance_sq) {
      // Field of the dipole density n at distance r: n.r / |r|^3, plus its derivative along the offsets in
      // `moment`: tr(M) / |r|^3 - 3 r.M r / |r|^5.
      const float inverse_sq = 1.0f / r_sq, inverse_cube = inverse_sq * std::sqrt(inverse_sq);
      const float* m = node.moment;
      const float r_m_r = r[0] * r[0] * m[0] + r[1] * r[1] * m[1] + r[2] * r[2] * m[2] +
                          2.0f * (r[0] * r[1] * m[3] + r[0] * r[2] * m[4] + r[1] * r[2] * m[5]);
      sum += inverse_cube * (node.area_normal.dot(r) + m[0] + m[1] + m[2] - 3.0f * r_m_r * inverse_sq);
      id = node.next;
    } else if (node.first_triangle >= 0) {
      const Corners* t = &corners_[node.first_triangle];
      for (const Corners* end = t + node.n_triangles; t != end; ++t) {
        sum += solid_angle<Vec3f>(t->a - point, t->b - point, t->c - point);
      }
      id = node.next;
    } else {
      ++id;
    }
  }
  return sum * static_cast<float>(0.25 / M_PI);
}

double exact_winding_number(const TriangleMesh& mesh, const Vec3f& point) {
  double sum = 0;
  const Vec3d p = point.cast<double>();
  for (const Vec3i& t : mesh.triangles) {
    sum += solid_angle<Vec3d>(mesh.vertices[t[0]].cast<double>() - p, mesh.vertices[t[1]].cast<double>() - p,
                              mesh.vertices[t[2]].cast<double>() - p);
  }
  return sum * (0.25 / M_PI);
}

}  // namespace coppice
