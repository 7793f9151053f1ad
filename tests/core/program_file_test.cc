// The running program knows its file, however it was started: the test starts itself anew.
#include "core/program_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tests/core/watch_command.h"

namespace coppice {
namespace {

namespace fs = std::filesystem;

class ProgramFile : public testing::Test {
 protected:
  // A copy of this program, which says what it believes to be.
  static Watched copy_says(const fs::path& place, const std::string& loader = "") {
    fs::create_directories(place.parent_path());
    fs::copy_file(program_file(), place, fs::copy_options::overwrite_existing);
    return watch(
        fmt::format("{} '{}' --gtest_also_run_disabled_tests --gtest_filter=ProgramFile.DISABLED_Says",
                    loader, place.string()));
  }
  static std::string answer(const fs::path& file, const fs::path& folder) {
    return fmt::format("file <{}> folder <{}>", file.string(), folder.string());
  }

  fs::path root = fs::canonical(testing::TempDir()) / fmt::format("program file {}", ::getpid());
  void TearDown() override { fs::remove_all(root); }
};

TEST_F(ProgramFile, DISABLED_Says) { fmt::print("{}\n", answer(program_file(), program_folder())); }

TEST_F(ProgramFile, IsTheRunningProgram) {
  EXPECT_EQ(program_file(), fs::read_symlink("/proc/self/exe"));
  EXPECT_EQ(program_folder(), program_file().parent_path());
}

TEST_F(ProgramFile, MayHaveSpacesInItsPath) {
  const fs::path place = root / "a  b" / "the program";
  const Watched said = copy_says(place);
  EXPECT_TRUE(said.has(answer(place, place.parent_path()))) << said.output;
}

TEST_F(ProgramFile, IsNotTheLoaderThatStartedIt) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer starts /proc/self/exe anew, which is the loader here";
#endif
  const fs::path place = root / "program";
  const Watched said = copy_says(place, "/lib64/ld-linux-x86-64.so.2");
  EXPECT_TRUE(said.has(answer(place, root))) << said.output;
}

TEST_F(ProgramFile, IsStartedFromBinInThePortableBundle) {
  const fs::path place = root / "libexec" / "program";
  Watched said = copy_says(place);
  EXPECT_TRUE(said.has(answer(place, root / "libexec"))) << said.output;
  std::ofstream(root / "libexec" / "launcher") << "";
  said = copy_says(place);
  EXPECT_TRUE(said.has(answer(place, root / "bin"))) << said.output;
}

}  // namespace
}  // namespace coppice
