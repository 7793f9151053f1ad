// Loops over a box of cells activate these, visit them once each, and leave all others alone.
#include <algorithm>
#include <functional>

#include "box_loops.kernels.h"
#include "conformance_cells.kernels.h"
#include "core/error.h"
#include "large_containers.kernels.h"
#include "sparse/read_back.h"
#include "tests/sparse/loop_devices.h"
#include "tests/sparse/traced.h"

namespace coppice {
namespace {

using Coords = std::array<int32_t, 3>;

class BoxLoops : public LoopTest {
 protected:
  struct Shape {
    int dims;
    std::function<Node(const Tree&)> make;
    bool by_block;  // cells become active with their container
    Coords low, high;
  };

  // From below zero on, so that what is cut and what is not differ in sign.
  static constexpr Coords kOrigin{-8, -8, -8};
  static constexpr int kDomain = 24;

  static Loop box_of(const Node& node, int dims, const Coords& low, const Coords& high) {
    if (dims == 1) return over_box(node, {low[0]}, {high[0]});
    if (dims == 2) return over_box(node, {low[0], low[1]}, {high[0], high[1]});
    return over_box(node, low, high);
  }
  template <class T>
  static std::vector<T> all_values(const Field<T>& field, int dims) {
    const int a = kOrigin[0], b = a + kDomain;
    if (dims == 1) return wait_read(field, {a}, {b});
    if (dims == 2) return wait_read(field, {a, a}, {b, b});
    return wait_read(field, {a, a, a}, {b, b, b});
  }
  // The coordinate of value i of these.
  static Coords coord_of(int dims, size_t i) {
    Coords c{};
    for (int axis = dims; axis-- > 0; i /= kDomain) c[axis] = static_cast<int>(i % kDomain) + kOrigin[axis];
    return c;
  }
  static bool is_in(int dims, const Coords& c, const Coords& low, const Coords& high) {
    for (int axis = 0; axis < dims; ++axis)
      if (c[axis] < low[axis] || c[axis] >= high[axis]) return false;
    return true;
  }
  static int code_of(int dims, const Coords& c) {
    static constexpr int kFactors[3] = {61, 31, 7};
    int code = 0;
    for (int axis = 0; axis < dims; ++axis) code += c[axis] * kFactors[3 - dims + axis];
    return code % 4093 + 1;
  }

  void check(const Shape& s) {
    Tree tree(device, {.origin = kOrigin});
    const Node node = s.make(tree);
    SCOPED_TRACE(node.path());
    const Field<int> visits = node.place<int>("visits"), code = node.place<int>("code"),
                     twice = node.place<int>("twice"), sum = node.place<int>("sum");
    const Loop box = box_of(node, s.dims, s.low, s.high);
    const auto in_dims = [&](const Loop& loop, const auto& one, const auto& two, const auto& three,
                             const auto& from, const auto& to) {
      if (s.dims == 1)
        run(one, loop, from, to);
      else if (s.dims == 2)
        run(two, loop, from, to);
      else
        run(three, loop, from, to);
    };
    in_dims(box, visit_large1, visit_large2, visit_large3, visits, code);
    in_dims(box, write_large1, write_large2, write_large3, code, twice);
    in_dims(box, sum_near1, sum_near2, sum_near3, code, sum);
    const std::vector<int> v = all_values(visits, s.dims), c = all_values(code, s.dims),
                           t = all_values(twice, s.dims), n = all_values(sum, s.dims);
    uint64_t in_box = 0;
    for (size_t i = 0; i < v.size(); ++i) {
      const Coords at = coord_of(s.dims, i);
      if (!is_in(s.dims, at, s.low, s.high)) {
        ASSERT_TRUE(v[i] == 0 && c[i] == 0 && t[i] == 0 && n[i] == 0) << i;
        continue;
      }
      ++in_box;
      ASSERT_EQ(v[i], 1) << i;
      ASSERT_EQ(c[i], code_of(s.dims, at)) << i;
      ASSERT_EQ(t[i], 2 * c[i] + 1) << i;
      int near = 0;
      size_t stride = 1;
      for (int axis = s.dims - 1; axis >= 0; --axis, stride *= kDomain) {
        if (at[axis] > kOrigin[axis]) near += c[i - stride];
        if (at[axis] + 1 < kOrigin[axis] + kDomain) near += c[i + stride];
      }
      ASSERT_EQ(n[i], near) << i;
    }
    // The visited cells are active, so there are no others.
    if (!s.by_block) {
      EXPECT_EQ(node.wait_num_active_cells(), in_box);
    }
  }

