// When points that move enter a mesh: against formulas, through edges and corners, and by the winding number.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "apps/geometry/mesh_sweep.h"
#include "apps/geometry/shapes_mesh.h"
#include "apps/geometry/winding_number.h"

namespace coppice {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

TEST(MeshSweep, EntersABoxWhenItsPlanesAreCrossed) {
  const TriangleMesh box = box_mesh({1, 1, 1}, {2, 3, 4});
  const MeshSweep along_x(box, {0.5, 0, 0});
  EXPECT_NEAR(along_x.entry_s({0, 2, 2}), 2, 1e-12);
  EXPECT_EQ(along_x.entry_s({1.5, 2, 2}), 0);
  EXPECT_EQ(along_x.entry_s({2.5, 2, 2}), kNever);
  EXPECT_EQ(along_x.entry_s({0, 0.5, 2}), kNever);
  EXPECT_NEAR(along_x.covered_area(), 6, 1e-12);
  const MeshSweep oblique(box, {1, 1, 0});
  EXPECT_NEAR(oblique.entry_s({0, 1, 2}), 1, 1e-12);
  EXPECT_NEAR(oblique.entry_s({-1, 1, 2}), 2, 1e-12);  // through the edge behind which y is 3
  // As seen along (1, 1, 0): (1 + 2) / sqrt(2) wide.
  EXPECT_NEAR(oblique.covered_area(), 9 / std::sqrt(2.0), 0.05);
}

// All paths of a lattice whose points lie on edges, diagonals and corners cross a triangle once.
TEST(MeshSweep, LosesNothingAtEdgesAndCorners) {
  const TriangleMesh box = box_mesh({0, 0, 0}, {4, 4, 4});
  const MeshSweep sweep(box, {0, 0, -1});
  for (int x = 1; x < 8; ++x) {
    for (int y = 1; y < 8; ++y) {
      EXPECT_NEAR(sweep.entry_s({0.5 * x, 0.5 * y, 6}), 2, 1e-12) << x << " " << y;
      EXPECT_EQ(sweep.entry_s({0.5 * x, 0.5 * y, 2}), 0) << x << " " << y;
      EXPECT_EQ(sweep.entry_s({0.5 * x, 0.5 * y, -1}), kNever) << x << " " << y;
    }
  }
}

// Against steps along the path, each with the exact winding number, in a knot that passes in front of itself.
TEST(MeshSweep, AgreesWithTheWindingNumberOnAKnot) {
  TriangleMesh knot = torus_knot_mesh({.n_segments = 60, .n_sides = 8});
  for (const bool inside_out : {false, true}) {
    if (inside_out) flip_orientation(knot);
    const Vec3d velocity(0.3, -0.5, 0.8);
    const MeshSweep sweep(knot, velocity);
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> place(-2, 2);
    int entered = 0, inside = 0;
    for (int i = 0; i < 150; ++i) {
      const Vec3d q(place(random), place(random), 0.5 * place(random));
      const auto is_in = [&](double s) {
        return std::fabs(exact_winding_number(knot, (q + s * velocity).cast<float>())) > 0.5;
      };
      const double s = sweep.entry_s(q);
      EXPECT_EQ(s == 0, is_in(0)) << i;
      constexpr double kStep_s = 0.02;
      double first = kNever;
      for (double at = 0; at < 5 && !std::isfinite(first); at += kStep_s)
        if (is_in(at)) first = at;
      // The steps may pass over a corner of the tube, which the sweep does not.
      if (std::isfinite(first)) {
        EXPECT_LE(s, first) << i;
        EXPECT_TRUE(s == 0 || is_in(s + 1e-4) || s < first - kStep_s) << i;
      }
      inside += s == 0 ? 1 : 0, entered += s > 0 && std::isfinite(s) ? 1 : 0;
    }
    EXPECT_GT(inside, 5);
    EXPECT_GT(entered, 20);
  }
}

}  // namespace
}  // namespace coppice
