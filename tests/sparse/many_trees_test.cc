// Many small trees share the process' mappings and addresses, and a program which uses them up ends by
// itself, with an error that says what to do, and with trees that it can go on with
// (many_trees_program.cc).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "core/program_file.h"
#include "tests/core/watch_command.h"
#include "tests/sparse/kernel_store_util.h"
#include "tests/sparse/resident_memory.h"

namespace coppice {
namespace {

class ManyTrees : public KernelStoreFolder {
 protected:
  Watched run(const std::string& words) const {
    return watch(fmt::format("COPPICE_LOG=warning COPPICE_CACHE_DIR={} timeout 60 {}/many_trees_program {}",
                             folder.string(), program_folder().string(), words));
  }
  // So many trees until the error, all of which can be used afterwards.
  void expect_end(const std::string& words, const std::string& limit) const {
    const Watched ended = run(words);
    EXPECT_EQ(ended.exit_code, 0) << ended.output;
    EXPECT_TRUE(ended.has("out of memory: ")) << ended.output;
    EXPECT_TRUE(ended.has(limit)) << ended.output;
    EXPECT_TRUE(ended.has(" trees\n")) << ended.output;
  }
};

TEST_F(ManyTrees, TakeFewMappingsAndAddressesUntilTheyGrow) {
  if (kFreedMemoryStays) GTEST_SKIP() << "sanitizers have heaps of their own";
  const Watched ended = run("cost 100");
  ASSERT_EQ(ended.exit_code, 0) << ended.output;
  double mappings = 0, kib = 0;
  std::istringstream(ended.output) >> mappings >> kib;
  EXPECT_LE(mappings, 2) << ended.output;
  EXPECT_GT(kib, 0) << ended.output;
  EXPECT_LE(kib, 1024) << ended.output;
}

TEST_F(ManyTrees, FitInFewAddresses) {
  if (kFreedMemoryStays) GTEST_SKIP() << "sanitizers take addresses without end";
  const Watched ended = run("fit 200 600");
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
}

TEST_F(ManyTrees, EndWithAnErrorThatNamesTheLimitOfAddresses) {
  if (kFreedMemoryStays) GTEST_SKIP() << "sanitizers take addresses without end";
  for (int round = 0; round < 5; ++round) expect_end("addresses 90", "(ulimit -v)");
}

// Seen to fail: it named TreeOptions::max_bytes, which was a hundred times more.
TEST_F(ManyTrees, OneThatIsFullNamesTheLimitOfAddresses) {
  if (kFreedMemoryStays) GTEST_SKIP() << "sanitizers take addresses without end";
  const Watched ended = run("overfill 200");
  EXPECT_EQ(ended.exit_code, 0) << ended.output;
  EXPECT_TRUE(ended.has("tree.pointer[1048576] is full: its ")) << ended.output;
  EXPECT_TRUE(ended.has("are all it may have; the process had no addresses for more (ulimit -v)"))
      << ended.output;
}

TEST_F(ManyTrees, EndWithAnErrorThatNamesTheLimitOfMappings) {
  for (int round = 0; round < 5; ++round)
    expect_end("mappings 1000", "of at most 1000 (sysctl vm.max_map_count)");
}

}  // namespace
}  // namespace coppice
