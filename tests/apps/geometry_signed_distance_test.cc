// Signed distances of meshes on grids, compared with what formulas say.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "apps/geometry/shapes_mesh.h"
#include "apps/geometry/signed_distance.h"

namespace coppice {
namespace {

float box_distance(const Vec3f& p, const Vec3f& half) {
  const Vec3f beyond = p.cwiseAbs() - half;
  return beyond.cwiseMax(0.0f).norm() + std::min(beyond.maxCoeff(), 0.0f);
}

TEST(SignedDistance, OfABoxIsExactEverywhere) {
  const Vec3f half(0.3f, 0.2f, 0.1f);
  const TriangleMesh mesh = box_mesh(-half, half);
  const MeshShape shape(mesh, "box");
  const DistanceGrid grid = signed_distance(mesh, shape, {.spacing_m = 0.03f, .margin_m = 0.1f});
  size_t i = 0;
  int inside = 0;
  for (int x = 0; x < grid.nodes.x(); ++x)
    for (int y = 0; y < grid.nodes.y(); ++y)
      for (int z = 0; z < grid.nodes.z(); ++z, ++i) {
        const Vec3f p = grid.low + grid.spacing_m * Vec3i(x, y, z).cast<float>();
        ASSERT_NEAR(grid.values[i], box_distance(p, half), 1e-5f) << p.transpose();
        inside += grid.values[i] < 0 ? 1 : 0;
      }
  EXPECT_NEAR(inside * std::pow(0.03, 3), 0.6 * 0.4 * 0.2, 0.15 * 0.6 * 0.4 * 0.2);
  EXPECT_NEAR(distance_at(grid, {0.31f, 0.0f, 0.0f}), 0.01f, 1e-3f);
  EXPECT_GT(distance_at(grid, {5, 5, 5}), 0);
}

TEST(SignedDistance, OfASphereIsThatOfItsTriangles) {
  const TriangleMesh mesh = sphere_mesh({0.1f, 0, 0}, 0.4f, 40, 80);
  const MeshShape shape(mesh, "sphere");
  const DistanceGrid grid = signed_distance(mesh, shape, {.spacing_m = 0.05f, .margin_m = 0.1f});
  size_t i = 0;
  // A chord of a 40th of a half turn leaves out r (1 - cos(pi / 80)). Far from the surface sweeps may offer a
  // node a triangle that is nearly the nearest.
  for (int x = 0; x < grid.nodes.x(); ++x)
    for (int y = 0; y < grid.nodes.y(); ++y)
      for (int z = 0; z < grid.nodes.z(); ++z, ++i) {
        const Vec3f p = grid.low + grid.spacing_m * Vec3i(x, y, z).cast<float>();
        const float exact = (p - Vec3f(0.1f, 0, 0)).norm() - 0.4f;
        ASSERT_NEAR(grid.values[i], exact, 1e-3f + 0.05f * std::abs(exact)) << p.transpose();
      }
}

TEST(SignedDistance, TakesWiderNodesWhereThereWouldBeTooMany) {
  const TriangleMesh mesh = box_mesh(Vec3f::Constant(-1), Vec3f::Constant(1));
  const MeshShape shape(mesh, "box");
  const DistanceGrid grid =
      signed_distance(mesh, shape, {.spacing_m = 0.01f, .margin_m = 0.1f, .most_nodes = 8000});
  EXPECT_LE(grid.values.size(), 8000u);
  EXPECT_GT(grid.values.size(), 4000u);
  EXPECT_GE(grid.spacing_m * static_cast<float>(grid.nodes.x() - 1), 2.2f - 1e-5f);
}

// A hole is closed as the winding number closes it.
TEST(SignedDistance, OfAnOpenMeshHasAnInside) {
  TriangleMesh mesh = sphere_mesh(Vec3f::Zero(), 0.4f, 12, 24);
  mesh.triangles.pop_back();
  const MeshShape shape(mesh, "open sphere");
  ASSERT_GT(shape.open_edges(), 0);
  const DistanceGrid grid = signed_distance(mesh, shape, {.spacing_m = 0.05f, .margin_m = 0.1f});
  EXPECT_LT(distance_at(grid, Vec3f::Zero()), -0.3f);
  EXPECT_GT(distance_at(grid, {0.45f, 0, 0}), 0.03f);
}

TEST(SignedDistance, TriangleDistancesAreThoseOfManyPoints) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> place(-1, 1);
  const auto point = [&] { return Vec3f(place(random), place(random), place(random)); };
  for (int k = 0; k < 200; ++k) {
    const Vec3f a = point(), b = point(), c = point(), p = point();
    float least = 100;
    for (int i = 0; i <= 100; ++i)
      for (int j = 0; i + j <= 100; ++j) {
        const Vec3f on = a + (b - a) * static_cast<float>(i) / 100 + (c - a) * static_cast<float>(j) / 100;
        least = std::min(least, (on - p).norm());
      }
    const float d = distance_to_triangle(p, a, b, c);
    EXPECT_LE(d, least + 1e-5f);
    EXPECT_GE(d, least - 0.03f);
  }
}

}  // namespace
}  // namespace coppice
