// Loops over cells of containers that are too large for one item: they are cut into
// pieces, and nothing else changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "large_containers.kernels.h"
#include "sparse/read_back.h"
#include "sparse/tree.h"
#include "tests/sparse/loop_devices.h"
#include "tests/sparse/traced.h"

namespace coppice {
namespace {

enum class Kind { kDense, kBitmasked, kPointer };

class LargeContainers : public LoopTest {
 protected:
  using Extent = std::array<int, 3>;
  int scaled(int n, int emulated_n) const { return emulated() ? emulated_n : n; }

  static Node make_node(Tree& tree, Kind kind, int dims, const Extent& e) {
    const auto make = [&](auto... extents) {
      return kind == Kind::kDense       ? tree.root().dense({extents...})
             : kind == Kind::kBitmasked ? tree.root().bitmasked({extents...})
                                        : tree.root().pointer({extents...});
    };
    return dims == 1 ? make(e[2]) : dims == 2 ? make(e[1], e[2]) : make(e[0], e[1], e[2]);
  }
  static bool is_active(Kind kind, size_t i) { return kind == Kind::kDense || i * 2654435761u % 7 < 3; }
  // Cell i of e's, leading axes first.
  static std::array<int, 3> coord_of(const Extent& e, size_t i) {
    const int at = static_cast<int>(i);
    return {at / e[2] / e[1], at / e[2] % e[1], at % e[2]};
  }
  static int code_of(const std::array<int, 3>& c) { return (c[0] * 61 + c[1] * 31 + c[2] * 7) % 4093 + 1; }
  template <class T>
  static std::vector<T> all_values(const Field<T>& field, int dims, const Extent& e) {
    if (dims == 1) return wait_read(field, {0}, {e[2]});
    if (dims == 2) return wait_read(field, {0, 0}, {e[1], e[2]});
    return wait_read(field, {0, 0, 0}, {e[0], e[1], e[2]});
  }

