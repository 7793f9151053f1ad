// COPPICE_DEBUG=checks: what a kernel does against its roles is an error that names kernel, field, place and
// extent, harms nothing, and is no error (or a crash) without the checks where the result is defined.
#include <gtest/gtest.h>

#include <cstdio>

#include "checks.kernels.h"
#include "core/error.h"
#include "sparse/program.h"
#include "sparse/tree.h"
#include "tests/sparse/staging.h"

namespace coppice {
namespace {

constexpr CodegenOptions kChecks{.checks = true}, kRelease{};

// A grid of 4 x 4 leaves of 4 x 4 cells, of which the one at (4, 8) is active.
class Checks : public testing::Test {
 protected:
  IntrusivePtr<Device> device =
      Device::cpu(1);  // one thread, so that the first cell is the first to complain
  Program checked{device, kChecks}, release{device, kRelease};
  Tree tree{device, {.name = "grid"}};
  Node block = tree.root().pointer({4, 4}), leaf = block.dense({4, 4}), beside = block.dense({4, 4});
  Field<int> now = leaf.place<int>("now"), next = leaf.place<int>("next"), other = beside.place<int>("other");

  void SetUp() override { wait(leaf.activate({{4, 8, 0}})); }

  // The message of the error that a launch ends with, "" if it ends well; the stream is ready for more.
  template <class... Arguments>
  std::string run(Program& program, Arguments&&... arguments) {
    auto done = launch_and_wait(program, std::forward<Arguments>(arguments)...);
    device->default_stream().clear_error();
    EXPECT_EQ(status_of(*device), 0u) << "a status was left to the next launch";
    if (!done.is_error()) return "";
    code = done.error().code();
    return done.error().what();
  }
  template <class... Arguments>
  std::string check(Arguments&&... arguments) {
    return run(checked, std::forward<Arguments>(arguments)...);
  }
  int read(const Field<int>& x, int row, int column) {
    int out = 0;
    EXPECT_EQ(check(walk2, range(1), x, row, column, inout(out)), "");
    return out - 1;
  }
  void write(const Field<int>& x, int row, int column) {
    ASSERT_EQ(check(set2, range(1), x, row, column), "");
  }

