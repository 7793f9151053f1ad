// Kernels compute what C++ says: what is an item's own stays its own, and its accesses keep their order, in
// every loop.
#include <gtest/gtest.h>

#include <array>
#include <optional>

#include "core/math.h"
#include "meaning.kernels.h"
#include "sparse/read_back.h"
#include "tests/sparse/meaning.h"
#include "tests/sparse/test_devices.h"

namespace coppice {
namespace {

constexpr int kItems = 64;

class Meaning : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    for (int i = 0; i < kItems; ++i) {
      x.push_back(static_cast<float>(i + 1) / 4);
      axis.push_back(i * 7 % 3);
    }
  }

  static float expected(int which, float x, int axis) {
    switch (which) {
      case 1:
        return meaning::tally(x, axis);
      case 2:
        return meaning::point(x, axis);
      case 3:
        return meaning::middle(x, axis);
      default:
        return meaning::pick(x, axis);
    }
  }
  std::vector<float> expected(int which) const {
    std::vector<float> all;
    for (int i = 0; i < kItems; ++i) all.push_back(expected(which, x[i], axis[i]));
    return all;
  }

  std::vector<float> x;
  std::vector<int> axis;
};

// Calls visit(number, item kernel, cell kernel, entry kernel) for each computation.
template <class Visit>
void each_computation(Visit&& visit) {
  visit(0, own_item0, own_cell0, own_entry0), visit(1, own_item1, own_cell1, own_entry1);
  visit(2, own_item2, own_cell2, own_entry2), visit(3, own_item3, own_cell3, own_entry3);
  visit(4, own_item4, own_cell4, own_entry4), visit(5, own_item5, own_cell5, own_entry5);
}

TEST_P(Meaning, AnItemsVariablesAreItsOwn) {
  each_computation([&](int which, const auto& kernel, const auto&, const auto&) {
    std::vector<float> o(kItems);
    run(kernel, range(kItems), x, axis, o);
    EXPECT_EQ(o, expected(which)) << which;
  });
}

struct LeafCase {
  const char* name;
  bool masked;
  int extent;
  int step;  // one in so many cells is active
};
constexpr LeafCase kLeaves[] = {
    {"dense 8", false, 8, 1}, {"dense 64", false, 64, 1},       {"dense 13", false, 13, 1},
    {"masked 8", true, 8, 1}, {"masked 64, half", true, 64, 2}, {"masked 24, a third", true, 24, 3},
};

TEST_P(Meaning, ACellsVariablesAreItsOwn) {
  for (const LeafCase& c : kLeaves) {
    Tree tree(device);
    Node blocks = tree.root().pointer({64});
    Node leaf = c.masked ? blocks.bitmasked({c.extent}) : blocks.dense({c.extent});
    Field<float> value = leaf.place<float>("value"), out = leaf.place<float>("out");
    Field<int> at = leaf.place<int>("axis");
    run(set_own_cells, range(kItems), value, at, x, axis, c.step);
    each_computation([&](int which, const auto&, const auto& kernel, const auto&) {
      run(kernel, over(leaf), value, at, out);
      const std::vector<float> all = wait_read(out, {0}, {kItems * c.step}), want = expected(which);
      for (int i = 0; i < kItems; ++i)
        EXPECT_EQ(all[i * c.step], want[i]) << c.name << ", " << which << ", " << i;
    });
  }
}

TEST_P(Meaning, AnEntrysVariablesAreItsOwn) {
  Tree tree(device);
  Node lists = tree.root().pointer({4}).dynamic(1024, 64);
  Field<float> value = lists.place<float>("value"), out = lists.place<float>("out");
  Field<int> at = lists.place<int>("axis");
  run(append_own, range(1), value, at, x, axis);
  each_computation([&](int which, const auto&, const auto&, const auto& kernel) {
    run(kernel, over(lists), value, at, out);
    EXPECT_EQ(wait_read_list(out, {0}), expected(which)) << which;
  });
}

TEST_P(Meaning, AccessesOfAnItemKeepTheirOrder) {
  std::vector<meaning::Pair> pairs(kItems, meaning::Pair{-1, -2});
  std::vector<float> o(kItems);
  for (int& a : axis) a &= 1;
  const auto on_device = wait_device_copy(*device, pairs.data(), pairs.size());
  run(through_pairs, range(kItems), on_device->as<meaning::Pair>(), on_device->as<float>(), axis, x, o);
  for (int i = 0; i < kItems; ++i) EXPECT_EQ(o[i], axis[i] == 0 ? x[i] : -2) << i;
}

