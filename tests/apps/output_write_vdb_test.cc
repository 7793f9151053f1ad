// Volumes of a program's fields: which voxels they have, on every device, and what is refused.
#include <cmath>

#include "apps/output/write_vdb.h"
#include "render_volumes.kernels.h"
#include "tests/apps/geometry_test_files.h"
#include "tests/apps/output_file_size_limit.h"
#include "tests/sparse/test_devices.h"

namespace coppice::output {
namespace {

class WriteVdb : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    if (!VdbWriter().is_available()) GTEST_SKIP() << VdbWriter().why_not();
  }
  VdbSummary summary(const std::string& grid_name = "density") const {
    return VdbWriter().read_summary(path, grid_name);
  }

  TemporaryFolder folder;
  const std::string path = folder / "v.vdb";
};

struct Cells {
  std::vector<int> coords{-9, 0, 7, -8, 0, 7, 0, 0, 0, 3, 2, 1, 20, -12, 33};  // i32[5][3]
  std::vector<float> values{1, 2, 4, 8, 16};
};

TEST_P(WriteVdb, WritesTheActiveCellsThatAreNotZero) {
  Tree tree(device, {.origin = {-60, -60, -60}});
  // Leaves of 6 cells a side lie across blocks of 8.
  const Field<float> field = tree.root().pointer({20, 20, 20}).dense({6, 6, 6}).place<float>("field");
  const Cells cells;
  run(set_volume_cells_3, range(5), field, cells.coords, cells.values);
  wait_write_vdb(path, field, {.grid_name = "smoke", .voxel_size = 0.25f, .origin = Vec3f(1, 2, 3)});
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"v.vdb"});
  const VdbSummary s = summary("smoke");
  EXPECT_EQ(s.sum, 31);
  EXPECT_EQ(s.n_active, 5);
  EXPECT_EQ(s.min, Vec3i(-9, -12, 0));
  EXPECT_EQ(s.max, Vec3i(20, 2, 33));
  EXPECT_EQ(s.voxel_size, Vec3d(0.25, 0.25, 0.25));
  EXPECT_EQ(s.origin, Vec3d(1, 2, 3));
}

// Seen to fail where the cell's place within its block was counted with the first axis fastest.
TEST_P(WriteVdb, PutsEachCellIntoItsVoxel) {
  const Cells cells;
  for (size_t i = 0; i < cells.values.size(); ++i) {
    Tree tree(device, {.origin = {-64, -64, -64}});
    const Field<float> field = tree.root().pointer({32, 32, 32}).bitmasked({4, 4, 4}).place<float>("field");
    const std::vector<int> coords(cells.coords.begin() + 3 * i, cells.coords.begin() + 3 * i + 3);
    const std::vector<float> values{cells.values[i]};
    run(set_volume_cells_3, range(1), field, coords, values);
    wait_write_vdb(path, field);
    const VdbSummary s = summary();
    EXPECT_EQ(s.n_active, 1);
    EXPECT_EQ(s.min, Vec3i(coords[0], coords[1], coords[2]));
    EXPECT_EQ(s.max, s.min);
    EXPECT_EQ(s.sum, values[0]);
  }
}

TEST_P(WriteVdb, WritesNumbersOfOtherTypes) {
  Tree tree(device, {.origin = {-64, -64, -64}});
  const Node leaf = tree.root().pointer({16, 16, 16}).dense({8, 8, 8});
  const Field<Half> half = leaf.place<Half>("half");
  const Field<double> twice = leaf.place<double>("twice");
  const Field<int> whole = leaf.place<int>("whole");
  const Cells cells;
  run(set_volume_numbers, range(5), half, twice, whole, cells.coords, cells.values);
  wait_write_vdb(path, half);
  EXPECT_EQ(summary().sum, 15.5);
  wait_write_vdb(path, twice);
  EXPECT_EQ(summary().sum, 62);
  wait_write_vdb(path, whole);
  EXPECT_EQ(summary().sum, 31);
}

