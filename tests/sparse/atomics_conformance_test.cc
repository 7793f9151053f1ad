// Sums of vectors and structs, sums that activate, atomic operations, questions about cells by a Read, ranges
// of several dimensions, and vectors in what kernels print.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "atomics.kernels.h"
#include "sparse/function.h"
#include "sparse/read_back.h"
#include "tests/sparse/loop_devices.h"

namespace coppice {
namespace {

using testing::HasSubstr;

class Atomics : public LoopTest {
 protected:
  // Compares the extremes of each cell with the host's; what a NaN is given to stays.
  template <class T, class Kernel>
  void check_extremes(const Kernel& kernel, std::vector<T> special) {
    constexpr int kCells = 7, kItems = 4000;
    std::mt19937_64 random(11);
    std::vector<T> values(kItems);
    for (T& v : values) {
      const auto bits = static_cast<int64_t>(random());
      v = std::is_integral_v<T> ? static_cast<T>(bits) : static_cast<T>(bits % 2001 - 1000) / 16;
    }
    for (size_t i = 0; i < special.size(); ++i) values[i * 31] = special[i];
    Tree tree(device);
    const Node leaf = tree.root().dense({kCells});
    const Field<T> least = leaf.place<T>("least"), most = leaf.place<T>("most");
    run(kernel, range(kItems), least, most, inout(values), kCells);
    const std::vector<T> low = wait_read(least, {0}, {kCells}), high = wait_read(most, {0}, {kCells});
    for (int c = 0; c < kCells; ++c) {
      T expected_low{}, expected_high{};
      for (int i = c; i < kItems; i += kCells) {
        if (values[i] < expected_low) expected_low = values[i];
        if (values[i] > expected_high) expected_high = values[i];
      }
      EXPECT_EQ(low[c], expected_low) << c;
      EXPECT_EQ(high[c], expected_high) << c;
    }
  }
};

TEST_P(Atomics, SumsOfVectorsAddEachNumberOnce) {
  constexpr int kCells = 5, kRounds = 300;
  Tree tree(device);
  const Node leaf = tree.root().pointer({1}).dense({kCells});
  const Field<Vec3f> sum = leaf.place<Vec3f>("sum");
  leaf.activate({{0}});
  run(add_vectors, range(kCells * kRounds), sum, kCells);
  for (const Vec3f& v : wait_read(sum, {0}, {kCells}))
    EXPECT_EQ(v, Vec3f(kRounds, 2 * kRounds, kRounds * (kRounds - 1) / 2));
}

TEST_P(Atomics, SumsOfStructsAddEachMemberOnceInEitherLayout) {
  constexpr int kCells = 3, kRounds = 200;
  for (const CellLayout layout : {CellLayout::kStructOfArrays, CellLayout::kArrayOfStructs}) {
    Tree tree(device);
    const Node leaf = tree.root().dense({kCells});
    leaf.layout(layout);
    const Field<float> before = leaf.place<float>("before");
    const Field<NodeSums> sum = leaf.place<NodeSums>("sum");
    run(add_structs, range(kCells * kRounds), sum, kCells);
    const float total = kRounds * (kRounds - 1) / 2;
    for (const NodeSums& s : wait_read(sum, {0}, {kCells})) {
      EXPECT_EQ(s.mass, kRounds / 2);
      EXPECT_EQ(s.momentum, Vec2f(total, -total));
      EXPECT_EQ(s.moments, (std::array<double, 2>{total, 2.0 * total}));
      EXPECT_EQ(s.count, 3 * kRounds);
    }
    for (const float v : wait_read(before, {0}, {kCells})) EXPECT_EQ(v, 0);
  }
}

// On a CPU one operation adds to four floats, of which some may be a struct's gaps.
TEST_P(Atomics, SumsOfFloatsInGroupsOfFourAddEachOnceInEitherLayout) {
  constexpr int kCells = 3, kRounds = 400;
  constexpr float kTotal = kRounds * (kRounds - 1) / 2;
  for (const CellLayout layout : {CellLayout::kStructOfArrays, CellLayout::kArrayOfStructs}) {
    Tree tree(device);
    const Node leaf = tree.root().dense({kCells});
    leaf.layout(layout);
    const Field<float> before = leaf.place<float>("before");
    const Field<ThreeFloats> three = leaf.place<ThreeFloats>("three");
    const Field<float> between = leaf.place<float>("between");
    const Field<FiveFloats> five = leaf.place<FiveFloats>("five");
    const Field<FourFloats> four = leaf.place<FourFloats>("four");
    run(add_three_floats, range(kCells * kRounds), three, kCells);
    run(add_five_floats, range(kCells * kRounds), five, kCells);
    run(add_four_floats, range(kCells * kRounds), four, kCells);
    for (const ThreeFloats& s : wait_read(three, {0}, {kCells})) {
      EXPECT_EQ(s.momentum, Vec2f(kTotal, -kTotal));
      EXPECT_EQ(s.mass, kRounds / 2);
    }
    for (const FiveFloats& s : wait_read(five, {0}, {kCells})) {
      EXPECT_EQ(s.mass, kRounds / 2);
      EXPECT_EQ(s.momentum, Vec2f(kTotal, -kTotal));
      EXPECT_EQ(s.moments, (std::array<float, 2>{2 * kTotal, kRounds}));
    }
    for (const FourFloats& s : wait_read(four, {0}, {kCells}))
      EXPECT_EQ(s.all, Vec4f(kRounds, kTotal, -kTotal, 2 * kRounds));
    for (const float v : wait_read(before, {0}, {kCells})) EXPECT_EQ(v, 0);
    for (const float v : wait_read(between, {0}, {kCells})) EXPECT_EQ(v, 0);
  }
}

// Sums of all kinds of floats, fewer and more for an item than a thread of a CPU has noted at a time.
TEST_P(Atomics, SumsOfManyKindsAndNumbersForEachItemHappenOnce) {
  constexpr int kCells = 97;
  for (const int most : {0, 1, 9, 40, 200}) {
    const int items = most == 200 ? 300 : 3000;
    Tree tree(device);
    const Node leaf = tree.root().dense({kCells});
    const Field<float> one = leaf.place<float>("one");
    const Field<Vec3f> three = leaf.place<Vec3f>("three");
    const Field<Vec4f> four = leaf.place<Vec4f>("four");
    const Field<ThreeFloats> of_four = leaf.place<ThreeFloats>("of_four");
    run(add_many, range(items), ManySums{one, three, four, of_four}, kCells, most, 1.0f);
    std::vector<float> ones(kCells);
    std::vector<Vec3f> threes(kCells, Vec3f::Zero());
    std::vector<Vec4f> fours(kCells, Vec4f::Zero());
    std::vector<Vec3f> of_fours(kCells, Vec3f::Zero());
    for (int64_t i = 0; i < items; ++i) {
      for (int64_t k = 0; k < i * 7919 % (most + 1); ++k) {
        const auto cell = static_cast<size_t>((i * 31 + k * k) % kCells);
        const auto x = static_cast<float>(1 + (i + k) % 5);
        if (k % 4 != 3) ones[cell] += x;
        if (k % 3 != 2) threes[cell] += Vec3f(x, -x, 2 * x);
        fours[cell] += Vec4f(x, 1, 2, 3 * x);
        if (k % 5 != 1) of_fours[cell] += Vec3f(-x, x, 1);
      }
    }
    EXPECT_EQ(wait_read(one, {0}, {kCells}), ones) << most;
    EXPECT_EQ(wait_read(three, {0}, {kCells}), threes) << most;
    EXPECT_EQ(wait_read(four, {0}, {kCells}), fours) << most;
    const std::vector<ThreeFloats> structs = wait_read(of_four, {0}, {kCells});
    for (int c = 0; c < kCells; ++c)
      EXPECT_EQ(Vec3f(structs[c].momentum.x(), structs[c].momentum.y(), structs[c].mass), of_fours[c]) << c;
  }
}

// In tiles, in tables and by walks: what does not fit a tile goes to the tree at once.
TEST_P(Atomics, SumsOfStructsWithAReachEqualThoseOfTheHost) {
  for (const int side : {4, 8, 32}) {
    Tree tree(device);
    const Node blocks = tree.root().pointer({4, 4}), leaf = blocks.dense({side, side});
    const Field<NodeSums> sum = leaf.place<NodeSums>("sum");
    blocks.activate({{1, 1},
                     {1, 2},
                     {2, 1},
                     {2, 2},
                     {0, 1},
                     {0, 2},
                     {3, 1},
                     {3, 2},
                     {1, 0},
                     {2, 0},
                     {1, 3},
                     {2, 3},
                     {0, 0},
                     {0, 3},
                     {3, 0},
                     {3, 3}});
    const int cells = 4 * side;
    const std::string error = refusal(add_structs_near2, over(leaf), sum);
    EXPECT_THAT(error, HasSubstr("outside the domain"));  // those at the rim
    const std::vector<NodeSums> all = wait_read(sum, {0, 0}, {cells, cells});
    for (int x = 1; x + 1 < cells; ++x) {
      for (int y = 1; y + 1 < cells; ++y) {
        const NodeSums& s = all[x * cells + y];
        ASSERT_EQ(s.mass, 9) << side << ": " << x << ", " << y;
        ASSERT_EQ(s.momentum, Vec2f(0, 0));
        ASSERT_EQ(s.moments, (std::array<double, 2>{9.0 * x, 4.5}));
        ASSERT_EQ(s.count, 9);
      }
    }
  }
}

TEST_P(Atomics, SumsThatActivateHappenOnceHoweverOftenCellsRunOut) {
  constexpr int kSide = 60, kRounds = 4;
  for (const bool is_masked : {false, true}) {
    Tree tree(device);
    const Node blocks = tree.root().pointer({64, 64});
    const Node leaf = is_masked ? blocks.bitmasked({8, 8}) : blocks.dense({8, 8});
    const Field<NodeSums> sum = leaf.place<NodeSums>("sum");
    run(grow_sums2, range(kSide * kSide * kRounds), sum, kSide);
    const std::vector<NodeSums> all = wait_read(sum, {0, 0}, {512, 512});
    size_t filled = 0;
    for (int x = 0; x < 512; ++x) {
      for (int y = 0; y < 512; ++y) {
        const bool is_there = x % 5 == 0 && y % 3 == 0 && x < 5 * kSide && y < 3 * kSide;
        const NodeSums& s = all[x * 512 + y];
        const float n = is_there ? kRounds : 0;
        ASSERT_EQ(s.mass, n) << x << ", " << y;
        ASSERT_EQ(s.momentum, Vec2f(n * (x / 5), n * (y / 3)));
        ASSERT_EQ(s.moments, (std::array<double, 2>{n, 2 * n}));
        ASSERT_EQ(s.count, static_cast<int>(n));
        filled += is_there ? 1 : 0;
      }
    }
    if (is_masked) {
      EXPECT_EQ(leaf.wait_num_active_cells(), filled);
    }
  }
}

// In a function, whose launches are recorded where the device records, and beside a field that is set.
TEST_P(Atomics, SumsThatActivateHappenOnceInReplays) {
  constexpr int kSide = 40;
  Tree sums(device), others(device);
  const Field<int> sum = sums.root().pointer({64, 64}).dense({8, 8}).place<int>("sum");
  const Node masked = others.root().pointer({64, 64}).bitmasked({8, 8});
  const Field<int> other = masked.place<int>("other");
  const Function step = trace(device, [&] {
    program->launch(grow_and_set2, range(kSide * kSide), sum, other, kSide);
    program->launch(grow_and_set2, range(kSide * kSide), sum, other, kSide);
  });
  step.run(3);
  const std::vector<int> all = wait_read(sum, {0, 0}, {512, 512});
  EXPECT_EQ(std::count(all.begin(), all.end(), 6), kSide * kSide);
  EXPECT_EQ(std::accumulate(all.begin(), all.end(), 0), 6 * kSide * kSide);
  EXPECT_EQ(masked.wait_num_active_cells(), uint64_t{kSide} * kSide);
  EXPECT_THAT(program->explain(grow_and_set2, range(1), sum, other, 1), HasSubstr("adds to"));
}

TEST_P(Atomics, KeepTheExtremesOfEveryType) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::nanf("");
  constexpr double kWide = std::numeric_limits<double>::infinity();
  check_extremes<float>(extremes_f32, {kInf, -kInf, kNan, -kNan, 1e-45f, -1e-45f, 0.0f, -0.0f});
  check_extremes<float>(extremes_f32, {kNan, 1e-45f, -1e-45f});
  check_extremes<double>(extremes_f64, {kWide, -kWide, std::nan(""), 5e-324, -5e-324, -0.0});
  check_extremes<int32_t>(extremes_i32, {INT32_MAX, INT32_MIN, 0, -1});
  check_extremes<uint32_t>(extremes_u32, {UINT32_MAX, 0, 0x80000000u});
  check_extremes<int64_t>(extremes_i64, {INT64_MAX, INT64_MIN, 0, -1});
  check_extremes<uint64_t>(extremes_u64, {UINT64_MAX, 0, uint64_t{1} << 63});
}

TEST_P(Atomics, CollectBits) {
  Tree tree(device);
  const Node leaf = tree.root().dense({1});
  const Field<uint32_t> any = leaf.place<uint32_t>("any"), all = leaf.place<uint32_t>("all"),
                        odd = leaf.place<uint32_t>("odd");
  const Field<uint64_t> wide = leaf.place<uint64_t>("wide");
  run(collect_bits, range(30), Bits{any, all, odd, wide});
  EXPECT_EQ(wait_read(any, {0}), 0xfffffu);
  EXPECT_EQ(wait_read(all, {0}), 0u);
  EXPECT_EQ(wait_read(odd, {0}), 0xffc00u);
  EXPECT_EQ(wait_read(wide, {0}), (uint64_t{1} << 30) - 1);
}

TEST_P(Atomics, GiveWhatWasThereBefore) {
  constexpr int kItems = 3000;
  Tree tree(device);
  const Node leaf = tree.root().dense({8});
  const Field<int> next = leaf.place<int>("next");
  const Field<int64_t> hand = leaf.place<int64_t>("hand");
  std::vector<int> drawn(kItems);
  run(draw_numbers, range(kItems), next, inout(drawn));
  std::sort(drawn.begin(), drawn.end());
  for (int i = 0; i < kItems; ++i) ASSERT_EQ(drawn[i], i);
  std::vector<int64_t> given(kItems);
  run(pass_on, range(kItems), hand, inout(given));
  given.push_back(wait_read(hand, {0}));
  std::sort(given.begin(), given.end());
  for (int i = 0; i <= kItems; ++i) ASSERT_EQ(given[i], i);
  std::vector<int> now(8, -1);
  run(read_by_atomic, range(8), next, inout(now));
  EXPECT_EQ(now, (std::vector<int>{kItems, 0, 0, 0, 0, 0, 0, 0}));
}

TEST_P(Atomics, LetOneOfSeveralWin) {
  constexpr int kCells = 6, kItems = 600;
  Tree tree(device);
  const Field<float> owner = tree.root().dense({kCells}).place<float>("owner");
  std::vector<int> won(kItems);
  run(claim, range(1, kItems), owner, 0.0f, kCells, inout(won));
  EXPECT_EQ(std::accumulate(won.begin(), won.end(), 0), kCells);
  for (int c = 0; c < kCells; ++c) {
    const auto winner = static_cast<int>(wait_read(owner, {c}));
    EXPECT_EQ(winner % kCells, c);
    EXPECT_EQ(won[winner], 1);
  }
}

TEST_P(Atomics, MissInactiveCellsWithAnError) {
  Tree tree(device);
  const Field<int> next = tree.root().pointer({4}).dense({2}).place<int>("next");
  std::vector<int> drawn(3, -1);
  EXPECT_THAT(refusal(draw_numbers, range(3), next, inout(drawn)), HasSubstr("inactive cell"));
}

// Where an atomic operation's answer decides about activations, the launch itself alone can show which. One
// that only counts has room made first.
TEST_P(Atomics, CountOnceWhereCellsRunOut) {
  constexpr int kItems = 300;
  Tree counts(device), tree(device);
  const Field<int> next = counts.root().dense({1}).place<int>("next");
  const Node blocks = tree.root().pointer({2048});
  const Node leaf = blocks.dense({4});
  (void)leaf.place<int>("x");
  run(count_and_activate, range(kItems), next, leaf.topology());
  EXPECT_EQ(wait_read(next, {0}), kItems);
  EXPECT_EQ(leaf.wait_num_active_blocks(), uint64_t{kItems});
  EXPECT_THAT(program->explain(activate_drawn, range(1), next, leaf.topology()), HasSubstr("as Atomic"));
  const std::string error = refusal(activate_drawn, range(1500), next, leaf.topology());
  if (error.empty()) {
    EXPECT_EQ(leaf.wait_num_active_blocks(), uint64_t{kItems} + 1500);
  } else {
    EXPECT_THAT(error, HasSubstr("reserve("));
  }
}

// The checks compare what kernels do with what their launches were said to do.
TEST_P(Atomics, AreWhatTheirLaunchesSayWithTheChecks) {
  CodegenOptions checks;
  checks.checks = true;
  Program checked(device, checks);
  Tree tree(device, {.checks_temporaries = true});
  const Node blocks = tree.root().pointer({64, 64}), leaf = blocks.bitmasked({8, 8});
  const Field<NodeSums> sum = leaf.place<NodeSums>("sum");
  const Field<int> count = leaf.place<int>("count"), scratch = leaf.temporary<int>("scratch");
  run_on(checked, grow_sums2, range(400), sum, 20);
  run_on(checked, set_where_active, range({40, 40}), count, count);
  std::vector<int> active(36 * 36);
  run_on(checked, tell_active, range({-1, -1}, {35, 35}), count, inout(active), 36);
  EXPECT_EQ(std::accumulate(active.begin(), active.end(), 0), 7 * 12);
  EXPECT_EQ(wait_read(sum, {5, 3}).count, 1);
  EXPECT_THROW(run_on(checked, grow_and_set2, range(1), scratch, count, 1), Error);  // adds to no value
  device->default_stream().clear_error();
  Tree line(device);
  const Field<int> next = line.root().dense({4}).place<int>("next");
  std::vector<int> drawn(8);
  run_on(checked, draw_numbers, range(8), next, inout(drawn));
  EXPECT_EQ(wait_read(next, {0}), 8);
  EXPECT_THROW(run_on(checked, read_by_atomic, range(8), next, inout(drawn)), Error);  // beyond the domain
  device->default_stream().clear_error();
}

TEST_P(Atomics, AReadTellsWhatIsActive) {
  constexpr int kSide = 16, kAll = kSide + 2;
  for (const bool is_masked : {false, true}) {
    Tree tree(device), others(device);
    const Node blocks = tree.root().pointer({4, 4});
    const Node leaf = is_masked ? blocks.bitmasked({4, 4}) : blocks.dense({4, 4});
    const Field<int> field = leaf.place<int>("field");
    leaf.activate({{0, 0}, {5, 6}, {15, 15}});
    std::vector<int> active(kAll * kAll, -1);
    run(tell_active, range({-1, -1}, {kSide + 1, kSide + 1}), field, inout(active), kAll);
    const auto expected = [&](int x, int y) {
      if (x < 0 || y < 0 || x >= kSide || y >= kSide) return 0;
      return is_masked
                 ? static_cast<int>((x == 0 && y == 0) || (x == 5 && y == 6) || (x == 15 && y == 15))
                 : static_cast<int>((x < 4 && y < 4) || (x / 4 == 1 && y / 4 == 1) || (x > 11 && y > 11));
    };
    for (int x = -1; x <= kSide; ++x)
      for (int y = -1; y <= kSide; ++y)
        EXPECT_EQ(active[(x + 1) * kAll + y + 1], expected(x, y)) << x << ", " << y;
    const Node masked = others.root().pointer({4, 4}).bitmasked({4, 4});
    const Field<int> other = masked.place<int>("other");
    run(set_where_active, range({kSide, kSide}), field, other);
    EXPECT_EQ(masked.wait_num_active_cells(), leaf.wait_num_active_cells());
  }
}

TEST_P(Atomics, RangesOfSeveralDimensionsVisitEachCoordinateOnce) {
  constexpr int kX = 37, kY = 53;
  Tree tree(device, {.origin = {-64, -64}});
  const Field<int> at = tree.root().pointer({16, 16}).dense({8, 8}).place<int>("at");
  std::vector<int64_t> number(kX * kY, -1);
  run(number_plane, range({-5, -40}, {-5 + kX, -40 + kY}), at, inout(number));
  for (int x = 0; x < kX; ++x)
    for (int y = 0; y < kY; ++y) ASSERT_EQ(number[x * kY + y], (x - 5) * 1000 + y - 40);
  const std::vector<int> values = wait_read(at, {-5, -40}, {-5 + kX, -40 + kY});
  for (int i = 0; i < kX * kY; ++i) ASSERT_EQ(values[i], i + 1);
  std::vector<int64_t> room(11 * 7 * 13, -1);
  run(number_room, range({11, 7, 13}), inout(room));
  for (int i = 0; i < 11 * 7 * 13; ++i)
    ASSERT_EQ(room[i], (int64_t{1000} * (i / 91) + i / 13 % 7) * 1000 + i % 13);
  // One that has nothing on an axis visits nothing.
  run(number_room, range({5, 3, 0}), inout(room));
  run(number_room, range({5, 4, 3}, {7, 3, 9}), inout(room));
}

TEST_P(Atomics, RangesOfSeveralDimensionsAreForTheirKernelsAlone) {
  std::vector<int64_t> number(16);
  std::vector<int> drawn(16);
  Tree tree(device);
  const Node leaf = tree.root().dense({1});
  const Field<int> next = leaf.place<int>("next");
  EXPECT_THAT(refusal(number_room, range({4, 4}), inout(number)),
              HasSubstr("it takes an Item3 and loops over a range of three: range({nx, ny, nz})"));
  EXPECT_THAT(refusal(number_room, range(16), inout(number)), HasSubstr("takes an Item3"));
  EXPECT_THAT(refusal(draw_numbers, range({4, 4}), next, inout(drawn)), HasSubstr("takes an Item and loops"));
  EXPECT_THAT(refusal(number_room, over(leaf), inout(number)), HasSubstr("takes an Item3"));
  EXPECT_THROW(range({1, 2}, {1, 2, 3}), Error);
  EXPECT_THROW(range({1 << 30, 1 << 30, 8}), Error);
}

TEST_P(Atomics, RandomNumbersOfAPlaneAreDifferentAndTheSameInEveryRun) {
  std::vector<uint32_t> first(600), second(600);
  device->set_seed(5);
  run(draw_in_plane, range({20, 30}), inout(first));
  std::vector<uint32_t> sorted = first;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(std::unique(sorted.begin(), sorted.end()), sorted.end());
}

TEST_P(Atomics, KernelsPrintVectorsAndMatrices) {
  std::vector<std::string> lines;
  device->set_message_handler([&](std::string_view line) { lines.emplace_back(line); });
  run(print_vectors, range({4, 4}), Vec3f(1, 2.5f, -3));
  device->set_message_handler(nullptr);
  EXPECT_EQ(lines, (std::vector<std::string>{"[1.00, 2.50, -3.00] and [[1, 1], [2, 1]] of [+1.5, -2]"}));
}

TEST(AtomicsInOrder, GiveWhatTheItemsBeforeHaveLeftInDeterministicMode) {
  constexpr int kItems = 5000;
  const auto device = Device::cpu({.threads = 4, .deterministic = true});
  Program program(device);
  Tree tree(device);
  const Field<int> next = tree.root().dense({1}).place<int>("next");
  std::vector<int> drawn(kItems);
  run_on(program, draw_numbers, range(kItems), next, inout(drawn));
  for (int i = 0; i < kItems; ++i) ASSERT_EQ(drawn[i], i);
}

// A device of one thread adds without locked instructions, so that no two launches may run at once, whether
// they are small or large. Seen to fail: oneTBB's arena of one thread was two streams' at once.
TEST(AtomicsOfStreams, LoseNothingOnADeviceOfOneThread) {
  constexpr int kCells = 3, kSmall = 3 * 100, kLarge = 3 * 40000, kRounds = 60;
  for (const int threads : {1, 2}) {
    const auto device = Device::cpu({.threads = threads});
    const IntrusivePtr<Stream> second = device->create_stream();
    Program program(device);
    Tree tree(device);
    const Field<Vec3f> sum = tree.root().dense({kCells}).place<Vec3f>("sum");
    std::vector<AsyncValueRef<Chain>> done;
    for (int round = 0; round < kRounds; ++round) {
      for (Stream* const stream : {&device->default_stream(), second.get()}) {
        done.push_back(stream->launch(program.make_launch(add_vectors, range(kSmall), sum, kCells)));
        done.push_back(stream->launch(program.make_launch(add_vectors, range(kLarge), sum, kCells)));
      }
    }
    for (const auto& one : done) wait(one);
    const float all = 2 * kRounds * (kSmall + kLarge) / kCells;
    for (const Vec3f& v : wait_read(sum, {0}, {kCells}))
      EXPECT_EQ(v.head<2>(), Vec2f(all, 2 * all)) << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(Sparse, Atomics, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace
}  // namespace coppice
