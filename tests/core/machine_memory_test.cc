// Limits of memory, from files as the kernel writes them.
#include "core/machine_memory.h"

#include <gtest/gtest.h>

#include <fstream>

namespace coppice {
namespace {

namespace fs = std::filesystem;

class ControlGroups : public testing::Test {
 protected:
  fs::path folder = fs::path(testing::TempDir()) /
                    ("groups_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
  void SetUp() override { fs::remove_all(folder); }
  void TearDown() override { fs::remove_all(folder); }
  void write(const fs::path& file, const std::string& text) {
    fs::create_directories((folder / file).parent_path());
    std::ofstream(folder / file) << text << "\n";
  }
  uint64_t limit() const { return control_group_bytes(folder / "proc", folder / "mount"); }
};

TEST_F(ControlGroups, TheLeastOnTheWayUpCounts) {
  write("proc", "0::/a/b");
  write("mount/a/b/memory.max", "max");
  write("mount/a/memory.max", "5000");
  EXPECT_EQ(limit(), 5000u);
  write("mount/a/b/memory.max", "3000");
  EXPECT_EQ(limit(), 3000u);
  write("mount/memory.max", "2000");  // a container's own root
  EXPECT_EQ(limit(), 2000u);
}

TEST_F(ControlGroups, OfTheFirstVersionAreReadToo) {
  write("proc", "5:cpu,cpuacct:/x\n4:memory:/y\n0::/");
  write("mount/memory/x/memory.limit_in_bytes", "1");
  write("mount/memory/y/memory.limit_in_bytes", "7000");
  EXPECT_EQ(limit(), 7000u);
}

TEST_F(ControlGroups, WithoutFilesOrWithNonsenseThereIsNoLimit) {
  EXPECT_EQ(limit(), ~uint64_t{0});
  write("proc", "what\n0::/a");
  write("mount/a/memory.max", "12 or so");
  EXPECT_EQ(limit(), 12u);
  write("mount/a/memory.max", "many");
  EXPECT_EQ(limit(), ~uint64_t{0});
}

TEST(MachineMemory, IsSomeAndNoMoreThanTheLimit) {
  EXPECT_GT(machine_memory_bytes(), uint64_t{1} << 26);
  EXPECT_LE(machine_memory_bytes(), control_group_bytes("/proc/self/cgroup", "/sys/fs/cgroup"));
}

}  // namespace
}  // namespace coppice