TEST_P(Meaning, WhatAnItemStoredItReadsBack) {
  std::vector<Vec3f> v(kItems, Vec3f(-1, -2, -3));
  std::vector<float> o = x;
  run(scale_and_pick, range(kItems), v, axis, o);
  for (int i = 0; i < kItems; ++i) {
    const Vec3f stored(2 * x[i], 3 * x[i], -3);
    EXPECT_EQ(o[i], stored[axis[i]]) << i;
    EXPECT_EQ(v[i], Vec3f(stored[0], stored[1], stored[axis[i]] + 1)) << i;
  }
}

TEST_P(Meaning, IndicesOf32BitsKeepTheOrder) {
  const std::vector<meaning::Pair> pairs(kItems, meaning::Pair{-1, -2});
  const auto on_device = wait_device_copy(*device, pairs.data(), pairs.size());
  auto* const first = on_device->as<meaning::Pair>();
  std::vector<float> o(kItems);
  run(through_pairs_by_int, range(kItems), first, first, o);
  EXPECT_EQ(o, std::vector<float>(kItems, 11));

  Tree tree(device);
  Node leaf = tree.root().dense({kItems});
  Field<float> out = leaf.place<float>("out");
  const auto again = wait_device_copy(*device, pairs.data(), pairs.size());
  run(through_pairs_by_cell, over(leaf), again->as<meaning::Pair>(), again->as<meaning::Pair>(), out);
  EXPECT_EQ(wait_read(out, {0}, {kItems}), std::vector<float>(kItems, 11));
}

TEST_P(Meaning, WhatACellComputesStepByStepInABufferIsInOrder) {
  Tree tree(device);
  Node leaf = tree.root().dense({8, 8});
  Field<float> out = leaf.place<float>("out");
  std::vector<float> buffer(4 * 64), want;
  for (size_t i = 0; i < buffer.size(); i += 4)
    buffer[i] = static_cast<float>(i), want.push_back(buffer[i] + 3);
  run(chain_by_cell, over(leaf), out, buffer);
  EXPECT_EQ(wait_read(out, {0, 0}, {8, 8}), want);
}

TEST_P(Meaning, VariablesReachedInRoundaboutWaysAreItsOwnToo) {
  const std::vector<float> want = expected(0);
  std::vector<float> o(kItems);
  for (const int flag : {1, 5}) {
    run(own_by_choice, range(kItems), x, axis, std::vector<int>{flag}, o);
    EXPECT_EQ(o, want) << flag;
  }
  run(own_aligned, range(kItems), x, axis, o);
  EXPECT_EQ(o, want);
  run(own_argument, range(kItems), x, axis, meaning::Scratch{}, o);
  EXPECT_EQ(o, want);
  run(own_mutable, range(kItems), x, axis, meaning::Scratch{}, o);
  EXPECT_EQ(o, want);
}

TEST_P(Meaning, ArgumentsNeedNoDefaultConstructor) {
  std::vector<float> o(3);
  run(add_measure, range(3), meaning::Measure(0.5f), o);
  EXPECT_EQ(o, (std::vector<float>{0.5f, 1.5f, 2.5f}));
}

// Handles of other roles and reaches would use tiles and private rows that are not theirs.
static_assert(!std::is_convertible_v<Write<float>, Read<float>> &&
              !std::is_convertible_v<Read<float>, Write<float>>);
static_assert(!std::is_convertible_v<Read<float, Star<2>>, Read<float, Star<1>>>);
static_assert(!std::is_convertible_v<Update<float>, Read<float, Star<1>>>);
static_assert(std::is_convertible_v<Field<float>, Read<float>> && std::is_copy_constructible_v<Read<float>>);

