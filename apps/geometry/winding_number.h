// The generalized winding number of a triangle mesh: 1 inside, 0 outside, in between near holes.
//
// Hierarchical evaluation after Barill, Dickson, Schmidt, Levin and Jacobson, "Fast Winding Numbers for Soups
// and Clouds", ACM Transactions on Graphics 37 (4), 2018: a far cluster of triangles is replaced by the
// Taylor series of its dipole field about the area-weighted centroid, here up to the linear term; near
// triangles give their exact solid angle (van Oosterom and Strackee, 1983). O(log n_triangles) per point
// instead of O(n_triangles).
#pragma once

#include <cstdint>
#include <vector>

#include "apps/geometry/mesh.h"

namespace coppice {

class WindingNumber {
 public:
  // A cluster is far when the point is more than kDefaultBeta radii away from its centroid; the paper's
  // choice.
  static constexpr float kDefaultBeta = 2.0f;

  // Copies what it needs of `mesh`, whose indices are valid and vertices finite (see check_mesh). `beta`
  // >= 1.
  explicit WindingNumber(const TriangleMesh& mesh, float beta = kDefaultBeta);

  // Any thread may call at any time. With the default beta the error is below 0.08 (close to a curved
  // surface) and 0.005 in the median; both fall with about the cube of beta, while the cost doubles from beta
  // 2 to 3.
  float operator()(const Vec3f& point) const;

 private:
  // One cluster, in preorder: the left child follows its parent, `next` is what follows the whole subtree.
  struct Node {
    Vec3f centroid;         // area weighted
    float far_distance_sq;  // (beta * radius)^2
    Vec3f area_normal;      // sum of area * normal
    float moment[6];  // symmetric part of sum of area * (triangle's centroid - centroid) (x) normal: xx yy zz
                      // xy xz yz
    int32_t next;
    int32_t first_triangle;  // leaves: into corners_; inner nodes: -1
    int32_t n_triangles;
  };
  static_assert(sizeof(Node) == 64, "a node is one cache line");
  struct Corners {
    Vec3f a, b, c;
  };

  int32_t build(std::vector<Corners>& triangles, int32_t begin, int32_t end, float beta);
  Node make_node(int32_t begin, int32_t end, float beta) const;

  std::vector<Node> nodes_;
  std::vector<Corners> corners_;  // triangles in the order of the leaves
};

// The same by brute force in double, O(n_triangles): what the tests compare with.
double exact_winding_number(const TriangleMesh& mesh, const Vec3f& point);

}  // namespace coppice
