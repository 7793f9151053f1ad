// Bitmasked nodes: odd sizes, many bits, and changes between loops.
#include "tests/sparse/conformance_fixture.h"

namespace coppice {
namespace {

TEST_P(Conformance, C31_BitmaskedNodesOfOddSizesIterateWrittenCells) {
  Tree tree(device);
  Node leaf = tree.root().bitmasked({3, 6}).bitmasked({8, 8});
  Field<int> x = leaf.place<int>("x");
  write2(x, {0, 0, 23, 47, 7, 9, 8, 40});
  EXPECT_EQ(count(count2, leaf), 4u);
}

TEST_P(Conformance, C32_ABitmaskedParentActivatesADenseGroup) {
  Tree tree(device);
  Node leaf = tree.root().bitmasked({10}).dense({6});
  Field<int> x = leaf.place<int>("x");
  write1(x, {13, 59});
  EXPECT_EQ(count(count1, leaf), 12u);
}

TEST_P(Conformance, C33_NestedBitmaskedNodesCountCellsOneByOne) {
  Tree tree(device);
  Node parent = tree.root().bitmasked({10}), leaf = parent.bitmasked({6});
  Field<int> x = leaf.place<int>("x");
  write1(x, {13, 14, 59});
  EXPECT_EQ(count(count1, leaf), 3u);
  EXPECT_EQ(count(count1, parent), 2u);
}

TEST_P(Conformance, C34_TwoMillionBitsEveryThirtySecondSet) {
  const int n = scaled(65536);
  Tree tree(device);
  Node leaf = tree.root().bitmasked({n / 64}).bitmasked({2048});
  Field<int> x = leaf.place<int>("x");
  run(write_every1, range(n), x, 32, 1);
  EXPECT_EQ(count(count1, leaf), static_cast<uint64_t>(n));
}

TEST_P(Conformance, C35_APrimeNumberOfContainers) {
  const int n = scaled(80173) | 1;  // 80173 or 257
  Tree tree(device);
  Node leaf = tree.root().bitmasked({n}).bitmasked({3});
  Field<int> x = leaf.place<int>("x");
  run(write_every1, range(n), x, 3, 1);
  EXPECT_EQ(leaf.wait_num_active_blocks(), static_cast<uint64_t>(n));
  EXPECT_EQ(count(count1, leaf), static_cast<uint64_t>(n));
}

TEST_P(Conformance, C36_FullyActiveNodesOfTenByTen) {
  Tree tree(device);
  Node leaf = tree.root().bitmasked({10, 10}).bitmasked({10, 10});
  Field<int> x = leaf.place<int>("x");
  write2(x, square(100));
  std::vector<uint32_t> visits(10000);
  run(mark_visits2, over(leaf), visits, 100);
  EXPECT_EQ(visits, std::vector<uint32_t>(10000, 1));
}

TEST_P(Conformance, C37_DeactivatingOneBitClearsIt) {
  Tree tree(device);
  Node leaf = tree.root().pointer({4}).bitmasked({100});
  Field<int> x = leaf.place<int>("x");
  write1(x, {63, 64, 65}, 2);
  deactivate1(leaf, {64});
  EXPECT_TRUE(leaf.wait_is_active({63, 0, 0}));
  EXPECT_FALSE(leaf.wait_is_active({64, 0, 0}));
  EXPECT_TRUE(leaf.wait_is_active({65, 0, 0}));
  EXPECT_EQ(read1(x, {63, 64, 65}), (std::vector<int>{2, 0, 2}));
}

TEST_P(Conformance, C38_ChangesBetweenLoopsAreSeen) {
  Tree tree(device);
  Node leaf = tree.root().bitmasked({8}).bitmasked({8});
  Field<int> x = leaf.place<int>("x");
  const IntrusivePtr<Buffer> counts = wait_device_copy(*device, std::vector<uint64_t>(20));
  for (int i = 0; i < 20; ++i) {
    run(write_every1, range(i + 1), x, 3, 1);
    program().launch(count1, over(leaf), counts->as<uint64_t>() + i);
  }
  wait(device->default_stream().barrier());
  std::vector<uint64_t> counted(20);
  device->wait_copy(counted.data(), counts->data(), counts->size_bytes());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(counted[i], static_cast<uint64_t>(i + 1));
}

TEST_P(Conformance, C39_ChildrenBehindOtherFieldsAreListed) {
  Tree tree(device);
  Node block = tree.root().pointer({8});
  Field<double> own = block.place<double>("own");
  Node first = block.dense({3}), second = block.bitmasked({5});
  Field<int> a = first.place<int>("a"), b = second.place<int>("b");
  write1(b, {7, 39}, 3), write1(a, {23}, 4);
  EXPECT_EQ(count(count1, second), 2u);
  EXPECT_EQ(count(count1, first), 6u);
  EXPECT_EQ(sum(second, b), 6u);
}

}  // namespace
}  // namespace coppice