// One cell in eight is active; the kernels end, and touch nothing, for that one only.
class InactiveCells : public Meaning {
 protected:
  static constexpr int kStep = 8;
  void SetUp() override {
    Meaning::SetUp();
    if (!device) return;
    tree.emplace(device);
    leaf = tree->root().pointer({64}).bitmasked({32});
    n = leaf->place<int>("n"), o = leaf->place<int>("o");
    value = leaf->place<float>("value"), smooth = leaf->place<float>("smooth");
    std::vector<int> coords;
    for (int i = 0; i < kItems; ++i) coords.push_back(i * kStep);
    run(write_number_at, range(kItems), n, coords);
  }
  std::vector<int> results() {
    std::vector<int> all = wait_read(o, {0}, {kItems * kStep}), active;
    for (int i = 0; i < kItems * kStep; ++i) {
      if (i % kStep == 0)
        active.push_back(all[i]);
      else
        EXPECT_EQ(all[i], 0) << i;
    }
    return active;
  }
  template <class Result>
  void expect(Result&& result) {
    const std::vector<int> all = results();
    for (int i = 0; i < kItems; ++i) EXPECT_EQ(all[i], result(i + 1)) << i;
  }

  std::optional<Tree> tree;
  std::optional<Node> leaf;
  Field<int> n, o;
  Field<float> value, smooth;
};

TEST_P(InactiveCells, AreNotLoopedForEver) {
  run(double_up, over(*leaf), n, o);
  expect([](int n) {
    int rounds = 0;
    for (; n < 1000; n *= 2) ++rounds;
    return rounds;
  });
}

TEST_P(InactiveCells, DoNotTrap) {
  run(stop_where_zero, over(*leaf), n, o);
  expect([](int n) { return 100 / n; });
}

TEST_P(InactiveCells, DoNotIndexTables) {
  run(look_up, over(*leaf), n, o);
  expect([](int n) { return std::array{7, 9, 11}[(n - 1) * 1000000 % 3]; });
}

TEST_P(InactiveCells, DoNotLookFarBehindTables) {
  run(look_far, over(*leaf), n, o);
  expect([](int n) { return std::array{7, 9, 11}[n % 3]; });
}

TEST_P(InactiveCells, DoNotWriteThroughAddressesThatCameAsIntegers) {
  const std::vector<int> zeros(kItems * kStep);
  const auto counts = wait_device_copy(*device, zeros.data(), zeros.size());
  run(write_by_address, over(*leaf), o, reinterpret_cast<uint64_t>(counts->as<int>()));
  std::vector<int> counted(zeros.size());
  device->wait_copy(counted.data(), counts->data(), counted.size() * sizeof(int));
  for (int i = 0; i < kItems * kStep; ++i) EXPECT_EQ(counted[i], i % kStep == 0) << i;
  expect([](int) { return 1; });
}

TEST_P(InactiveCells, DoNotIndexByWhatIsUndefinedForThem) {
  run(count_zeros, over(*leaf), n, o);
  expect([](int n) { return 7 * (__builtin_ctz(n) + 1) + 5 * (32 - __builtin_clz(n)); });
}

TEST_P(InactiveCells, AreNotLoopedForSeconds) {
  run(count_down, over(*leaf), n, o);
  expect([](int n) {
    uint32_t s = 1;
    for (int k = 0; k < n - 1; ++k) s = (s * 1664525u) ^ (s >> 7);
    return static_cast<int>(s & 0xffff);
  });
}

TEST_P(InactiveCells, AreLeftAloneByWholeRows) {
  run(set_own_cells, range(kItems), value, n, x, axis, kStep);
  run(smooth_all, over(*leaf), value, n, smooth, Offsets{{0, 2, 0}});
  const std::vector<float> all = wait_read(smooth, {0}, {kItems * kStep});
  for (int i = 0; i < kItems * kStep; ++i) {
    const float want = i % kStep == 0 ? 2.0f * static_cast<float>(axis[i / kStep]) + 6 * x[i / kStep] : 0;
    EXPECT_EQ(all[i], want) << i;
  }
}

// A kernel that is proved harmless keeps its whole rows.
static_assert(!smooth_all.active_only && own_cell0.active_only);
static_assert(count_zeros.active_only && count_down.active_only);
static_assert(double_up.active_only && look_up.active_only);
static_assert(write_by_address.active_only && stop_where_zero.active_only);

INSTANTIATE_TEST_SUITE_P(Sparse, InactiveCells, testing::ValuesIn(test_devices_by_threads()),
                         device_test_name);
INSTANTIATE_TEST_SUITE_P(Sparse, Meaning, testing::ValuesIn(test_devices_by_threads()), device_test_name);

}  // namespace
}  // namespace coppice