TEST_P(WriteVdb, WritesAnEmptyVolumeOfAFieldWithoutCells) {
  Tree tree(device);
  wait_write_vdb(path, tree.root().pointer({4, 4, 4}).dense({8, 8, 8}).place<float>("field"));
  EXPECT_EQ(summary().n_active, 0);
}

TEST_P(WriteVdb, RefusesWhatIsNoVolume) {
  Tree plane(device, {.name = "plane"}), line(device, {.name = "line"}), tree(device);
  const Field<float> flat = plane.root().dense({4, 4}).place<float>("flat"),
                     thin = line.root().dense({4}).place<float>("thin");
  const Node leaf = tree.root().pointer({4, 4, 4}).dense({8, 8, 8});
  const Field<float> field = leaf.place<float>("field");
  const auto refuses = [&](const std::string& part, const Field<float>& of, const VdbOptions& options = {}) {
    expect_error(ErrorCode::kInvalidArgument, {"v.vdb: ", part}, [&] { wait_write_vdb(path, of, options); });
  };
  refuses("tree 'plane' has 2 dimensions, expected the 3 of a volume", flat);
  refuses("tree 'line' has 1 dimension, expected", thin);
  refuses("voxels of size 0, expected a positive number", field, {.voxel_size = 0});
  refuses("voxels of size nan", field, {.voxel_size = NAN});
  refuses("the origin (0, inf, 0), expected finite numbers", field, {.origin = Vec3f(0, INFINITY, 0)});
  refuses("the grid's name is empty", field, {.grid_name = ""});
  refuses("the grid's name", field, {.grid_name = "a\nb"});
  expect_error(ErrorCode::kInvalidArgument, {"the field to read is none"},
               [&] { wait_write_vdb(path, Field<float>{}); });
  expect_error(ErrorCode::kInvalidArgument, {"a node's topology has no values"},
               [&] { wait_write_vdb(path, leaf.topology()); });
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST_P(WriteVdb, LeavesNothingBehindForWhatIsNotFiniteOrWithoutFolderOrRoom) {
  Tree tree(device, {.origin = {-64, -64, -64}});
  const Field<float> field = tree.root().pointer({16, 16, 16}).dense({8, 8, 8}).place<float>("field");
  Cells cells;
  run(set_volume_cells_3, range(5), field, cells.coords, cells.values);
  expect_error(ErrorCode::kIo, {"none/v.vdb"}, [&] { wait_write_vdb(folder / "none/v.vdb", field); });
  const ActiveCells<float> read = wait_read_active(field);
  expect_error(ErrorCode::kIo, {"v.vdb"}, [&] {
    VdbWriter writer;
    const FileSizeLimit limit(100);
    detail::write_cells(writer, path, read.coords, read.values, {});
  });
  cells.values[3] = NAN;
  run(set_volume_cells_3, range(5), field, cells.coords, cells.values);
  expect_error(ErrorCode::kNumeric, {"v.vdb: ", "cell (3, 2, 1) has the value nan, expected finite numbers"},
               [&] { wait_write_vdb(path, field); });
  EXPECT_TRUE(names_in(folder.path()).empty());
}

INSTANTIATE_TEST_SUITE_P(Apps, WriteVdb, testing::ValuesIn(test_devices()), device_test_name);

TEST(WriteVdbWithoutPlugin, IsAnErrorOfOneLine) {
  const IntrusivePtr<Device> device = cpu_or_test_device(1);
  const TemporaryFolder folder;
  VdbWriter writer({folder / "libcoppice_vdb.so"});
  Tree tree(device);
  const Field<float> field = tree.root().dense({4, 4, 4}).place<float>("field");
  const LogCapture log;
  try {
    detail::wait_write_vdb(writer, folder / "v.vdb", field, {});
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    EXPECT_EQ(std::string(error.what()), (folder / "v.vdb") +
                                             ": cannot write the volume: built without OpenVDB: no " +
                                             (folder / "libcoppice_vdb.so"));
  }
  EXPECT_TRUE(log.lines.empty());
  EXPECT_TRUE(names_in(folder.path()).empty());
}

}  // namespace
}  // namespace coppice::output