  std::string error_of(const std::function<void()>& call, ErrorCode code) {
    try {
      call();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code) << e.what();
      return e.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }
};

// Seen to fail with rows of masks set as if they were whole, and with a row's last container left out.
TEST_P(BoxLoops, VisitTheCellsOfTheBoxAndActivateNoOthers) {
  const auto root = [](const Tree& t) { return t.root(); };
  const Coords low{-7, -3, -6}, high{5, 9, 11};
  const std::vector<Shape> shapes{
      {1, [&](const Tree& t) { return root(t).pointer({3}).bitmasked({8}); }, false, low, high},
      {1, [&](const Tree& t) { return root(t).pointer({6}).pointer({4}); }, false, low, high},
      {1, [&](const Tree& t) { return root(t).pointer({3}).dense({8}); }, true, low, high},
      {2,
       [&](const Tree& t) {
         return root(t).pointer({3, 6}).bitmasked({8, 4});
       },
       false, low, high},
      {2,
       [&](const Tree& t) {
         return root(t).bitmasked({6, 3}).dense({4, 8});
       },
       true, low, high},
      {2,
       [&](const Tree& t) {
         return root(t).bitmasked({3, 3}).bitmasked({8, 8});
       },
       false,
       low,
       {5, 9, 0}},
      {2,
       [&](const Tree& t) {
         return root(t).pointer({24, 24});
       },
       false, low, high},
      {2,
       [&](const Tree& t) {
         return root(t).dense({24, 24});
       },
       true, low, high},
      // Whole rows, whole planes, and the whole domain.
      {2,
       [&](const Tree& t) {
         return root(t).pointer({3, 3}).bitmasked({8, 8});
       },
       false,
       {-7, -8},
       {9, 16}},
      {3,
       [&](const Tree& t) {
         return root(t).pointer({3, 3, 3}).bitmasked({8, 8, 8});
       },
       false,
       {-7, -8, -8},
       {3, 16, 0}},
      {3,
       [&](const Tree& t) {
         return root(t).pointer({3, 3, 3}).bitmasked({8, 8, 8});
       },
       false, low, high},
      {3,
       [&](const Tree& t) {
         return root(t).pointer({3, 3, 3}).dense({8, 8, 8});
       },
       true, low, high},
      // A container of more than 4096 cells, which loops cut into pieces.
      {3,
       [&](const Tree& t) {
         return root(t).bitmasked({24, 24, 24});
       },
       false, low, high},
      {3,
       [&](const Tree& t) {
         return root(t).dense({24, 24, 24});
       },
       true, low, high}};
  for (const Shape& shape : shapes) {
    if (emulated() && shape.dims == 3) continue;
    check(shape);
  }
  if (emulated()) check(shapes[9]), check(shapes[12]);
}

TEST_P(BoxLoops, DoNothingForEmptyBoxesAndRefuseOthersThanTheDomainHas) {
  Tree tree(device, {.name = "grid", .origin = {-8, -8}});
  const Node block = tree.root().pointer({2, 2}), leaf = block.bitmasked({8, 8});
  const Node lists = tree.root().pointer({4, 4}).dynamic(16, 4);
  const Field<int> x = leaf.place<int>("x"), y = leaf.place<int>("y");
  lists.place<int>("elements");
  for (const Coords& high : {Coords{3, 3}, Coords{8, 0}, Coords{-9, 8}})
    run(write_large2, over_box(leaf, {3, 0}, {high[0], high[1]}), x, y);
  EXPECT_EQ(block.wait_num_active_cells(), 0u);
  EXPECT_EQ(error_of(
                [&] {
                  over_box(leaf, {-9, 0}, {8, 8});
                },
                ErrorCode::kOutOfRange),
            "over_box: the box [-9, 8) x [0, 8) of grid.pointer[2,2].bitmasked[8,8] is not within the domain "
            "[-8, 8) x [-8, 8)");
  error_of([&] { over_box(leaf, {0, 0}, {8, 9}); }, ErrorCode::kOutOfRange);
  error_of([&] { over_box(leaf, {0}, {8}); }, ErrorCode::kInvalidArgument);
  error_of([&] { over_box(lists, {0, 0}, {4, 4}); }, ErrorCode::kInvalidArgument);
  // Seen before: these became [0, 0) and [0, 8).
  EXPECT_EQ(error_of(
                [&] {
                  over_box(leaf, {0, 0}, {int64_t{1} << 31, 8});
                },
                ErrorCode::kOutOfRange),
            "2147483648 is no coordinate: these are from -2^31 up to, not including, 2^31");
  error_of([&] { over_box(leaf, {0, 0}, {(int64_t{1} << 32) + 8, 8}); }, ErrorCode::kOutOfRange);
  error_of([&] { leaf.wait_is_active({0u, 4294967295u}); }, ErrorCode::kOutOfRange);
  error_of(
      [&] {
        program->launch(visit_block2, over_box(leaf, {0, 0}, {8, 8}), 1);
      },
      ErrorCode::kInvalidArgument);
  run(write_large2, over_box(leaf, {-8, -8}, {8, 8}), x, y);
  EXPECT_EQ(leaf.wait_num_active_cells(), 256u);
}

// Two trees, both of which must grow: by the box, and by the kernel, whose effects happen once all the same.
TEST_P(BoxLoops, GrowWithKernelsThatGrow) {
  const int side = emulated() ? 24 : 96, blocks = 2 * side / 4;
  Tree one(device, {.origin = {-side, -side}}), other(device);
  // Cells of 32 KiB: an allocator begins with a few and must grow again and again.
  const Node block = one.root().pointer({blocks, blocks}), leaf = block.bitmasked({4, 4});
  const Field<int> visits = leaf.place<int>("visits"), beside = leaf.place<int>("beside");
  block.dense({64, 128}).place<int>("pad");
  const Node other_block = other.root().pointer({2 * blocks, 2 * blocks}),
             other_leaf = other_block.dense({4, 4});
  const Field<int> to = other_leaf.place<int>("to");
  other_block.dense({64, 128}).place<int>("pad");
  const int low = -side / 2 - 1, high = side / 2 + 1;
  for (int round = 1; round <= 2; ++round) {
    run(count_and_set_beside2, over_box(leaf, {low, low}, {high, high}), visits, to, side, side);
    const std::vector<int> v = wait_read(visits, {-side, -side}, {side, side}),
                           t = wait_read(to, {0, 0}, {2 * side, 2 * side});
    for (int i = 0; i < 4 * side * side; ++i) {
      const int a = i / (2 * side) - side, b = i % (2 * side) - side;
      const bool is_in_box = a >= low && a < high && b >= low && b < high;
      ASSERT_EQ(v[i], is_in_box ? round : 0) << a << ", " << b;
      ASSERT_EQ(t[i], is_in_box ? 1 : 0) << a << ", " << b;
    }
  }
  // In its own tree, beyond the box.
  run(set_beside2, over_box(leaf, {low, low}, {high, high}), visits, beside, 2, 0);
  EXPECT_EQ(leaf.wait_num_active_cells(), static_cast<uint64_t>((high - low) * (high - low + 2)));
}

// Cells that a kernel deactivates in the box come again with the next loop, zeroed.
TEST_P(BoxLoops, BringBackWhatWasDeactivated) {
  Tree tree(device);
  const Node block = tree.root().pointer({4, 4}), leaf = block.bitmasked({8, 8});
  const Field<int> visits = leaf.place<int>("visits"), code = leaf.place<int>("code");
  const auto box = [&] { return over_box(leaf, {3, 5}, {21, 30}); };
  run(visit_large2, box(), visits, code);
  run(deactivate_odd2, box(), leaf.topology());
  const uint64_t cells = 18 * 25;
  EXPECT_EQ(leaf.wait_num_active_cells(), cells / 2);
  run(visit_large2, box(), visits, code);
  EXPECT_EQ(leaf.wait_num_active_cells(), cells);
  const std::vector<int> v = wait_read(visits, {0, 0}, {32, 32});
  EXPECT_EQ(std::count(v.begin(), v.end(), 1), static_cast<long>(cells / 2));
  EXPECT_EQ(std::count(v.begin(), v.end(), 2), static_cast<long>(cells / 2));
  finish(block.deactivate_all());
  EXPECT_EQ(leaf.wait_num_active_cells(), 0u);
  run(visit_large2, box(), visits, code);
  EXPECT_EQ(wait_read(visits, {3, 5}, {21, 30}), std::vector<int>(cells, 1));
}

TEST_P(BoxLoops, AddUpInTiles) {
  Tree tree(device);
  const Node leaf = tree.root().pointer({4, 4}).bitmasked({8, 8});
  const Field<int> sum = leaf.place<int>("sum");
  for (int round = 0; round < 3; ++round) run(scatter_in_box2, over_box(leaf, {3, 5}, {21, 30}), sum);
  EXPECT_EQ(wait_read(sum, {3, 5}, {21, 30}), std::vector<int>(18 * 25, 3));
  EXPECT_EQ(leaf.wait_num_active_cells(), 18u * 25);
}

// Seen before: 2^64 containers were taken for none.
TEST_P(BoxLoops, OfTooManyContainersAreRefused) {
  Tree tree(device, {.name = "vast"});
  Node node = tree.root();
  for (int level = 0; level < 4; ++level) node = node.pointer({16, 16, 16});
  const Node leaf = node.pointer({16, 16, 256}).dense({2, 2, 2});
  const Field<int> x = leaf.place<int>("x"), y = leaf.place<int>("y");
  const std::string text = error_of(
      [&] {
        run(write_large3, over_box(leaf, {0, 0, 0}, {1 << 21, 1 << 21, 1 << 25}), x, y);
      },
      ErrorCode::kOutOfMemory);
  EXPECT_NE(text.find("meets too many containers of "), std::string::npos) << text;
}

// The kernel does not run for the cells that there was memory for.
TEST_P(BoxLoops, EndInOneErrorWhereMemoryIsLimited) {
  Tree tree(device, {.max_bytes = 1 << 20});
  const Node block = tree.root().pointer({64, 64}), leaf = block.dense({64, 64});
  const Field<int> x = leaf.place<int>("x"), y = leaf.place<int>("y");
  const std::string text = error_of(
      [&] {
        run(write_large2, over_box(leaf, {0, 0}, {4096, 4096}), x, y);
      },
      ErrorCode::kOutOfMemory);
  EXPECT_EQ(text.rfind("kernel large_containers.write_large2: tree.pointer[64,64] is full", 0), 0u) << text;
  device->default_stream().clear_error();
  EXPECT_EQ(wait_read(y, {0, 0}), 0);
  finish(block.deactivate_all());
  run(write_large2, over_box(leaf, {100, 100}, {130, 130}), x, y);
  EXPECT_EQ(wait_read(y, {100, 100}, {130, 130}), std::vector<int>(900, 1));
}

// In recordings the box's cells may run out in a replay, with launches around it that change the same tree.
TEST_P(BoxLoops, AreRecorded) {
  const int blocks = emulated() ? 6 : 24, side = 4 * blocks;
  const auto visits_after = [&](bool recorded) {
    Tree tree(device);
    const Node block = tree.root().pointer({blocks, blocks}), leaf = block.bitmasked({4, 4});
    const Field<int> visits = leaf.place<int>("visits"), code = leaf.place<int>("code"),
                     twice = leaf.place<int>("twice");
    block.dense({64, 128}).place<int>("pad");
    const std::vector<BoundLaunch> launches{
        program->bind(visit_large2, over_box(leaf, {1, 2}, {side - 3, side}), visits, code),
        program->bind(deactivate_odd2, over_box(leaf, {0, 0}, {side, 7}), leaf.topology()),
        program->bind(write_large2, over(leaf), code, twice),
        program->bind(visit_large2, over_box(leaf, {0, 0}, {5, side}), visits, twice)};
    if (recorded) {
      Function function = traced(launches);
      finish(function.run(1)), finish(function.run(2));
    } else {
      for (int round = 0; round < 3; ++round) {
        for (const BoundLaunch& launch : launches) finish(launch.launch());
      }
    }
    std::vector<int> all = wait_read(visits, {0, 0}, {side, side});
    for (const Field<int>& field : {code, twice}) {
      const std::vector<int> more = wait_read(field, {0, 0}, {side, side});
      all.insert(all.end(), more.begin(), more.end());
    }
    all.push_back(static_cast<int>(leaf.wait_num_active_cells()));
    return all;
  };
  const std::vector<int> expected = visits_after(false);
  EXPECT_EQ(*std::max_element(expected.begin(), expected.begin() + side * side), 6);
  EXPECT_EQ(visits_after(true), expected);
}

INSTANTIATE_TEST_SUITE_P(Sparse, BoxLoops, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace
}  // namespace coppice
