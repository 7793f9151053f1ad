// Inside tests of the emitter shapes, their bounds, and what makes them refuse.
#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "apps/geometry/philox.h"
#include "apps/geometry/shapes.h"
#include "apps/geometry/shapes_mesh.h"
#include "tests/apps/geometry_test_files.h"

namespace coppice {
namespace {

constexpr uint32_t kSeed = 7;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The share of random points of twice the bounds that `shape` contains, as a volume; checks that none is out
// of bounds.
double measured_volume(const Shape& shape, int n) {
  const Aabb3f bounds = shape.bounds();
  const Vec3f low = bounds.min - 0.5f * bounds.size(), size = 2 * bounds.size();
  int inside = 0;
  for (int i = 0; i < n; ++i) {
    const auto r = philox4x32({static_cast<uint32_t>(i), 0, 0, 0}, {kSeed, 0});
    const Vec3f p =
        low + size.cwiseProduct(Vec3f(uniform_float(r[0]), uniform_float(r[1]), uniform_float(r[2])));
    if (!shape.contains(p)) continue;
    ++inside;
    EXPECT_TRUE(bounds.contains(p)) << p.transpose();
  }
  return static_cast<double>(inside) / n * static_cast<double>(size.prod());
}

// Four standard deviations of measured_volume() for a shape of `volume`.
double noise(const Shape& shape, double volume, int n) {
  const double share = volume / (8 * static_cast<double>(shape.bounds().size().prod()));
  return 4 * std::sqrt(share * (1 - share) / n) * volume / share;
}

TEST(Shapes, ContainTheirVolumeWithinTheirBounds) {
  constexpr int kPoints = 40000;
  const SphereShape sphere({1, 2, 3}, 0.5f);
  const double sphere_volume = 4.0 / 3.0 * M_PI * 0.125;
  EXPECT_NEAR(measured_volume(sphere, kPoints), sphere_volume, noise(sphere, sphere_volume, kPoints))
      << "seed " << kSeed;
  const BoxShape box({0, 0, 0}, {1, 2, 3});
  EXPECT_NEAR(measured_volume(box, kPoints), 6.0, noise(box, 6.0, kPoints));
  const CylinderShape cylinder({1, 1, 1}, {2, 3, -1}, 0.7f);  // oblique, 3 long
  const double cylinder_volume = 3 * M_PI * 0.49;
  EXPECT_NEAR(measured_volume(cylinder, kPoints), cylinder_volume, noise(cylinder, cylinder_volume, kPoints));
}

TEST(Shapes, BoundsAreTight) {
  EXPECT_TRUE(SphereShape({1, 2, 3}, 0.5f).bounds().min.isApprox(Vec3f(0.5f, 1.5f, 2.5f)));
  const Aabb3f upright = CylinderShape({1, 1, 5}, {1, 1, 2}, 0.5f).bounds();
  EXPECT_TRUE(upright.min.isApprox(Vec3f(0.5f, 0.5f, 2))) << upright.min.transpose();
  EXPECT_TRUE(upright.max.isApprox(Vec3f(1.5f, 1.5f, 5))) << upright.max.transpose();
  const Aabb3f oblique = CylinderShape({0, 0, 0}, {1, 1, 0}, 1).bounds();
  EXPECT_NEAR(oblique.max[0], 1 + std::sqrt(0.5), 1e-6);
  EXPECT_NEAR(oblique.max[2], 1, 1e-6);
}

TEST(Shapes, CylinderHasFlatCaps) {
  const CylinderShape cylinder({0, 0, 0}, {0, 0, 2}, 1);
  EXPECT_TRUE(cylinder.contains({0.9f, 0, 1.99f}));
  EXPECT_FALSE(cylinder.contains({0, 0, 2.01f}));
  EXPECT_FALSE(cylinder.contains({0, 0, -0.01f}));
  EXPECT_FALSE(cylinder.contains({0.8f, 0.8f, 1}));
}

TEST(Shapes, TwoDimensionalOnesAreCutByThePlaneZ0) {
  const SphereShape disc({1, 1, 0}, 2);
  EXPECT_TRUE(disc.contains({2.9f, 1, 0}));
  EXPECT_FALSE(disc.contains({2.5f, 2.5f, 0}));
  const BoxShape rectangle({0, 0, -1}, {2, 1, 1});
  EXPECT_TRUE(rectangle.contains({1.9f, 0.9f, 0}));
  EXPECT_FALSE(rectangle.contains({1.9f, 1.1f, 0}));
}

TEST(Shapes, RefuseSizesWithoutSense) {
  const auto refuses = [](const std::string& part, const std::function<void()>& body) {
    expect_error(ErrorCode::kInvalidArgument, {part}, body);
  };
  refuses("a sphere's radius is 0", [] { SphereShape({0, 0, 0}, 0); });
  refuses("a sphere's radius is -1", [] { SphereShape({0, 0, 0}, -1); });
  refuses("a sphere's radius is nan", [] { SphereShape({0, 0, 0}, kNan); });
  refuses("a sphere's centre is not finite: (0, nan, 0)", [] { SphereShape({0, kNan, 0}, 1); });
  refuses("a box's min 1 is not below its max 1 on axis y", [] { BoxShape({0, 1, 0}, {1, 1, 1}); });
  refuses("a box's max is not finite", [] { BoxShape({0, 1, 0}, {1, INFINITY, 1}); });
  refuses("a cylinder's length is 0", [] { CylinderShape({1, 1, 1}, {1, 1, 1}, 1); });
  refuses("a cylinder's radius is inf", [] { CylinderShape({1, 1, 1}, {1, 1, 2}, INFINITY); });
  refuses("on axis x", [] { BoxShape({2, 0, -1}, {1, 1, 1}); });
}

TEST(MeshShape, ContainsWhatTheMeshEncloses) {
  constexpr int kPoints = 20000;
  const TriangleMesh knot = torus_knot_mesh({});
  const LogCapture log;
  const MeshShape shape(knot, "knot", OpenMesh::kRefuse);
  EXPECT_TRUE(log.lines.empty());
  const double volume = signed_volume(knot);
  EXPECT_NEAR(measured_volume(shape, kPoints), volume, noise(shape, volume, kPoints)) << "seed " << kSeed;
  EXPECT_EQ(shape.bounds().max, mesh_bounds(knot).max);
}

TEST(MeshShape, TellsHowManyEdgesAreOpenOrRefuses) {
  TriangleMesh mesh = sphere_mesh({0, 0, 0}, 1, 20, 30);
  mesh.triangles.erase(mesh.triangles.begin());
  const LogCapture log;
  const MeshShape shape(mesh, "scan.obj");
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_EQ(static_cast<int>(log.lines[0].first), static_cast<int>(LogLevel::kWarning));
  EXPECT_NE(log.lines[0].second.find("scan.obj: the mesh has 3 open edges"), std::string::npos)
      << log.lines[0].second;
  EXPECT_TRUE(shape.contains({0, 0, 0}));
  expect_error(ErrorCode::kInvalidArgument, {"scan.obj", "3 open edges", "strict = true"},
               [&] { MeshShape(mesh, "scan.obj", OpenMesh::kRefuse); });
}

TEST(MeshShape, TurnsAMeshOverThatIsInsideOut) {
  TriangleMesh mesh = box_mesh({0, 0, 0}, {1, 1, 1});
  flip_orientation(mesh);
  const LogCapture log;
  const MeshShape shape(mesh, "box.ply");
  EXPECT_TRUE(shape.contains({0.5f, 0.5f, 0.5f}));
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_NE(log.lines[0].second.find("inside out"), std::string::npos);
}

TEST(MeshShape, RefusesBrokenMeshes) {
  expect_error(ErrorCode::kInvalidArgument, {"empty", "no triangles"},
               [] { MeshShape(TriangleMesh{}, "empty"); });
}

}  // namespace
}  // namespace coppice
