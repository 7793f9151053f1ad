// Triangles that face another way than their neighbours: which are turned over, and which are left.
#include <cmath>
#include <random>

#include "apps/geometry/mesh_orientation.h"
#include "apps/geometry/shapes.h"
#include "apps/geometry/shapes_mesh.h"
#include "tests/apps/geometry_test_files.h"

namespace coppice {
namespace {

// Turns over so many of 100 triangles, at random; returns how many these are.
int64_t turn_over(TriangleMesh& mesh, int percent) {
  std::mt19937 random(7);
  int64_t turned = 0;
  for (Vec3i& t : mesh.triangles) {
    if (static_cast<int>(random() % 100) >= percent) continue;
    std::swap(t[1], t[2]);
    ++turned;
  }
  return turned;
}

TEST(MeshOrientation, TurnsOverWhatFacesAnotherWay) {
  const TriangleMesh whole = sphere_mesh({0, 0, 0}, 1, 20, 30);
  TriangleMesh mesh = whole;
  EXPECT_EQ(orient_alike(mesh), 0);
  const int64_t turned = turn_over(mesh, 30);
  ASSERT_GT(turned, 100);
  EXPECT_EQ(orient_alike(mesh), turned);
  EXPECT_EQ(open_edge_count(mesh), 0);
  EXPECT_DOUBLE_EQ(signed_volume(mesh), signed_volume(whole));
}

// A cavity faces inward, and that is how it is one.
TEST(MeshOrientation, LeavesPartsThatDoNotHangTogether) {
  TriangleMesh mesh = sphere_mesh({0, 0, 0}, 1, 10, 12);
  TriangleMesh cavity = sphere_mesh({0, 0, 0}, 0.5f, 10, 12);
  flip_orientation(cavity);
  const auto n = static_cast<int32_t>(mesh.vertices.size());
  mesh.vertices.insert(mesh.vertices.end(), cavity.vertices.begin(), cavity.vertices.end());
  for (const Vec3i& t : cavity.triangles) mesh.triangles.push_back(t + Vec3i::Constant(n));
  const double volume = signed_volume(mesh);
  EXPECT_EQ(orient_alike(mesh), 0);
  const int64_t turned = turn_over(mesh, 20);
  EXPECT_EQ(orient_alike(mesh), turned);
  EXPECT_DOUBLE_EQ(signed_volume(mesh), volume);
}

TEST(MeshOrientation, FindsNeighboursInATriangleSoup) {
  const TriangleMesh box = box_mesh({0, 0, 0}, {1, 1, 1});
  TriangleMesh soup;
  for (const Vec3i& t : box.triangles) {
    const auto n = static_cast<int32_t>(soup.vertices.size());
    for (int corner = 0; corner < 3; ++corner) soup.vertices.push_back(box.vertices[t[corner]]);
    soup.triangles.emplace_back(n, n + 1, n + 2);
  }
  std::swap(soup.triangles[4][1], soup.triangles[4][2]);
  EXPECT_EQ(orient_alike(soup), 1);
  EXPECT_DOUBLE_EQ(signed_volume(soup), 1);
}

TEST(MeshOrientation, LeavesAStripWithOneSide) {
  TriangleMesh strip;  // of Moebius, with three quads
  for (int i = 0; i < 3; ++i) {
    const double angle = 2 * M_PI * i / 3, turn = M_PI * i / 3;
    const Vec3d out(std::cos(angle), std::sin(angle), 0);
    const Vec3d across = std::cos(turn) * Vec3d::UnitZ() + std::sin(turn) * out;
    strip.vertices.push_back((out + 0.2 * across).cast<float>());
    strip.vertices.push_back((out - 0.2 * across).cast<float>());
  }
  strip.triangles = {Vec3i(0, 1, 2), Vec3i(1, 3, 2), Vec3i(2, 3, 4),
                     Vec3i(3, 5, 4), Vec3i(4, 5, 1), Vec3i(5, 0, 1)};
  const std::vector<Vec3i> before = strip.triangles;
  EXPECT_EQ(orient_alike(strip), 0);
  EXPECT_EQ(strip.triangles, before);
}

// Seen to fail: nearly nothing was inside, and the mesh was called open.
TEST(MeshOrientation, AMeshOfMixedFacesEnclosesWhatItDid) {
  TriangleMesh mesh = sphere_mesh({0, 0, 0}, 1, 20, 30);
  const int64_t turned = turn_over(mesh, 30);
  const LogCapture log;
  const MeshShape shape(mesh, "scan.obj", OpenMesh::kRefuse);
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_EQ(log.lines[0].second, fmt::format("scan.obj: {} of the mesh's {} triangles faced another way than "
                                             "their neighbours, and are turned over",
                                             turned, mesh.triangles.size()));
  for (const float r : {0.0f, 0.5f, 0.9f}) EXPECT_TRUE(shape.contains({0, r, 0})) << r;
  EXPECT_NEAR(shape.volume(), 4.0 / 3 * M_PI, 0.1);
}

}  // namespace
}  // namespace coppice
