// Values of a tree on the host, waiting, and coordinates by axis.
#include "sparse/read_back.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/math.h"
#include "heat.kernels.h"
#include "sparse/program.h"
#include "tests/sparse/test_devices.h"

namespace coppice {
namespace {

using HostCoord = detail::HostCoord;

struct ReadBack : ::testing::Test {
  IntrusivePtr<Device> device = cpu_or_test_device(2);
  Program program{device};
};

TEST_F(ReadBack, ABoxIsReadWithItsLastAxisFastestAndZerosWhereNothingIsActive) {
  Tree tree(device, {.origin = {-8, -8}});
  Node leaf = tree.root().pointer({8, 4}).dense({2, 4});
  Field<int> x = leaf.place<int>("x");
  leaf.activate({HostCoord{-2, 0, 0}});
  program.launch(set_cells2, over(leaf), x);
  EXPECT_EQ(wait_read(x, {-3, 2}, {1, 5}),  // rows -3, -2, -1, 0 of columns 2, 3, 4; active: -2..-1 x 0..3
            (std::vector<int>{0, 0, 0, -1998, -1997, 0, -998, -997, 0, 0, 0, 0}));
  EXPECT_EQ(wait_read(x, {-2, 3}), -1997);
  EXPECT_EQ(leaf.wait_num_active_blocks(), 1u) << "a read activated a cell";
}

TEST_F(ReadBack, OutsideTheTreeEverythingIsZero) {
  Tree tree(device);
  Node leaf = tree.root().dense({4, 4});
  Field<int> x = leaf.place<int>("x");
  program.launch(set_cells2, over(leaf), x);
  EXPECT_EQ(wait_read(x, {3, 2}, {5, 5}), (std::vector<int>{3002, 3003, 0, 0, 0, 0}));
  EXPECT_EQ(wait_read(x, {-1, 3}), 0);
}

// Seen to fail when every piece began at the box's first cell.
TEST_F(ReadBack, ABoxLargerThanWhatIsCopiedAtOnceIsReadWhole) {
  Tree tree(device, {.origin = {-10, 0}});
  Node leaf = tree.root().dense({999, 600});  // 2.3 MiB, of which pieces of 1 MiB end within rows
  Field<int> x = leaf.place<int>("x");
  program.launch(set_cells2, over(leaf), x);
  const std::vector<int> all = wait_read(x, {-10, 0}, {989, 600});
  for (int i = 0; i < 999; ++i) {
    for (int j = 0; j < 600; ++j) ASSERT_EQ(all[600 * i + j], 1000 * (i - 10) + j);
  }
}

TEST_F(ReadBack, FieldsOfPointerNodesAndOfBitmaskedOnesAreReadLikewise) {
  Tree tree(device);
  Node outer = tree.root().pointer({4, 4});
  Field<int> coarse = outer.place<int>("coarse");
  Node leaf = outer.bitmasked({2, 2});
  leaf.layout(CellLayout::kArrayOfStructs);
  Field<int> pad = leaf.place<int>("pad"), fine = leaf.place<int>("fine");
  leaf.activate({HostCoord{3, 5, 0}, HostCoord{2, 4, 0}});
  program.launch(set_cells2, over(leaf), fine);
  program.launch(set_cells2, over(outer), coarse);
  EXPECT_EQ(wait_read(fine, {2, 4}, {4, 6}), (std::vector<int>{2004, 0, 0, 3005}));
  EXPECT_EQ(wait_read(pad, {2, 4}, {4, 6}), (std::vector<int>{0, 0, 0, 0}));
  EXPECT_EQ(wait_read(coarse, {0, 1}, {2, 3}), (std::vector<int>{0, 0, 0, 1002}));
}

TEST_F(ReadBack, ACellKnowsItsCoordinateByAxisInEveryDimension) {
  Tree one(device, {.origin = {-4}}), two(device, {.origin = {-4, 8}}),
      three(device, {.origin = {-4, 8, 100}});
  Node leaf1 = one.root().dense({16}), leaf2 = two.root().dense({16, 16}),
       leaf3 = three.root().dense({16, 16, 16});
  Field<Vec3i> x1 = leaf1.place<Vec3i>("x"), x2 = leaf2.place<Vec3i>("x"), x3 = leaf3.place<Vec3i>("x");
  program.launch(store_axes1, over(leaf1), x1);
  program.launch(store_axes2, over(leaf2), x2);
  program.launch(store_axes3, over(leaf3), x3);
  EXPECT_EQ(wait_read(x1, {-3}), Vec3i(-3, 0, 0));
  EXPECT_EQ(wait_read(x2, {-3, 20}), Vec3i(-3, 20, 0));
  EXPECT_EQ(wait_read(x3, {-3, 20, 107}), Vec3i(-3, 20, 107));
}

TEST_F(ReadBack, AsManyCoordinatesAreGivenAsTheTreeHasDimensions) {
  Tree tree(device, {.name = "wave"}), line(device, {.name = "line"});
  const Field<int> x = tree.root().dense({4, 4}).place<int>("x"), y = line.root().dense({4}).place<int>("y");
  const auto refused = [](const auto& read) -> std::string {
    try {
      read();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "read";
  };
  const std::string three = "3 coordinates given, tree 'wave' has 2 dimensions";
  EXPECT_EQ(refused([&] { wait_read(x, {1, 2, 3}); }), three);
  EXPECT_EQ(refused([&] { wait_read(x, {1, 2, 3}, {4, 4}); }), three);
  EXPECT_EQ(refused([&] { wait_read(x, {1, 2}, {4, 4, 4}); }), three);
  EXPECT_EQ(refused([&] { wait_read(x, {1}); }), "1 coordinate given, tree 'wave' has 2 dimensions");
  EXPECT_EQ(refused([&] { wait_read(y, {1, 2}); }), "2 coordinates given, tree 'line' has 1 dimension");
  EXPECT_EQ(refused([&] { wait_read(x, {1, 2}), wait_read(y, {1}); }), "read");
  EXPECT_EQ(refused([&] { wait_read(x, HostCoord{1, 2, 0}); }), "read") << "a whole array fits every tree";
}

TEST_F(ReadBack, AnEmptyBoxIsEmptyAndANegativeOneIsAnError) {
  Tree tree(device, {.name = "plane"});
  Field<int> x = tree.root().dense({4, 4}).place<int>("x");
  EXPECT_TRUE(wait_read(x, {1, 1}, {1, 3}).empty());
  try {
    wait_read(x, {0, 2}, {4, 1});
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_EQ(error.message(), "tree 'plane': a box to read ends at 1 of axis 1, before it begins, at 2");
  }
}

TEST_F(ReadBack, WaitingThrowsTheErrorOfTheFirstLaunchThatFailed) {
  Tree tree(device, {.name = "plane"});
  Node leaf = tree.root().pointer({2, 2}).dense({4, 4});
  Field<int> x = leaf.place<int>("x");
  leaf.activate({HostCoord{0, 0, 0}});
  program.wait();
  leaf.activate({HostCoord{0, 9, 0}});
  program.launch(set_cells2, over(leaf), x);
  for (const auto& blocks : {std::function<void()>([&] { program.wait(); }), std::function<void()>([&] {
                               wait_read(x, {0, 0});
                             })}) {
    try {
      blocks();
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kOutOfRange);
      EXPECT_NE(error.message().find("plane"), std::string::npos) << error.message();
    }
  }
  device->default_stream().clear_error();
  program.wait();
  EXPECT_EQ(wait_read(x, {1, 1}), 0) << "a launch behind the failed one ran";
}

}  // namespace
}  // namespace coppice
