// `coppice run --deterministic`: the same files, byte for byte, with any number of threads.
#include <gtest/gtest.h>

#include "tests/apps/run_outputs.h"
#include "tests/apps/run_program.h"

namespace coppice {
namespace {

class RunDeterministic : public testing::Test {
 protected:
  // Snow that falls onto the floor beside water: several blocks for every thread, and contact.
  void SetUp() override {
    write_text(
        scene_,
        "dim = 3\nseed = 7\n[grid]\nresolution = 32\n[time]\nframes = 4\nfps = 30\n"
        "[output]\nwidth = 160\nheight = 120\nmp4 = false\n"
        "[[emitter]]\nshape = \"sphere\"\ncenter = [0.35, 0.3, 0.5]\nradius = 0.17\nmaterial = \"snow\"\n"
        "velocity = [0.5, -2.0, 0.0]\n"
        "[[emitter]]\nshape = \"box\"\ncenter = [0.75, 0.25, 0.5]\nhalf_size = [0.15, 0.15, 0.3]\nmaterial = "
        "\"water\"\n");
  }
  std::string run(const std::string& threads) {
    const std::string out = folder_ / ("out" + threads);
    const ProgramResult result =
        run_program({"run", scene_, "-o", out, "--deterministic", "--threads", threads, "--overwrite"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_TRUE(result.err_has(threads + " threads") && result.err_has("deterministic")) << result.err;
    return out;
  }

  TemporaryFolder folder_;
  std::string scene_ = folder_ / "splash.toml";
};

// Everything but what a file says of itself: OpenVDB puts a random number into each (36
// characters from the 21st byte).
std::string content_of(const std::string& path) {
  std::string text = read_text(path);
  if (path.ends_with(".vdb") && text.size() > 57) text.replace(21, 36, 36, '-');
  return text;
}

TEST_F(RunDeterministic, WritesTheSameBytesWithAnyNumberOfThreads) {
  const std::string first = run("1");
  EXPECT_EQ(count_names(first, ".ply"), 5);
  for (const char* threads : {"2", "4", "4"}) {
    const std::string other = run(threads);
    EXPECT_EQ(names_in(other), names_in(first));
    for (const std::string& name : names_in(first)) {
      if (name.ends_with(".csv")) continue;  // has milliseconds
      EXPECT_TRUE(content_of(first + "/" + name) == content_of(other + "/" + name))
          << name << " with " << threads << " threads";
    }
    std::vector<std::vector<double>> rows = read_rows(first), others = read_rows(other);
    for (auto* table : {&rows, &others}) {
      for (auto& row : *table) row.pop_back();
    }
    EXPECT_EQ(rows, others);
  }
}

TEST_F(RunDeterministic, IsForTheCpu) {
  for (const std::string device : {"cuda", "simt"}) {
    expect_refused(run_program({"run", scene_, "--device", device, "--deterministic", "-o", folder_ / "out"}),
                   2, {"--deterministic", "--device cpu"});
  }
  expect_refused(run_program({"run", scene_, "--device", "cuda", "--threads", "2", "-o", folder_ / "out"}), 2,
                 {"--threads", "--device cpu"});
  expect_refused(run_program({"run", scene_, "--threads", "0", "-o", folder_ / "out"}), 2, {"--threads"});
}

}  // namespace
}  // namespace coppice
