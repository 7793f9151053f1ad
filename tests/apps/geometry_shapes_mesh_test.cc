// The generated meshes are closed and have the volume of their formula; the committed knot is the generated
// one.
#include <cmath>
#include <set>

#include "apps/geometry/shapes_mesh.h"
#include "apps/geometry/winding_number.h"
#include "tests/apps/geometry_test_files.h"

namespace coppice {
namespace {

// True when each directed edge occurs once and its reverse too, and no vertex is unused: a closed
// 2-manifold's edges.
bool is_edge_manifold(const TriangleMesh& mesh) {
  std::set<std::pair<int, int>> edges;
  std::set<int> used;
  for (const Vec3i& t : mesh.triangles) {
    for (int corner = 0; corner < 3; ++corner) {
      used.insert(t[corner]);
      if (!edges.insert({t[corner], t[(corner + 1) % 3]}).second) return false;
    }
  }
  for (const auto& [a, b] : edges) {
    if (!edges.contains({b, a})) return false;
  }
  return used.size() == mesh.vertices.size();
}

int64_t euler_characteristic(const TriangleMesh& mesh) {
  const int64_t n_faces = static_cast<int64_t>(mesh.triangles.size());
  return static_cast<int64_t>(mesh.vertices.size()) - n_faces * 3 / 2 + n_faces;
}

TEST(ShapesMesh, BoxIsClosedAndHasItsVolume) {
  const TriangleMesh mesh = box_mesh({-1, 0, 2}, {1, 3, 6});
  EXPECT_TRUE(is_edge_manifold(mesh));
  EXPECT_EQ(euler_characteristic(mesh), 2);
  EXPECT_NEAR(signed_volume(mesh), 24.0, 1e-9);
}

TEST(ShapesMesh, SphereIsClosedAndConvergesToItsVolume) {
  const double exact = 4.0 / 3.0 * M_PI * 8.0;
  double error[2];
  for (int i = 0; i < 2; ++i) {
    const TriangleMesh mesh = sphere_mesh({1, 2, 3}, 2, 16 << i, 32 << i);
    EXPECT_TRUE(is_edge_manifold(mesh));
    EXPECT_EQ(euler_characteristic(mesh), 2);
    error[i] = exact - signed_volume(mesh);
  }
  EXPECT_GT(error[1], 0);
  EXPECT_NEAR(error[0] / error[1], 4.0, 0.1);  // facets: second order
  EXPECT_TRUE(is_edge_manifold(sphere_mesh({0, 0, 0}, 1, 2, 3)));
}

TEST(ShapesMesh, KnotIsOneClosedTubeThatDoesNotMeetItself) {
  const TriangleMesh mesh = torus_knot_mesh({});
  EXPECT_TRUE(is_edge_manifold(mesh));
  EXPECT_EQ(euler_characteristic(mesh), 0);  // a torus
  EXPECT_EQ(open_edge_count(mesh), 0);
  EXPECT_GT(signed_volume(mesh), 0);
  // Where a tube crosses itself the winding number is 2. Around it, it is never negative.
  const WindingNumber winding(mesh);
  const Aabb3f box = mesh_bounds(mesh);
  double inside = 0;
  constexpr int kSteps = 40;
  for (int i = 0; i < kSteps * kSteps * kSteps; ++i) {
    const Vec3f fraction =
        (Vec3f(i % kSteps, i / kSteps % kSteps, i / kSteps / kSteps) + Vec3f::Constant(0.5f)) / kSteps;
    const float w = winding(box.min + box.size().cwiseProduct(fraction));
    EXPECT_LT(w, 1.1f);
    EXPECT_GT(w, -0.1f);
    inside += w > 0.5f;
  }
  // And so the volume inside is the signed one: counted on 40^3 points, good to 3 %.
  const double counted = inside / (kSteps * kSteps * kSteps) * static_cast<double>(box.size().prod());
  EXPECT_NEAR(counted, signed_volume(mesh), 0.03 * signed_volume(mesh));
}

TEST(ShapesMesh, CommittedKnotIsTheGeneratedOne) {
  const std::string path = std::string(COPPICE_SOURCE_DIR) + "/assets/meshes/knot.obj";
  const std::string committed = read_text(path), generated = obj_text(torus_knot_mesh({}), kKnotComment);
  EXPECT_LE(committed.size(), 200u << 10);
  if (committed == generated) return;
  write_text("knot.obj", generated);
  ADD_FAILURE() << path << " differs from what torus_knot_mesh makes; that is now in ./knot.obj";
}

TEST(ShapesMesh, WrittenObjReadsBackTheSame) {
  const TemporaryFolder folder;
  const TriangleMesh mesh = torus_knot_mesh({});
  write_obj(folder / "k.obj", mesh, "a comment");
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"k.obj"});
  const TriangleMesh back = load_mesh(folder / "k.obj");
  ASSERT_EQ(back.triangles, mesh.triangles);
  ASSERT_EQ(back.vertices.size(), mesh.vertices.size());
  for (size_t v = 0; v < mesh.vertices.size(); ++v) {
    EXPECT_LE((back.vertices[v] - mesh.vertices[v]).cwiseAbs().maxCoeff(), 0.51e-5f)
        << v;  // half the last decimal
  }
  EXPECT_EQ(obj_text(mesh).find("-0.00000"), std::string::npos);
  expect_error(ErrorCode::kIo, {"none/k.obj"}, [&] { write_obj(folder / "none/k.obj", mesh); });
}

}  // namespace
}  // namespace coppice