  ErrorCode code = ErrorCode::kInternal;
};

TEST_F(Checks, AStarReachesAlongItsAxesOnly) {
  const std::string before =
      "kernel checks.read_star2: field 'now' on grid.pointer[4,4].dense[4,4]: cell (4, 8) ";
  EXPECT_EQ(check(read_star2, over(leaf), StarStep{now, next}, 1, 1),
            before + "reads at offset (1, 1), beyond the Star<1> that its handle declares");
  EXPECT_EQ(code, ErrorCode::kOutOfRange);
  EXPECT_EQ(check(read_star2, over(leaf), StarStep{now, next}, -2, 0),
            before + "reads at offset (-2, 0), beyond the Star<1> that its handle declares");
  EXPECT_EQ(check(read_star2, over(leaf), StarStep{now, next}, 0, 2147483647),
            before + "reads at offset (0, 2147483647), beyond the Star<1> that its handle declares");
}

TEST_F(Checks, ABoxReachesItsCorners) {
  for (int d = 0; d < 9; ++d)
    EXPECT_EQ(check(read_box2, over(leaf), BoxStep{now, next}, d / 3 - 1, d % 3 - 1), "");
  EXPECT_EQ(check(read_box2, over(leaf), BoxStep{now, next}, 0, -2),
            "kernel checks.read_box2: field 'now' on grid.pointer[4,4].dense[4,4]: cell (4, 8) reads at "
            "offset (0, -2), "
            "beyond the Box<1> that its handle declares");
}

TEST_F(Checks, AReadBeyondItsReachGivesZero) {
  write(now, 4, 8), write(next, 4, 8);
  EXPECT_EQ(read(next, 4, 8), 5);
  EXPECT_NE(check(read_star2, over(leaf), StarStep{now, next}, 9, 9), "");
  EXPECT_EQ(read(next, 4, 8), 0);
}

TEST_F(Checks, AReachMayLeaveTheDomain) {
  wait(leaf.activate({{0, 0, 0}, {15, 15, 0}}));
  for (const int d : {-1, 1}) {
    EXPECT_EQ(check(read_star2, over(leaf), StarStep{now, next}, d, 0), "");
    EXPECT_EQ(check(read_star2, over(leaf), StarStep{now, next}, 0, d), "");
  }
}

TEST_F(Checks, CoordinatesAndOffsetsHaveTheTreesDimensions) {
  Tree cube(device, {.name = "cube", .origin = {-8, 0, 8}});
  Node cells = cube.root().pointer({4, 4, 4}).bitmasked({4, 4, 4});
  Field<int> a = cells.place<int>("a"), b = cells.place<int>("b");
  wait(cells.activate({{-7, 2, 11}}));
  EXPECT_EQ(check(read_star3, over(cells), StarStep{a, b}, 0, -1, 1),
            "kernel checks.read_star3: field 'a' on cube.pointer[4,4,4].bitmasked[4,4,4]: cell (-7, 2, 11) "
            "reads at offset "
            "(0, -1, 1), beyond the Star<1> that its handle declares");
}

// Without checks whole rows of a bitmasked leaf are computed, also for cells that are not active.
TEST_F(Checks, InactiveCellsDoNotComplain) {
  Tree masked(device);
  Node cells = masked.root().pointer({4, 4}).bitmasked({4, 4});
  Field<int> far = cells.place<int>("far"), a = cells.place<int>("a"), b = cells.place<int>("b");
  for (const int column : {0, 1, 5}) wait(cells.activate({{2, column, 0}}));
  EXPECT_EQ(check(read_as_told2, over(cells), far, StarStep{a, b}),
            "kernel checks.read_as_told2: field 'a' on tree.pointer[4,4].bitmasked[4,4]: cell (2, 0) reads "
            "at offset "
            "(-10, 0), beyond the Star<1> that its handle declares");
  for (const int column : {0, 1, 5}) {
    for (int n = 0; n < 2; ++n) ASSERT_EQ(check(add2, range(1), far, 2, column), "");
  }
  EXPECT_EQ(check(read_as_told2, over(cells), far, StarStep{a, b}), "");
}

TEST_F(Checks, AWalkOutsideTheDomainNamesCoordinateAndDomain) {
  int out = 0;
  const std::string before = "kernel checks.walk2: field 'now' on grid.pointer[4,4].dense[4,4]: coordinate ";
  EXPECT_EQ(check(walk2, range(1), now, -1, 3, inout(out)),
            before + "(-1, 3) is outside the domain [0, 16) x [0, 16)");
  EXPECT_EQ(out, 1) << "it reads as zero";
  EXPECT_EQ(check(walk2, range(1), now, 15, 16, inout(out)),
            before + "(15, 16) is outside the domain [0, 16) x [0, 16)");
  EXPECT_EQ(check(walk2, range(1), now, 15, 15, inout(out)), "");
  out = 0;
  EXPECT_EQ(run(release, walk2, range(1), now, -1, 3, inout(out)), "");
  EXPECT_EQ(out, 1);
}

TEST_F(Checks, WritesOutsideTheDomainAreErrorsWithAndWithoutChecks) {
  const std::string where =
      "field 'now' on grid.pointer[4,4].dense[4,4]: coordinate (3, -1) is outside the domain [0, 16) x [0, "
      "16)";
  for (Program* program : {&checked, &release}) {
    EXPECT_EQ(run(*program, set2, range(1), now, 3, -1), "kernel checks.set2: " + where);
    EXPECT_EQ(run(*program, add2, range(1), now, 3, -1), "kernel checks.add2: " + where);
    EXPECT_EQ(
        run(*program, add2, range(1), now, 3, 1),
        "kernel checks.add2: field 'now' on grid.pointer[4,4].dense[4,4]: accumulated into the inactive cell "
        "(3, 1); activate it in a launch before");
  }
  EXPECT_EQ(leaf.wait_num_active_blocks(), 1u);
}

TEST_F(Checks, DeactivatingOutsideTheDomainIsAnErrorAndAskingIsNone) {
  int active = 7;
  EXPECT_EQ(check(deactivate2, range(1), block.topology(), 0, 4),
            "kernel checks.deactivate2: grid.pointer[4,4]: coordinate (0, 4) is outside the domain [0, 4) x "
            "[0, 4)");
  EXPECT_EQ(run(release, deactivate2, range(1), block.topology(), 0, 4), "");
  EXPECT_EQ(
      check(deactivate2, range(1), leaf.topology(), 4, 8),
      "kernel checks.deactivate2: grid.pointer[4,4].dense[4,4]: deactivates cell (4, 8) of a dense node, "
      "which is always active; take its container from a handle of the node above");
  EXPECT_EQ(run(release, deactivate2, range(1), leaf.topology(), 4, 8), "");
  EXPECT_EQ(leaf.wait_num_active_blocks(), 1u);
  EXPECT_EQ(check(is_active2, range(1), block.topology(), 0, 4, inout(active)), "");
  EXPECT_EQ(active, 0);
}

TEST_F(Checks, AnIndexPastABlocksValuesNamesBlockAndExtent) {
  const std::string before = "kernel checks.copy_value2: field ";
  const std::string after = " is not in the block at (4, 8), which has values [0, 16)";
  EXPECT_EQ(check(copy_value2, over(leaf), now, next, 15, int64_t{0}), "");
  EXPECT_EQ(check(copy_value2, over(leaf), now, next, 16, int64_t{0}),
            before + "'now' on grid.pointer[4,4].dense[4,4]: index 16" + after);
  EXPECT_EQ(check(copy_value2, over(leaf), other, next, -1, int64_t{0}),
            before + "'other' on grid.pointer[4,4].dense[4,4]: index -1" + after);
  EXPECT_EQ(read(next, 4, 8), 1) << "what it read was zero";
  EXPECT_EQ(check(copy_value2, over(leaf), now, next, 0, int64_t{1} << 40),
            before + "'next' on grid.pointer[4,4].dense[4,4]: index 1099511627776" + after);
}

TEST_F(Checks, AWritePastABlocksValuesIsDropped) {
  std::vector<int> before, after;
  auto all = [&](std::vector<int>& values) {
    for (int cell = 0; cell < 16; ++cell) {
      for (const Field<int>& f : {now, next, other}) values.push_back(read(f, 4 + cell / 4, 8 + cell % 4));
    }
  };
  for (int at = 0; at < 16; ++at) ASSERT_EQ(check(copy_value2, over(leaf), other, now, at, int64_t{at}), "");
  all(before);
  for (const int64_t at : {-17, -16, -1, 16, 17, 32})
    EXPECT_NE(check(copy_value2, over(leaf), now, next, 0, at), "") << at;
  all(after);
  EXPECT_EQ(after, before);
}

TEST_F(Checks, ValuesOfBlocksAreStillPointers) {
  Tree more(device);
  Node cells = more.root().pointer({4, 4}).dense({2, 2});
  Field<int> a = cells.place<int>("a"), b = cells.place<int>("b");
  Field<Wide> wide = cells.place<Wide>("wide");
  wait(cells.activate({{0, 0, 0}}));
  for (Program* program : {&checked, &release})
    EXPECT_EQ(run(*program, use_as_pointers2, over(cells), a, b, wide), "");
}

TEST_F(Checks, NeighboursAreOneBlockAway) {
  EXPECT_EQ(check(copy_neighbour2, over(leaf), other, next, 1, -1), "");
  EXPECT_EQ(check(copy_neighbour2, over(leaf), other, next, 0, 2),
            "kernel checks.copy_neighbour2: field 'other' on grid.pointer[4,4].dense[4,4]: neighbour_data() "
            "of the block "
            "at (4, 8) takes offsets from -1 to 1, not (0, 2)");
  EXPECT_EQ(read(next, 4, 8), 1);
}

TEST_F(Checks, NeighbourDataNeedsANeighbourTableWithAndWithoutChecks) {
  Tree flat(device, {.name = "flat"});
  Node cells = flat.root().dense({4, 4}).dense({2, 2});
  Field<int> a = cells.place<int>("a"), b = cells.place<int>("b");
  for (Program* program : {&checked, &release}) {
    EXPECT_EQ(run(*program, copy_neighbour2, over(cells), a, b, 0, 1),
              "kernel checks.copy_neighbour2: field 'a' on flat.dense[4,4].dense[2,2]: neighbour_data() "
              "needs a node "
              "right below a pointer node");
    EXPECT_EQ(code, ErrorCode::kInvalidArgument);
  }
}

TEST_F(Checks, DataNeedsAFieldOfTheBlockWithAndWithoutChecks) {
  Tree apart(device, {.name = "apart"});
  Node far = apart.root().pointer({4, 4}).dense({4, 4}), flat = apart.root().dense({4, 4}).dense({4, 4});
  Field<int> x = far.place<int>("x"), z = flat.place<int>("z");
  for (Program* program : {&checked, &release}) {
    EXPECT_EQ(run(*program, copy_value2, over(leaf), x, next, 0, int64_t{0}),
              "kernel checks.copy_value2: field 'x' on apart.pointer[4,4].dense[4,4]: data() needs a field "
              "on the node "
              "looped over, grid.pointer[4,4].dense[4,4], or beside it");
    EXPECT_EQ(
        run(*program, copy_neighbour2, over(flat), x, z, 0, 0),
        "kernel checks.copy_neighbour2: field 'x' on apart.pointer[4,4].dense[4,4]: data() needs a field "
        "on the node looped over, apart.dense[4,4].dense[4,4], or beside it");
  }
}

TEST_F(Checks, DataNeedsValuesSideBySideWithAndWithoutChecks) {
  Tree structs(device, {.name = "structs"});
  Node cells = structs.root().pointer({4, 4}).dense({4, 4}).layout(CellLayout::kArrayOfStructs);
  Field<int> a = cells.place<int>("a");
  cells.place<double>("b");
  Node plain = structs.root().pointer({4, 4});
  Field<int> on_pointer = plain.place<int>("on_pointer"), c = structs.root().dense({4, 4}).place<int>("c");
  wait(cells.activate({{0, 0, 0}}));
  const std::string why = "values side by side, not those of a pointer node or an array of structs";
  for (Program* program : {&checked, &release}) {
    EXPECT_EQ(run(*program, copy_value2, over(plain), on_pointer, c, 0, int64_t{0}),
              "kernel checks.copy_value2: field 'on_pointer' on structs.pointer[4,4]: data() needs " + why);
    try {
      program->launch(copy_value2, over(cells), a, a, 0, int64_t{0});
      ADD_FAILURE() << "it was launched";
    } catch (const Error& e) {
      EXPECT_EQ(std::string(e.what()),
                "kernel checks.copy_value2: it writes field 'a' on structs.pointer[4,4].dense[4,4] by "
                "data(), which needs " +
                    why);
    }
  }
}

TEST_F(Checks, AnIndexPastAViewNamesArgumentAndSize) {
  const std::vector<int> from{1, 2, 3, 4};
  std::vector<int> to(8, 9);
  const InOut<int> few{to.data(), 4};
  EXPECT_EQ(check(shift_view, range(4), from, to, 4), "");
  EXPECT_EQ(to, (std::vector<int>{9, 9, 9, 9, 1, 2, 3, 4}));
  EXPECT_EQ(check(shift_view, range(4), from, few, 1),
            "kernel checks.shift_view: argument 3: index 4 is not in the view, which has items [0, 4)");
  EXPECT_EQ(to, (std::vector<int>{9, 1, 2, 3, 1, 2, 3, 4})) << "the write past the end was dropped";
  EXPECT_EQ(check(shift_view, range(1), from, few, -1),
            "kernel checks.shift_view: argument 3: index -1 is not in the view, which has items [0, 4)");
  EXPECT_EQ(check(shift_view, range(5), from, to, 0),
            "kernel checks.shift_view: argument 1: index 4 is not in the view, which has items [0, 4)");
  EXPECT_EQ(to, (std::vector<int>{1, 2, 3, 4, 0, 2, 3, 4})) << "the read past the end gave zero";
  EXPECT_EQ(run(release, shift_view, range(4), from, few, 0), "");
}

TEST_F(Checks, ABufferIsAViewOfAllOfIt) {
  const IntrusivePtr<Buffer> buffer = device->reserve(1 << 20, 64);
  const auto items = static_cast<int64_t>(buffer->size_bytes() / sizeof(double));
  EXPECT_EQ(check(fill_view, range(items), 3, *buffer), "");
  double last = 0;
  device->wait_copy(&last, buffer->as<double>() + items - 1, sizeof last);
  EXPECT_EQ(last, 3.0);
  EXPECT_EQ(check(fill_view, range(items, items + 1), 3, *buffer),
            "kernel checks.fill_view: argument 2: index " + std::to_string(items) +
                " is not in the view, which has items [0, " + std::to_string(items) + ")");
}

TEST_F(Checks, AnErrorSkipsWhatWasQueuedBehindItAndNothingElse) {
  write(now, 4, 8);
  int out = 0;
  auto bad = checked.launch(read_star2, over(leaf), StarStep{now, next}, 5, 5);
  auto behind = launch_and_wait(checked, walk2, range(1), now, 4, 8, inout(out));
  wait(behind);
  ASSERT_TRUE(behind.is_error());
  EXPECT_STREQ(behind.error().what(), bad.error().what());
  EXPECT_EQ(out, 0);
  device->default_stream().clear_error();
  EXPECT_EQ(read(now, 4, 8), 5);
}

TEST(ChecksOnThreads, ReportOneOfManyErrorsWhole) {
  auto device = Device::cpu(4);
  Program program(device, kChecks);
  Tree tree(device);
  Node leaf = tree.root().pointer({64, 64}).dense({4, 4});
  Field<int> now = leaf.place<int>("now"), next = leaf.place<int>("next");
  std::vector<std::array<int32_t, 3>> all;
  for (int i = 0; i < 64 * 64; ++i) all.push_back({i / 64 * 4, i % 64 * 4, 0});
  wait(leaf.activate(all));
  for (int round = 0; round < 5; ++round) {
    auto done = program.launch(read_star2, over(leaf), StarStep{now, next}, 7, -7);
    wait(done);
    ASSERT_TRUE(done.is_error());
    int row = -1, column = -1;
    ASSERT_EQ(
        std::sscanf(
            done.error().what(),
            "kernel checks.read_star2: field 'now' on tree.pointer[64,64].dense[4,4]: cell (%d, %d) reads at "
            "offset (7, -7), beyond the Star<1>",
            &row, &column),
        2)
        << done.error().what();
    EXPECT_TRUE(row >= 0 && row < 256 && column >= 0 && column < 256);
    device->default_stream().clear_error();
  }
}

}  // namespace
}  // namespace coppice
