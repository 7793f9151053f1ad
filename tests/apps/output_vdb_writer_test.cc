// Density volumes through the OpenVDB plugin, and what happens without it.
#include <vector>

#include "apps/output/vdb_writer.h"
#include "tests/apps/geometry_test_files.h"
#include "tests/apps/output_file_size_limit.h"

namespace coppice {
namespace {

// Blocks of 4^3 voxels, negative coordinates among them, with a known content.
struct Density {
  Density() : blocks{{-4, 0, 8}, {0, 0, 0}, {16, -8, 4}}, values(blocks.size() * 64, 0.0f) {
    values[0] = 1.5f;                        // (-4, 0, 8)
    values[63] = 2.0f;                       // (-1, 3, 11)
    values[64 + 16 * 1 + 4 * 2 + 3] = 4.0f;  // (1, 2, 3): x slowest, z fastest
    values[128 + 16 * 3] = 8.0f;             // (19, -8, 4)
  }
  VdbVolume volume() const { return {"density", 0.25f, Vec3f(1, 2, 3), 2, blocks, values}; }
  std::vector<Vec3i> blocks;
  std::vector<float> values;
};

TEST(VdbWriter, WritesWhatOpenVdbReadsBack) {
  VdbWriter writer;
  if (!writer.is_available()) GTEST_SKIP() << writer.why_not();
  const TemporaryFolder folder;
  const std::string path = folder / "density_0000.vdb";
  EXPECT_TRUE(writer.write(path, Density().volume()));
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"density_0000.vdb"});
  const VdbSummary summary = writer.read_summary(path, "density");
  EXPECT_EQ(summary.sum, 15.5);
  EXPECT_EQ(summary.n_active, 4);
  EXPECT_EQ(summary.min, Vec3i(-4, -8, 3));
  EXPECT_EQ(summary.max, Vec3i(19, 3, 11));
  EXPECT_EQ(summary.voxel_size, Vec3d(0.25, 0.25, 0.25));
  EXPECT_EQ(summary.origin, Vec3d(1, 2, 3));
}

TEST(VdbWriter, PutsEachValueIntoItsVoxel) {
  VdbWriter writer;
  if (!writer.is_available()) GTEST_SKIP() << writer.why_not();
  const TemporaryFolder folder;
  for (int voxel = 0; voxel < 8; ++voxel) {
    const std::vector<Vec3i> blocks{{-2, 4, 6}};
    std::vector<float> values(8, 0.0f);
    values[voxel] = 3.0f;
    writer.write(folder / "one.vdb", {"one", 1.0f, Vec3f(0, 0, 0), 1, blocks, values});
    const VdbSummary summary = writer.read_summary(folder / "one.vdb", "one");
    EXPECT_EQ(summary.sum, 3.0);
    EXPECT_EQ(summary.min, Vec3i(-2 + (voxel >> 2), 4 + (voxel >> 1 & 1), 6 + (voxel & 1))) << voxel;
    EXPECT_EQ(summary.max, summary.min);
  }
}

// A voxel is active in all grids where the first one is not zero, whatever the others have there.
TEST(VdbWriter, WritesFurtherGridsWithTheSameVoxels) {
  VdbWriter writer;
  if (!writer.is_available()) GTEST_SKIP() << writer.why_not();
  const TemporaryFolder folder;
  const Density density;
  std::vector<float> pressure(density.values.size(), 7.0f), velocity(3 * density.values.size(), 9.0f);
  pressure[0] = 0, pressure[63] = -1, pressure[64 + 16 * 1 + 4 * 2 + 3] = 2, pressure[128 + 16 * 3] = 0.5f;
  for (size_t n = 0; n < density.values.size(); ++n)
    for (size_t axis = 0; axis < 3; ++axis)
      velocity[3 * n + axis] = static_cast<float>(axis + 1) * density.values[n];
  const std::vector<VdbGrid> more{{"velocity", 3, velocity}, {"pressure", 1, pressure}};
  VdbVolume volume = density.volume();
  volume.more = more;
  writer.write(folder / "d.vdb", volume);
  const VdbSummary first = writer.read_summary(folder / "d.vdb", "density"),
                   scalar = writer.read_summary(folder / "d.vdb", "pressure"),
                   vector = writer.read_summary(folder / "d.vdb", "velocity");
  EXPECT_EQ(first.sum, 15.5);
  EXPECT_EQ(scalar.sum, 1.5);
  EXPECT_EQ(vector.sums, Vec3d(15.5, 31, 46.5));
  EXPECT_EQ(vector.components, 3);
  EXPECT_EQ(scalar.components, 1);
  for (const VdbSummary& s : {first, scalar, vector}) {
    EXPECT_EQ(s.n_active, 4);
    EXPECT_EQ(s.min, Vec3i(-4, -8, 3));
    EXPECT_EQ(s.max, Vec3i(19, 3, 11));
    EXPECT_EQ(s.origin, Vec3d(1, 2, 3));
  }
}

