// Who writes into a folder, and what a stop leaves there: with the real program.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>

#include "tests/apps/run_outputs.h"
#include "tests/apps/run_program.h"

namespace coppice {
namespace {

namespace fs = std::filesystem;

class RunFolder : public testing::Test {
 protected:
  void SetUp() override { write_text(scene_, tiny_scene()); }

  ProgramResult run_with(const std::vector<std::string>& more, const ProgramOptions& options = {}) {
    std::vector<std::string> words{"run", scene_, "-o", out_};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(words, options);
  }

  TemporaryFolder folder_;
  std::string scene_ = folder_ / "tiny.toml";
  std::string out_ = folder_ / "out";
};

// Seen to fail: the frames of both were mixed, and both were done with exit code 0.
TEST_F(RunFolder, IsOneRunsUntilThatHasEndedHoweverItEnds) {
  bool is_tried = false;
  ProgramOptions options;
  options.on_stderr = [&](pid_t child, const std::string& err) {
    if (is_tried || err.find("frame 1/") == std::string::npos) return;
    is_tried = true;
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"run", scene_, "-o", out_},
          {"run", scene_, "-o", out_, "--overwrite"},
          {"view", scene_, "-o", out_, "--overwrite", "--view", "file"}})
      expect_refused(run_program(words), 2, {out_ + ": another run is writing into this folder; "});
    const ProgramResult played =
        run_program({"view", scene_, "--play", out_, "--view", "null", "--frames", "0"});
    EXPECT_EQ(played.exit_code, 0) << played.err;
    EXPECT_TRUE(fs::exists(particles_ply_path(out_, 0)));
    ::kill(child, SIGKILL);
  };
  EXPECT_EQ(run_with({"--frames", "100000", "--set", "output.png=false"}, options).signal, SIGKILL);
  ASSERT_TRUE(is_tried);
  EXPECT_EQ(run_with({"--frames", "1", "--overwrite"}).exit_code, 0) << "the lock outlived its run";
}

// The driver has no memory for the picture, which is known when it is asked for. Seen to fail: the files were gone.
TEST_F(RunFolder, KeepsAnEarlierRunsFilesUntilTheFirstFrameIsThere) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need more addresses than a process may have here";
#endif
  const ProgramResult first = run_with({"--frames", "1"});
  ASSERT_EQ(first.exit_code, 0);
  if (first.err_has("no pictures")) GTEST_SKIP() << "no pictures are drawn here";
  const std::vector<std::string> before = names_in(out_);
  const ProgramOptions limited{.prefix = {"sh", "-c", "ulimit -v 2000000; exec \"$@\"", "sh"}};
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"run"}, {"view", "--view", "file"}}) {
    std::vector<std::string> words = command;
    words.insert(words.end(), {scene_, "-o", out_, "--overwrite", "--set", "output.width=8192", "--set",
                               "output.height=8192", "--frames", "1"});
    const ProgramResult result = run_program(words, limited);
    if (result.exit_code == 0) GTEST_SKIP() << "such pictures are drawn here";
    EXPECT_EQ(names_in(out_), before) << result.err;
  }
}

}  // namespace
}  // namespace coppice
