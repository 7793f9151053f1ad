// Dynamic nodes: lists that grow where a kernel appends; what lists_conformance_test.cc does not have.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "core/error.h"
#include "lists.kernels.h"
#include "sparse/program.h"
#include "sparse/read_back.h"
#include "sparse/tree.h"
#include "tests/sparse/staging.h"
#include "tests/sparse/test_devices.h"

namespace coppice {
namespace {

class Lists : public testing::Test {
 protected:
  IntrusivePtr<Device> device = cpu_or_test_device(4);
  Program program{device};
  template <class Kernel, class... Arguments>
  void run(const Kernel& kernel, const Loop& loop, Arguments&&... arguments) {
    run_on(program, kernel, loop, std::forward<Arguments>(arguments)...);
  }
};

TEST_F(Lists, AppendsThatRunOutOfMemoryAreRepeatedFromWhereTheyBegan) {
  Tree tree(device);
  Node lists = tree.root().dense({64}).dynamic(1 << 20, 64);
  Field<int> x = lists.place<int>("x");
  std::vector<uint32_t> index(300000);
  run(append_items, range(1000), x, 64, index);
  run(append_items, range(300000), x, 64, index);  // needs growth several times
  uint64_t sum = 0;
  for (int at = 0; at < 64; ++at) {
    const std::vector<int> values = wait_read_list(x, at);
    EXPECT_EQ(values.size(), (1000 - at + 63) / 64 + (300000 - at + 63) / 64) << at;
    sum += std::accumulate(values.begin(), values.end(), uint64_t{0});
  }
  EXPECT_EQ(sum, 999ull * 1000 / 2 + 299999ull * 300000 / 2);
}

TEST_F(Lists, AFullListIsAnErrorThatNamesItAndKeepsWhatFits) {
  Tree tree(device);
  Node lists = tree.root().dense({4}).dynamic(100, 8);
  Field<int> x = lists.place<int>("x");
  std::vector<uint32_t> index(1000);
  try {
    run(append_items, range(1000), x, 4, index);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("'x' on tree.dense[4].dynamic[100]"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("100 elements are all it may have"), std::string::npos) << e.what();
  }
  device->default_stream().clear_error();
  for (int at = 0; at < 4; ++at) EXPECT_EQ(lists.wait_length({at, 0, 0}), 100u);
  EXPECT_EQ(std::count(index.begin(), index.end(), device::kNoIndex), 600);
}

TEST_F(Lists, AnAppendThatRunsOutKeepsWhatWasThereAndWhatFits) {
  Tree tree(device, {.max_bytes = 1 << 17});
  Node lists = tree.root().dense({4}).dynamic(1 << 20, 64);
  Field<int> x = lists.place<int>("x");
  std::vector<uint32_t> index(1000000);
  run(append_items, range(1000), x, 4, index);
  std::array<std::vector<int>, 4> before;
  for (int at = 0; at < 4; ++at) before[at] = wait_read_list(x, at);
  try {
    run(append_items, range(1000000), x, 4, index);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kOutOfMemory) << e.what();
  }
  device->default_stream().clear_error();
  size_t kept = 0;
  for (int at = 0; at < 4; ++at) {
    std::vector<int> now = wait_read_list(x, at);
    ASSERT_GE(now.size(), before[at].size());
    EXPECT_TRUE(std::equal(before[at].begin(), before[at].end(), now.begin())) << "what was there";
    now.erase(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(before[at].size()));
    kept += now.size();
    std::sort(now.begin(), now.end());
    EXPECT_EQ(std::unique(now.begin(), now.end()), now.end()) << "list " << at << " has an element twice";
  }
  // Elsewhere a run that makes room finds out that there is none, and the launch does not begin.
  if (device->commits_on_touch()) {
    EXPECT_GT(kept, 10000u);
  }
  run(clear_list_at, range(4), x, std::vector<int>{0, 1, 2, 3});
  run(append_items, range(1000), x, 4, index);
  EXPECT_EQ(wait_read_list(x, 2).size(), 250u);
}

TEST_F(Lists, ChunksOfClearedListsAreUsedAgainAndZero) {
  Tree tree(device);
  Node lists = tree.root().pointer({4}).dynamic(1000, 4);
  Field<int> x = lists.place<int>("x");
  std::vector<uint32_t> index(40);
  const std::vector<int> zero{0};
  for (int round = 0; round < 100; ++round) {
    run(append_items, range(40), x, 1, index);
    EXPECT_EQ(lists.wait_usage().active_cells, 10u);
    run(clear_list_at, range(1), x, zero);
    EXPECT_EQ(lists.wait_usage().active_cells, 0u);
    EXPECT_EQ(lists.wait_length({0, 0, 0}), 0u);
  }
  const std::vector<int> nine{9}, one{1};
  run(set_elements, range(1), x, 0, nine, one);
  EXPECT_EQ(wait_read_list(x, 0), (std::vector<int>{0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
  wait(tree.deactivate_all());
  EXPECT_EQ(lists.wait_usage().active_cells, 0u);
}

TEST_F(Lists, WhatIsCountedCanBeReadWhileOthersAppend) {
  Tree tree(device);
  Node lists = tree.root().dense({1}).dynamic(1 << 20, 2);
  Field<int> x = lists.place<int>("x");
  wait_room(*device, lists, 100000);
  uint32_t wrong = 0;
  run(append_and_read, range(100000), x, inout(wrong));
  EXPECT_EQ(wrong, 0u);
}

TEST(ListsDescription, MistakesAreRefusedInOneLine) {
  auto refusal = [](auto describe) -> std::string {
    Tree tree(cpu_or_test_device(1));
    try {
      describe(tree.root());
    } catch (const Error& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal([](Node root) { root.dense({4}).dynamic(100, 12); }),
            "node tree.dense[4].dynamic[100]: chunks of 12 elements; a power of two expected");
  EXPECT_EQ(
      refusal([](Node root) {
        root.dense({Axis::i, Axis::j}, {2, 4}).dynamic(Axis::j, 8);
      }),
      "node tree.dense[2,4].dynamic[8]: axis j is divided above it; a dynamic node needs an axis of its own");
  EXPECT_EQ(refusal([](Node root) {
              root.dense({Axis::i, Axis::j}, {2, 4}).dynamic(Axis::k, 8);
            }),
            "accepted");
  EXPECT_EQ(refusal([](Node root) { root.dynamic(8).dense({4}); }),
            "node tree.dynamic[8].dense[4]: a dynamic node has fields but no nodes below it");
  EXPECT_EQ(refusal([](Node root) { root.dynamic(0); }),
            "node tree.dynamic[0]: a list's largest length is between 1 and 2^30");
}

}  // namespace
}  // namespace coppice