TEST(VdbWriter, WritesAnEmptyVolume) {
  VdbWriter writer;
  if (!writer.is_available()) GTEST_SKIP() << writer.why_not();
  const TemporaryFolder folder;
  EXPECT_TRUE(writer.write(folder / "e.vdb", {"density", 1.0f, Vec3f(0, 0, 0), 2, {}, {}}));
  EXPECT_EQ(writer.read_summary(folder / "e.vdb", "density").n_active, 0);
}

TEST(VdbWriter, LeavesNothingBehindWhenTheDiskIsFull) {
  VdbWriter writer;
  if (!writer.is_available()) GTEST_SKIP() << writer.why_not();
  const TemporaryFolder folder;
  // Noise, so that it does not compress below any of the limits.
  std::vector<Vec3i> blocks;
  std::vector<float> values;
  for (int block = 0; block < 50; ++block) {
    blocks.push_back({8 * block, 0, 0});
    for (int i = 0; i < 512; ++i) values.push_back(static_cast<float>((block * 512 + i) * 7919 % 104729 + 1));
  }
  const VdbVolume volume{"density", 1.0f, Vec3f(0, 0, 0), 3, blocks, values};
  writer.write(folder / "whole.vdb", volume);
  const auto size = std::filesystem::file_size(folder / "whole.vdb");
  for (const rlim_t limit_bytes : {rlim_t{10}, rlim_t{5000}, rlim_t{size / 2}, rlim_t{size - 1}}) {
    expect_error(ErrorCode::kIo, {"d.vdb", "cannot write the volume"}, [&] {
      const FileSizeLimit limit(limit_bytes);
      writer.write(folder / "d.vdb", volume);
    });
    EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"whole.vdb"}) << limit_bytes;
  }
}

TEST(VdbWriter, SaysWhatItCannotReadOrWrite) {
  VdbWriter writer;
  if (!writer.is_available()) GTEST_SKIP() << writer.why_not();
  const TemporaryFolder folder;
  const Density density;
  expect_error(ErrorCode::kIo, {"none/d.vdb"},
               [&] { writer.write(folder / "none/d.vdb", density.volume()); });
  expect_error(ErrorCode::kIo, {"d.vdb", "cannot read the volume"},
               [&] { writer.read_summary(folder / "d.vdb", "x"); });
  write_text(folder / "d.vdb", "this is not a volume");
  expect_error(ErrorCode::kIo, {"d.vdb", "cannot read the volume"},
               [&] { writer.read_summary(folder / "d.vdb", "x"); });
  writer.write(folder / "d.vdb", density.volume());
  expect_error(ErrorCode::kIo, {"d.vdb"}, [&] { writer.read_summary(folder / "d.vdb", "velocity"); });
}

TEST(VdbWriter, WarnsOnceWithoutThePlugin) {
  const TemporaryFolder folder;
  VdbWriter writer({folder / "libcoppice_vdb.so"});
  EXPECT_FALSE(writer.is_available());
  const LogCapture log;
  const Density density;
  EXPECT_FALSE(writer.write(folder / "a.vdb", density.volume()));
  EXPECT_FALSE(writer.write(folder / "b.vdb", density.volume()));
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_NE(log.lines[0].second.find("built without OpenVDB"), std::string::npos) << log.lines[0].second;
  EXPECT_TRUE(names_in(folder.path()).empty());
  expect_error(ErrorCode::kUnavailable, {"a.vdb", "built without OpenVDB"},
               [&] { writer.read_summary(folder / "a.vdb", "density"); });
}

TEST(VdbWriter, SaysWhyAPluginDoesNotLoad) {
  const TemporaryFolder folder;
  write_text(folder / "libcoppice_vdb.so", "not a library");
  const VdbWriter writer({folder / "none.so", folder / "libcoppice_vdb.so"});
  EXPECT_FALSE(writer.is_available());
  EXPECT_NE(writer.why_not().find("does not load"), std::string::npos) << writer.why_not();
}

TEST(VdbWriter, RefusesALibraryThatIsNotItsPlugin) {
  // libm is a library of the system that any program of ours has loaded already.
  const std::string library = "/lib/x86_64-linux-gnu/libm.so.6";
  if (!std::filesystem::exists(library)) GTEST_SKIP() << "no " << library;
  const VdbWriter writer({library});
  EXPECT_FALSE(writer.is_available());
  EXPECT_NE(writer.why_not().find("belongs to another version"), std::string::npos) << writer.why_not();
}

TEST(VdbWriter, LooksBesideTheProgramFirst) {
  const std::vector<std::string> candidates = VdbWriter::plugin_candidates();
  ASSERT_EQ(candidates.size(), 4u);
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  EXPECT_EQ(candidates[0], (folder / "libcoppice_vdb.so").string());
  EXPECT_EQ(candidates[1], (folder.parent_path() / "lib/libcoppice_vdb.so").string());
}

}  // namespace
}  // namespace coppice
