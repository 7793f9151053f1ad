// VTK files and further grids of volumes, as the real program writes them: when, where, and when it cannot.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tests/apps/run_outputs.h"
#include "tests/apps/run_program.h"
#include "tests/apps/vtk_text.h"

namespace coppice {
namespace {

namespace fs = std::filesystem;

class RunVtk : public testing::Test {
 protected:
  void SetUp() override { write_text(scene_, tiny_scene()); }
  ProgramResult run_with(std::vector<std::string> more, const ProgramOptions& options = {}) const {
    std::vector<std::string> words{"run", scene_, "-o", out_, "--set", "output.png=false"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words, options);
  }

  TemporaryFolder folder_;
  std::string scene_ = folder_ / "tiny.toml";
  std::string out_ = folder_ / "out";
};

const std::vector<std::string> kVtk{"--set", "output.vtu=true", "--set", "output.vti=true"};

TEST_F(RunVtk, WritesThemOnlyWhereTheyAreAskedForAndReplacesThem) {
  ASSERT_EQ(run_with(kVtk).exit_code, 0);
  expect_whole_files(out_);
  EXPECT_EQ(count_names(out_, ".vtu"), 4);
  EXPECT_EQ(count_names(out_, ".vti"), 3);
  EXPECT_EQ(count_names(out_, ".pvd"), 2);
  const ProgramResult refused = run_with({});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(refused.err_has("the output folder holds ")) << refused.err;
  ASSERT_EQ(run_with({"--overwrite"}).exit_code, 0);
  EXPECT_EQ(count_names(out_, ".vtu") + count_names(out_, ".vti") + count_names(out_, ".pvd"), 0);
}

TEST_F(RunVtk, KeepsEarlierFilesWhenTheFirstFrameFails) {
  ASSERT_EQ(run_with(kVtk).exit_code, 0);
  const std::string series = read_text(particles_pvd_path(out_));
  const std::vector<std::string> before = names_in(out_);
  const ProgramOptions limited{.prefix = {"sh", "-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh"}};
#ifndef __SANITIZE_THREAD__  // which maps a file of its own when a program starts
  std::vector<std::string> more = kVtk;
  more.insert(more.end(), {"--overwrite", "--set", "output.particles=false"});
  const ProgramResult failed = run_with(more, limited);
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_TRUE(failed.err_has("particles_0000.vtu cannot be written: File too large")) << failed.err;
  expect_whole_files(out_);
  EXPECT_EQ(names_in(out_), before);
  EXPECT_EQ(read_text(particles_pvd_path(out_)), series);
#endif
}

TEST_F(RunVtk, DoesNotDependOnTheNumberOfThreads) {
  std::vector<std::string> texts;
  for (const char* threads : {"1", "4"}) {
    std::vector<std::string> more = kVtk;
    more.insert(more.end(), {"--threads", threads, "--overwrite", "--set", "output.fields.stress=true"});
    ASSERT_EQ(run_with(more).exit_code, 0);
    texts.push_back(read_text(grid_vti_path(out_, 3)) + read_text(particles_vtu_path(out_, 3)));
  }
  EXPECT_TRUE(texts[0] == texts[1]);
}

// A VDB file's grids against those of the VTI file of the same frame.
TEST_F(RunVtk, WritesTheSameGridsAsVolumes) {
  const VdbWriter volumes;
  if (!volumes.is_available()) GTEST_SKIP() << volumes.why_not();
  std::vector<std::string> more = kVtk;
  for (const char* field : {"pressure", "von_mises", "stress", "velocity"})
    more.insert(more.end(), {"--set", std::string("output.fields.") + field + "=true"});
  more.insert(more.end(), {"--set", "emitter[0].center=[0.5, 0.13, 0.5]", "--set",
                           "emitter[0].velocity=[0.0, -3.0, 0.0]"});
  ASSERT_EQ(run_with(more).exit_code, 0);
  const std::string vti = read_text(grid_vti_path(out_, 3));
  const std::vector<float> density = vtk_values<float>(vti, "density");
  const auto active = std::count_if(density.begin(), density.end(), [](float d) { return d != 0; });
  const auto compare = [&](const std::string& grid, const std::string& array, size_t components, size_t c) {
    const VdbSummary s = volumes.read_summary(density_vdb_path(out_, 3), grid);
    const std::vector<float> values = vtk_values<float>(vti, array);
    ASSERT_EQ(values.size(), components * density.size()) << array;
    double sum = 0, size = 0;
    for (size_t i = c; i < values.size(); i += components) sum += values[i], size += std::fabs(values[i]);
    EXPECT_GT(size, 0) << grid;
    EXPECT_NEAR(components == 3 ? s.sums[static_cast<int>(c)] : s.sum, sum, 1e-9 * size) << grid << " " << c;
    EXPECT_EQ(s.n_active, active) << grid;
  };
  compare("density", "density", 1, 0);
  compare("pressure", "pressure", 1, 0);
  compare("von_mises", "von_mises", 1, 0);
  for (size_t axis = 0; axis < 3; ++axis) compare("velocity", "velocity", 3, axis);
  const std::vector<std::string> names{"xx", "yy", "zz", "xy", "yz", "xz"};
  for (size_t c = 0; c < 6; ++c) compare("stress_" + names[c], "stress", 6, c);
}

TEST_F(RunVtk, LeavesVolumesAsTheyWereWhereNothingElseIsAskedFor) {
  const VdbWriter volumes;
  if (!volumes.is_available()) GTEST_SKIP() << volumes.why_not();
  ASSERT_EQ(run_with({}).exit_code, 0);
  EXPECT_GT(volumes.read_summary(density_vdb_path(out_, 3), "density").sum, 0);
  EXPECT_THROW(volumes.read_summary(density_vdb_path(out_, 3), "velocity"), Error);
}

}  // namespace
}  // namespace coppice
