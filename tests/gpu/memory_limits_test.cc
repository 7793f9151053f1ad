// gpu/cpu/memory_limits.h: the last mappings of the process are not for buffers, and an error says so.
// (Limits of addresses are a process' for good: many_trees_test.cc.)
//
// Breaks that were seen to fail here: mappings of others that are not counted, small buffers that have some.
#include "gpu/cpu/memory_limits.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <vector>

#include "core/error.h"
#include "gpu/device.h"

namespace coppice {
namespace {

constexpr uint64_t kMost = 2000;

class MemoryLimits : public testing::Test {
 protected:
  MemoryLimits() { set_most_mappings(kMost); }
  ~MemoryLimits() override { set_most_mappings(0); }

  // Buffers that may grow, each of two mappings, until there is an error.
  std::string fill() {
    try {
      for (;;) buffers.push_back(device->reserve(1 << 20, 100));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
      return error.what();
    }
  }

  IntrusivePtr<Device> device = Device::cpu(1);
  std::vector<IntrusivePtr<Buffer>> buffers;
};

TEST_F(MemoryLimits, TheLastMappingsAreLeftOver) {
#ifdef COPPICE_SANITIZED_MEMORY
  GTEST_SKIP() << "sanitizers have mappings of their own, which change meanwhile";
#endif
  const std::string error = fill();
  EXPECT_NE(error.find(fmt::format("mappings of at most {} (sysctl vm.max_map_count)", kMost)),
            std::string::npos)
      << error;
  EXPECT_NE(error.find(fmt::format("sysctl -w vm.max_map_count={},", 4 * kMost)), std::string::npos);
  EXPECT_EQ(error.find('\n'), std::string::npos);
  EXPECT_LE(2 * buffers.size(), kMost - kMost / 16);
  EXPECT_GT(2 * buffers.size(), kMost / 2) << "few others are in this process";
  EXPECT_NO_THROW(device->reserve(1000, 1000)) << "small ones take none";
}

TEST_F(MemoryLimits, MappingsThatAreGivenBackAreThereAgain) {
  fill();
  const size_t most = buffers.size();
  for (int round = 0; round < 3; ++round) {
    buffers.resize(most / 2);
    fill();
    EXPECT_NEAR(static_cast<double>(buffers.size()), static_cast<double>(most), 20);
  }
}

TEST_F(MemoryLimits, MappingsOfOthersCount) {
  fill();
  const size_t most = buffers.size();
  buffers.clear();
  constexpr size_t kPage = 4096, kOthers = 800;
  auto* const others = static_cast<std::byte*>(
      mmap(nullptr, kOthers * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  ASSERT_NE(others, MAP_FAILED);
  for (size_t page = 0; page < kOthers; page += 2) mprotect(others + page * kPage, kPage, PROT_READ);
  fill();
  EXPECT_LT(buffers.size(), most - kOthers / 2 + 50);
  munmap(others, kOthers * kPage);
}

}  // namespace
}  // namespace coppice
