// VTK images of a program's fields: where each cell is in them, on every device, and what is refused.
#include <cmath>

#include "apps/output/write_vti.h"
#include "render_volumes.kernels.h"
#include "tests/apps/geometry_test_files.h"
#include "tests/apps/output_file_size_limit.h"
#include "tests/apps/vtk_text.h"
#include "tests/sparse/test_devices.h"

namespace coppice::output {
namespace {

class WriteVti : public DeviceTest {
 protected:
  TemporaryFolder folder;
  const std::string path = folder / "v.vti";
};

TEST_P(WriteVti, PutsEachCellIntoTheBoxAroundAll) {
  Tree tree(device, {.origin = {-64, -64, -64}});
  const Field<float> field = tree.root().pointer({32, 32, 32}).bitmasked({4, 4, 4}).place<float>("field");
  const std::vector<int> coords{-9, 0, 7, 3, 2, 1, 0, -1, 5};
  run(set_volume_cells_3, range(3), field, coords, std::vector<float>{1, 2, 4});
  wait_write_vti(path, field,
                 {.array_name = "smoke", .spacing = 0.25f, .origin = Vec3f(1, 2, 3), .time_s = 2});
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"v.vti"});
  const std::string file = read_text(path);
  EXPECT_NE(
      file.find("<ImageData WholeExtent=\"-9 3 -1 2 1 7\" Origin=\"1 2 3\" Spacing=\"0.25 0.25 0.25\">"),
      std::string::npos);
  EXPECT_NE(file.find("<Piece Extent=\"-9 3 -1 2 1 7\">"), std::string::npos);
  const std::vector<float> values = vtk_values<float>(file, "smoke");
  ASSERT_EQ(values.size(), 13u * 4 * 7);
  for (int z = 1; z <= 7; ++z) {
    for (int y = -1; y <= 2; ++y) {
      for (int x = -9; x <= 3; ++x) {
        float expected = 0;
        if (Vec3i(x, y, z) == Vec3i(-9, 0, 7)) expected = 1;
        if (Vec3i(x, y, z) == Vec3i(3, 2, 1)) expected = 2;
        if (Vec3i(x, y, z) == Vec3i(0, -1, 5)) expected = 4;
        // x is the fastest, z the slowest.
        const int n = ((z - 1) * 4 + y + 1) * 13 + x + 9;
        EXPECT_EQ(values[static_cast<size_t>(n)], expected) << x << " " << y << " " << z;
      }
    }
  }
}

TEST_P(WriteVti, WritesPlanesAndFieldsWithoutCells) {
  Tree plane(device), tree(device);
  const Field<float> flat = plane.root().bitmasked({8, 8}).place<float>("flat");
  run(set_volume_cells_2, range(2), flat, std::vector<int>{1, 2, 0, 2, 4, 0}, std::vector<float>{3, 5});
  wait_write_vti(path, flat);
  const std::string file = read_text(path);
  EXPECT_NE(file.find("WholeExtent=\"1 2 2 4 0 0\""), std::string::npos);
  EXPECT_EQ(vtk_values<float>(file, "density"), (std::vector<float>{3, 0, 0, 0, 0, 5}));
  wait_write_vti(path, tree.root().pointer({4, 4, 4}).dense({8, 8, 8}).place<float>("field"));
  EXPECT_NE(read_text(path).find("WholeExtent=\"0 -1 0 -1 0 -1\""), std::string::npos);
  EXPECT_TRUE(vtk_values<float>(read_text(path), "density").empty());
}

TEST_P(WriteVti, RefusesABoxThatIsTooLargeBeforeItIsMade) {
  Tree tree(device);
  const Field<float> field =
      tree.root().pointer({512, 512, 512}).pointer({16, 16, 16}).bitmasked({4, 4, 4}).place<float>("far");
  run(set_volume_cells_3, range(2), field, std::vector<int>{0, 0, 0, 32000, 32000, 32000},
      std::vector<float>{1, 2});
  expect_error(
      ErrorCode::kInvalidArgument,
      {"v.vti: the box around the active cells has 32001 x 32001 x 32001 points, 119.2 TiB of values, "
       "expected at most 4.0 GiB; an OpenVDB file has the active ones alone"},
      [&] { wait_write_vti(path, field); });
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST_P(WriteVti, TakesAnotherLimit) {
  Tree tree(device);
  const Field<float> field = tree.root().dense({4, 4, 4}).place<float>("field");
  wait_write_vti(path, field, {.most_bytes = 256});
  EXPECT_EQ(vtk_values<float>(read_text(path), "density").size(), 64u);
  expect_error(ErrorCode::kInvalidArgument, {"4 x 4 x 4 points, 256 B of values, expected at most 255 B"},
               [&] { wait_write_vti(path, field, {.most_bytes = 255}); });
}

TEST_P(WriteVti, RefusesWhatIsNoImage) {
  Tree line(device, {.name = "line"}), tree(device, {.origin = {-64, -64, -64}});
  const Field<float> thin = line.root().dense({4}).place<float>("thin"),
                     field = tree.root().pointer({16, 16, 16}).dense({8, 8, 8}).place<float>("field");
  const auto refuses = [&](const std::string& part, const Field<float>& of, const VtiOptions& options = {}) {
    expect_error(ErrorCode::kInvalidArgument, {"v.vti: ", part}, [&] { wait_write_vti(path, of, options); });
  };
  refuses("tree 'line' has 1 dimension, expected 2 or 3", thin);
  refuses("voxels of size nan", field, {.spacing = NAN});
  refuses("the origin (0, inf, 0)", field, {.origin = Vec3f(0, INFINITY, 0)});
  refuses("the grid's name", field, {.array_name = "a\nb"});
  run(set_volume_cells_3, range(1), field, std::vector<int>{1, 2, 3}, std::vector<float>{NAN});
  expect_error(ErrorCode::kNumeric, {"v.vti: ", "cell (1, 2, 3) has the value nan"},
               [&] { wait_write_vti(path, field); });
  EXPECT_TRUE(names_in(folder.path()).empty());
}

INSTANTIATE_TEST_SUITE_P(Apps, WriteVti, testing::ValuesIn(test_devices()), device_test_name);

TEST(GridVti, LeavesNothingBehindOnAFullDisk) {
  const TemporaryFolder folder;
  const VtiGrid grid{{Vec3i(0, 0, 0), Vec3i(9, 9, 9)}};
  const GridArray array{"density", 1, {}, [](const PointBox&, std::span<float> values) { values[0] = 1; }};
  expect_error(ErrorCode::kIo, {"v.vti"}, [&] {
    const FileSizeLimit limit(1000);
    write_grid_vti(folder / "v.vti", grid, std::span(&array, 1));
  });
  EXPECT_TRUE(names_in(folder.path()).empty());
}

}  // namespace
}  // namespace coppice::output