  // Every active cell is visited once and no other, and what it reads and writes is its own, or near.
  void check(Kind kind, int dims, const Extent& e) {
    SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(kind) << ", " << e[0] << " x " << e[1]
                                    << " x " << e[2]);
    Tree tree(device);
    Node node = make_node(tree, kind, dims, e);
    Field<int> visits = node.place<int>("visits"), code = node.place<int>("code"),
               twice = node.place<int>("twice"), sum = node.place<int>("sum");
    const size_t cells = static_cast<size_t>(e[0]) * static_cast<size_t>(e[1]) * static_cast<size_t>(e[2]);
    std::vector<std::array<int32_t, 3>> active;
    for (size_t i = 0; i < cells; ++i) {
      if (kind == Kind::kDense || !is_active(kind, i)) continue;
      const std::array<int, 3> c = coord_of(e, i);
      if (dims == 1)
        active.push_back({c[2], 0, 0});
      else if (dims == 2)
        active.push_back({c[1], c[2], 0});
      else
        active.push_back(c);
    }
    if (!active.empty()) finish(node.activate(active));
    const auto in_dims = [&](const auto& one, const auto& two, const auto& three, const auto& from,
                             const auto& to) {
      if (dims == 1)
        run(one, over(node), from, to);
      else if (dims == 2)
        run(two, over(node), from, to);
      else
        run(three, over(node), from, to);
    };
    in_dims(visit_large1, visit_large2, visit_large3, visits, code);
    in_dims(write_large1, write_large2, write_large3, code, twice);
    in_dims(sum_near1, sum_near2, sum_near3, code, sum);
    const std::vector<int> v = all_values(visits, dims, e), c = all_values(code, dims, e),
                           t = all_values(twice, dims, e), s = all_values(sum, dims, e);
    for (size_t i = 0; i < cells; ++i) {
      const std::array<int, 3> at = coord_of(e, i);
      if (!is_active(kind, i)) {
        ASSERT_TRUE(v[i] == 0 && c[i] == 0 && t[i] == 0 && s[i] == 0) << i;
        continue;
      }
      ASSERT_EQ(v[i], 1) << i;
      ASSERT_EQ(c[i], code_of(at)) << i;
      ASSERT_EQ(t[i], 2 * c[i] + 1) << i;
      int near = 0;
      size_t stride = 1;
      for (int d = 2; d >= 3 - dims; stride *= static_cast<size_t>(e[d]), --d) {
        if (at[d] > 0) near += c[i - stride];
        if (at[d] + 1 < e[d]) near += c[i + stride];
      }
      ASSERT_EQ(s[i], near) << i;
    }
  }
};

// Seen to fail before containers were cut: one thread had all of it.
TEST_P(LargeContainers, AreSharedByThreads) {
  if (device->threads() == 1) GTEST_SKIP() << "one thread has nobody to share with";
  if (!emulated()) {
    const int n = 1 << 16;
    for (Kind kind : {Kind::kDense, Kind::kBitmasked}) {
      Tree tree(device);
      Node node = make_node(tree, kind, 1, {1, 1, n});
      Field<int> x = node.place<int>("x");
      if (kind == Kind::kBitmasked) finish(node.activate(std::vector<std::array<int32_t, 3>>{{0}, {n - 1}}));
      uint32_t here = 0, met = 0;
      run(meet_at_ends, over(node), x, n, inout(here), inout(met));
      EXPECT_EQ(met, 2u) << "the first cell and the last were not under way at the same time";
    }
    return;
  }
  // One thread block would go through all cells in its stride.
  const int ex = 9, ey = 31, ez = 33;
  Tree tree(device);
  Node node = tree.root().dense({ex, ey, ez});
  Field<uint32_t> lane = node.place<uint32_t>("lane");
  run(note_lane, over(node), lane);
  const std::vector<uint32_t> lanes = wait_read(lane, {0, 0, 0}, {ex, ey, ez});
  const uint32_t count = *std::max_element(lanes.begin(), lanes.end()) + 1;
  size_t out_of_stride = 0;
  for (size_t i = 0; i < lanes.size(); ++i) out_of_stride += lanes[i] != i % count;
  EXPECT_GT(out_of_stride, 0u);
}

// Pieces that end within a plane, within a mask's word, and within a row. Seen to fail when both pieces that
// have some of a mask word's cells visited all of them.
TEST_P(LargeContainers, VisitEachActiveCellOnceAndReadWhatIsNear) {
  for (Kind kind : {Kind::kDense, Kind::kBitmasked, Kind::kPointer}) {
    const bool slots = kind == Kind::kPointer;
    check(kind, 1, {1, 1, scaled(slots ? 20'011 : 1'000'007, 4096 * 2 + 7)});
    check(kind, 2, {1, scaled(slots ? 150 : 2048, 3), scaled(slots ? 130 : 2048, 4096)});
    check(kind, 2, {1, scaled(517, 71), scaled(slots ? 31 : 1031, 67)});
    check(kind, 3, {scaled(slots ? 20 : 100, 7), scaled(slots ? 23 : 90, 23), scaled(80, 31)});
  }
  check(Kind::kDense, 2, {1, 3, 5001});
  check(Kind::kBitmasked, 2, {1, 3, 5001});
}

// Neighbours are read whether or not the leaf and its halo fit into a tile.
TEST_P(LargeContainers, BelowPointerNodesReadTheirNeighbours) {
  const int ey = 100, ez = 90;
  for (const bool wide : {false, true}) {
    Tree tree(device);
    Node leaf = tree.root().pointer({2, 2}).dense({ey, ez});
    Field<int> code = leaf.place<int>("code"), twice = leaf.place<int>("twice"), sum = leaf.place<int>("sum");
    Field<int64_t> wide_code = leaf.place<int64_t>("wide");
    finish(leaf.activate(std::vector<std::array<int32_t, 3>>{{0, 0}, {0, ez}, {ey, 0}}));
    run(visit_large2, over(leaf), twice, code);
    run(write_long, over(leaf), wide_code);
    if (wide)
      run(sum_near_long, over(leaf), wide_code, sum);
    else
      run(sum_near2, over(leaf), code, sum);
    const std::vector<int> c = wait_read(code, {-1, -1}, {2 * ey + 1, 2 * ez + 1}),
                           s = wait_read(sum, {-1, -1}, {2 * ey + 1, 2 * ez + 1});
    const int pitch = 2 * ez + 2;
    for (int y = 0; y < 2 * ey; ++y) {
      for (int z = 0; z < 2 * ez; ++z) {
        const int at = (y + 1) * pitch + z + 1;
        if (y >= ey && z >= ez) continue;
        ASSERT_EQ(s[at], c[at - 1] + c[at + 1] + c[at - pitch] + c[at + pitch]) << y << " " << z;
      }
    }
  }
}

// The same numbers as where each container is one item.
TEST_P(LargeContainers, DrawTheSameNumbers) {
  const int n = scaled(512, 96);
  std::vector<uint32_t> drawn[2];
  for (const bool small : {false, true}) {
    std::string reason;
    IntrusivePtr<Device> fresh = test_device(GetParam(), reason);
    Program own(fresh, CodegenOptions{});
    fresh->set_seed(5);
    Tree tree(fresh);
    Node leaf = small ? tree.root().dense({n / 32, n / 32}).dense({32, 32}) : tree.root().dense({n, n});
    Field<uint32_t> x = leaf.place<uint32_t>("x");
    run_on(own, draw_large, over(leaf), x);
    drawn[small] = wait_read(x, {0, 0}, {n, n});
  }
  EXPECT_EQ(drawn[0], drawn[1]);
  EXPECT_NE(drawn[0].front(), drawn[0].back());
}

// Sums whose order matters: the pieces' is that of the cells.
TEST_P(LargeContainers, KeepTheirOrderInDeterministicMode) {
  if (emulated()) GTEST_SKIP() << "the mode is the cpu's";
  const int n = 300;
  float expected = 0;
  std::vector<float> sums;
  for (int threads : {1, 4}) {
    IntrusivePtr<Device> ordered = Device::cpu({.threads = threads, .deterministic = true});
    Program own(ordered, CodegenOptions{});
    Tree tree(ordered);
    Node leaf = tree.root().dense({n, n}), single = tree.root().dense({1, 1});
    Field<int> visits = leaf.place<int>("visits"), code = leaf.place<int>("code");
    Field<float> sum = single.place<float>("sum");
    run_on(own, visit_large2, over(leaf), visits, code);
    run_on(own, add_up_large, over(leaf), code, sum);
    sums.push_back(wait_read(sum, {0, 0}));
    const std::vector<int> codes = wait_read(code, {0, 0}, {n, n});
    expected = std::accumulate(codes.begin(), codes.end(), 0.0f,
                               [](float s, int c) { return s + 1.0f / static_cast<float>(c); });
  }
  EXPECT_EQ(sums[0], expected);
  EXPECT_EQ(sums[1], expected);
}

TEST_P(LargeContainers, AreWholeInRecordings) {
  const int n = scaled(100'003, 2 * 4096 + 3);
  Tree tree(device);
  Node cells = tree.root().bitmasked({n});
  Field<int> x = cells.place<int>("x");
  std::vector<int> coords;
  for (int i = 0; i < n; i += 3) coords.push_back(i);
  const IntrusivePtr<Buffer> at = wait_device_copy(*device, coords.data(), coords.size());
  Function function = traced({program->bind(activate_large1, range(static_cast<int64_t>(coords.size())),
                                            cells.topology(), static_cast<const int*>(at->as<int>())),
                              program->bind(add_one_large, over(cells), x)});
  function.run(3);
  program->wait();
  const std::vector<int> values = wait_read(x, {0}, {n});
  for (int i = 0; i < n; ++i) ASSERT_EQ(values[static_cast<size_t>(i)], i % 3 == 0 ? 3 : 0) << i;
}

// All cells are cut into pieces, each cell into one, in order.
TEST(Pieces, AreOfAboutTheSameSizeAndCoverAllCells) {
  for (const std::array<uint32_t, 3>& e : {std::array<uint32_t, 3>{1, 1, 4097},
                                           {1, 1, 1'000'007},
                                           {1, 2048, 2048},
                                           {1, 2, 4096},
                                           {1, 3, 5001},
                                           {100, 90, 80},
                                           {1, 517, 1031},
                                           {4097, 1, 1},
                                           {17, 17, 17},
                                           {1, 1, 4294967295u}}) {
    SCOPED_TRACE(testing::Message() << e[0] << " x " << e[1] << " x " << e[2]);
    device::LoopLayout loop{};
    const uint32_t extent[3] = {e[0], e[1], e[2]};
    device::cut_into_pieces(loop, extent);
    const uint64_t rows = uint64_t{e[0]} * e[1], parts = (uint64_t{e[2]} - 1) / loop.piece_row_cells + 1;
    EXPECT_GE(loop.pieces, 2u);
    EXPECT_EQ(loop.pieces, ((rows - 1) / loop.piece_rows + 1) * parts);
    EXPECT_LE(uint64_t{loop.piece_rows} * loop.piece_row_cells, device::kPieceCells);
    EXPECT_TRUE(parts == 1 || (loop.piece_rows == 1 && loop.piece_row_cells % 64 == 0));
    // Twice as many cells would not fit, but for what a row's end leaves.
    EXPECT_GT(2 * uint64_t{loop.piece_rows + 1} * (loop.piece_row_cells + 64), device::kPieceCells);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, LargeContainers, testing::ValuesIn(test_devices_by_threads()),
                         device_test_name);

}  // namespace
}  // namespace coppice
