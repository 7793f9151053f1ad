// Eigen's fixed-size types as kernel arguments and field values.
#include <gtest/gtest.h>

#include "core/math.h"
#include "eigen.kernels.h"
#include "sparse/program.h"
#include "sparse/read_back.h"
#include "tests/sparse/staging.h"
#include "tests/sparse/test_devices.h"

namespace coppice {
namespace {

TEST(EigenValues, AreArgumentsOfKernels) {
  Program program(cpu_or_test_device());
  Mat3f rotation;
  rotation << 0, -1, 0, 1, 0, 0, 0, 0, 1;
  std::vector<Vec3f> points{{1, 2, 3}, {-4, 5, 6}};
  run_on(program, turn_points, range(2), rotation, Vec4f(1, 2, 3, 10), points);
  EXPECT_EQ(points[0], Vec3f(8, 21, 33));
  EXPECT_EQ(points[1], Vec3f(5, 16, 36));
}

TEST(EigenValues, AreValuesOfFields) {
  IntrusivePtr<Device> device = cpu_or_test_device();
  Program program(device);
  Tree tree(device);
  Node leaf = tree.root().pointer({4}).dense({4});
  Field<Vec3f> field = leaf.place<Vec3f>("v");
  finish(program.launch(grow_vectors, range(2), field, Vec3f(0, 3, 4)));
  finish(program.launch(normalize_cells, over(leaf), field));
  std::vector<Vec3f> got(3, Vec3f::Ones());
  run_on(program, read_vectors, range(3), field, got);
  EXPECT_NEAR((got[0] - Vec3f(0, 0.6f, 0.8f)).norm(), 0, 1e-6);
  EXPECT_NEAR((got[1] - Vec3f(0, 0.6f, 0.8f)).norm(), 0, 1e-6);
  EXPECT_EQ(got[2], Vec3f::Zero());
}

TEST(EigenValues, MayBeMembersOfStructsThatAreArgumentsOrValues) {
  IntrusivePtr<Device> device = cpu_or_test_device();
  Program program(device);
  const std::vector<Ray> rays{{{1, 2, 3}, 4, {1, 0, 0}}, {{5, 6, 7}, 8, {0, 2, 0}}};
  std::vector<Ray> out(2);
  run_on(program, step_rays, range(2), rays, Ray{{10, 20, 30}, 40, {0, 0, 1}}, out);
  EXPECT_EQ(out[0].origin, Vec3f(11, 22, 33));
  EXPECT_EQ(out[1].number, 48);
  EXPECT_EQ(out[1].direction, Vec3d(2, 0, 0));

  Tree tree(device);
  Field<Ray> field = tree.root().pointer({4}).dense({4}).place<Ray>("ray");
  program.launch(grow_rays, range(2), field, rays[1]);
  EXPECT_EQ(wait_read(field, {1}).direction, Vec3d(0, 2, 0));
  EXPECT_EQ(wait_read(field, {1}).number, 8);
  EXPECT_EQ(wait_read(field, {2}).number, 0);
}

// A type that owns memory cannot be copied as bytes.
struct Owner {
  std::vector<int> numbers;
};
static_assert(device::is_value<Ray> && device::is_value<Vec3f> && !device::is_value<Owner> &&
              !device::is_value<std::string>);

// Eigen's headers have variables that code would initialise; unoptimised code still has that code. A kernel
// that knows nothing of them runs.
TEST(EigenValues, AreArgumentsOfKernelsThatADebuggerStepsThrough) {
  for (const CodegenOptions options : {CodegenOptions{.step = true}, {.step = true, .checks = true}}) {
    IntrusivePtr<Device> device = cpu_or_test_device();
    Program program(device, options);
    Tree tree(device);
    Field<Vec3f> field = tree.root().pointer({4}).dense({4}).place<Vec3f>("v");
    finish(program.launch(grow_vectors, range(2), field, Vec3f(0, 3, 4)));
    std::vector<Vec3f> got(3, Vec3f::Ones());
    run_on(program, read_vectors, range(3), field, got);
    EXPECT_EQ(got[1], Vec3f(0, 6, 8));
    EXPECT_EQ(got[2], Vec3f::Zero());
    std::vector<Vec3f> ends{{1, 2, 3}, {4, 5, 6}};
    run_on(program, keep_ends, range(2), ends);
    EXPECT_EQ(ends[0], Vec3f(3, 2, 1));
    EXPECT_EQ(ends[1], Vec3f(6, 5, 4));
  }
}

}  // namespace
}  // namespace coppice
