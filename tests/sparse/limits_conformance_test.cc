// Coordinates at the ends of what 32 bits have: reads, loops, stencils and topology tools there, and trees
// that would go beyond; and calls with no coordinates, and lists of none and one.
#include <limits>

#include "box_loops.kernels.h"
#include "large_containers.kernels.h"
#include "sparse/bulk_append.h"
#include "sparse/topology_tools.h"
#include "tests/sparse/misuse.h"

namespace coppice {
namespace {

constexpr int kLast = std::numeric_limits<int>::max(), kFirst = std::numeric_limits<int>::min();

class Limits : public MisuseTest {
 protected:
  // The words of an error that arrives with the async value.
  std::string words_later(const AsyncValueRef<Chain>& done) {
    wait(done);
    device->default_stream().clear_error();
    if (!done.is_error()) return "";
    EXPECT_EQ(done.error().code(), ErrorCode::kOutOfRange) << done.error().what();
    return done.error().message();
  }
  std::string frozen(const TreeOptions& options, const auto& describe) {
    return words_of([&] {
      Tree tree(device, options);
      describe(tree.root());
      tree.freeze();
    });
  }
};

// ---- descriptions

TEST_P(Limits, TreesBeyondAllCoordinatesAreRefusedInOneLine) {
  EXPECT_EQ(frozen({.name = "t"}, [](Node root) { root.pointer({1 << 30}).pointer({4}).dense({8}); }),
            "node t.pointer[1073741824].pointer[4]: more than 2^31 coordinates on an axis");
  // Below the top are 2^64 coordinates, which ended the process with a division by zero.
  EXPECT_EQ(
      frozen({.name = "t"},
             [](Node root) { root.pointer({2}).pointer({1 << 30}).pointer({1 << 30}).dense({16}); }),
      "node t.pointer[2].pointer[1073741824].pointer[1073741824]: more than 2^31 coordinates on an axis");
  // In each axis, and at either end.
  for (int axis = 0; axis < 3; ++axis) {
    TreeOptions options{.name = "t"};
    options.origin[axis] = kLast - 14;
    EXPECT_EQ(frozen(options,
                     [](Node root) {
                       root.pointer({4, 4, 4}).dense({4, 4, 4});
                     }),
              "tree 't': origin 2147483633 is not a multiple of 4 cells of t.pointer[4,4,4]");
    options.origin[axis] = kLast - 3;
    EXPECT_EQ(frozen(options,
                     [](Node root) {
                       root.pointer({4, 4, 4}).dense({4, 4, 4});
                     }),
              "node t.pointer[4,4,4].dense[4,4,4]: 16 coordinates from 2147483644 on end beyond 2^31");
    options.origin[axis] = kFirst;
    EXPECT_EQ(frozen(options, [](Node root) { root.pointer({4, 4, 4}).dense({4, 4, 4}); }), "");
  }
}

// All of the lower half, and of the upper one.
TEST_P(Limits, HalfOfAllCoordinatesAreADomain) {
  for (const int origin : {kFirst, 0}) {
    Tree tree(device, {.name = "t", .origin = {origin}});
    Node leaf = tree.root().pointer({1 << 20}).bitmasked({1 << 11});
    const int last = origin + kLast;
    finish(leaf.activate({{origin}, {last}}));
    EXPECT_TRUE(leaf.wait_is_active({origin}));
    EXPECT_TRUE(leaf.wait_is_active({last}));
    EXPECT_FALSE(leaf.wait_is_active({origin == 0 ? kFirst : 0}));
    finish(dilate(leaf, Neighbourhood::kVertices, 2));
    EXPECT_EQ(leaf.wait_num_active_cells(), 6u);
    EXPECT_TRUE(leaf.wait_is_active({last - 2}));
    finish(erode(leaf, Neighbourhood::kVertices));
    EXPECT_EQ(leaf.wait_num_active_cells(), 2u);
    EXPECT_TRUE(leaf.wait_is_active({last - 1}));
    finish(leaf.deactivate({{last - 1}, {last}}));
    EXPECT_EQ(leaf.wait_num_active_cells(), 1u);
  }
}

TEST_P(Limits, NodesOfMoreCellsThanCanBeCountedAreRefused) {
  // Their product is 2^64.
  EXPECT_EQ(frozen({.name = "t"},
                   [](Node root) {
                     root.pointer({1 << 22, 1 << 21, 1 << 21});
                   }),
            "node t.pointer[4194304,2097152,2097152]: more than 2^32 - 1 cells in one container");
  // Their bytes are.
  for (const int blocks : {1, 16, 64}) {
    const std::string words = frozen({.name = "t"}, [&](Node root) {
      root.dense({blocks, 1, 1}).dense({1024, 1024, 1024}).dense({1024, 1024, 1024}).place<int>("x");
    });
    EXPECT_NE(words.find("node t."), std::string::npos) << words;
    EXPECT_NE(words.find(" bytes are more than 2^48"), std::string::npos) << words;
  }
}

// ---- reads, writes and activations

TEST_P(Limits, NoCoordinateIsTooFarForAQuestionInAnyAxis) {
  for (int dims = 1; dims <= 3; ++dims) {
    Tree tree(device, {.name = "t"});
    Node leaf = dims == 1   ? tree.root().pointer({4}).dense({4})
                : dims == 2 ? tree.root().pointer({4, 4}).bitmasked({4, 4})
                            : tree.root().pointer({4, 4, 4}).dense({4, 4, 4});
    Node lists = dims == 1   ? tree.root().pointer({8}).dynamic(8, 4)
                 : dims == 2 ? tree.root().pointer({8, 8}).dynamic(8, 4)
                             : tree.root().pointer({8, 8, 8}).dynamic(8, 4);
    Field<int> x = leaf.place<int>("x"), list = lists.place<int>("list");
    finish(leaf.activate({std::array<int32_t, 3>{3, 0, 0}}));
    for (int axis = 0; axis < dims; ++axis) {
      for (const int far : {kFirst, kFirst + 3, -1, 16, kLast - 3, kLast}) {
        std::array<int32_t, 3> at{};
        at[axis] = far;
        EXPECT_EQ(wait_read(x, at), 0);
        EXPECT_TRUE(wait_read_list(list, at).empty());
        EXPECT_EQ(lists.wait_length(at), 0u);
        EXPECT_FALSE(leaf.wait_is_active(at));
        EXPECT_NE(words_later(leaf.activate({at})).find("1 of the coordinates are outside the domain"),
                  std::string::npos);
        if (dims == 2) {
          EXPECT_NE(words_later(leaf.deactivate({at})).find("1 of the coordinates are outside the domain"),
                    std::string::npos);
        }
        // The box's last cells are where coordinates would begin again.
        std::array<int32_t, 3> end{1, 1, 1};
        end[axis] = far == kLast ? kLast : far + 1;
        const size_t n = far == kLast ? 0 : 1;
        EXPECT_EQ(wait_read(x, at, end), std::vector<int>(n, 0));
      }
    }
    EXPECT_EQ(leaf.wait_num_active_blocks(), 1u);
  }
}

TEST_P(Limits, NoCoordinatesAreNothing) {
  Plane p(device);
  finish(p.leaf.activate(std::vector<std::array<int32_t, 3>>{}));
  finish(p.leaf.activate(static_cast<const int32_t*>(nullptr), 0));
  finish(p.leaf.deactivate(std::vector<std::array<int32_t, 3>>{}));
  finish(append(p.list, static_cast<const int32_t*>(nullptr), static_cast<const int*>(nullptr), 0));
  EXPECT_EQ(p.leaf.wait_num_active_cells(), 2u);
  EXPECT_TRUE(wait_read(p.x, {3, 1}, {3, 1}).empty());
  EXPECT_TRUE(wait_read(p.x, {3, 1}, {3, 4}).size() == 0);
  EXPECT_EQ(p.lists.wait_length({3, 1}), 0u);
}

TEST_P(Limits, ListsOfNoneAndOfOneAreAsOthers) {
  for (const int chunk : {1, 4}) {
    Tree tree(device, {.name = "t", .origin = {kLast - 15}});
    Node lists = tree.root().pointer({16}).dynamic(1, chunk);
    Field<int> list = lists.place<int>("list");
    EXPECT_EQ(lists.wait_num_active_cells(), 0u);
    std::vector<int> at{kLast};
    run(append_at1, range(1), list, at);
    EXPECT_EQ(wait_read_list(list, {kLast}), std::vector<int>{1});
    EXPECT_EQ(lists.wait_length({kLast - 1}), 0u);
    EXPECT_TRUE(lists.wait_is_active({kLast}));
    EXPECT_FALSE(lists.wait_is_active({kLast - 1}));
    EXPECT_EQ(lists.wait_num_active_cells(), 1u);
    // A second one does not fit, and the first stays.
    EXPECT_NE(refusal(append_at1, range(1), list, at), "");
    EXPECT_EQ(wait_read_list(list, {kLast}), std::vector<int>{1});
    finish(lists.deactivate({{kLast}, {kLast - 1}}));
    EXPECT_EQ(lists.wait_num_active_cells(), 0u);
    EXPECT_TRUE(wait_read_list(list, {kLast}).empty());
    run(append_at1, range(1), list, at);
    EXPECT_EQ(wait_read_list(list, {kLast}), std::vector<int>{1});
  }
}

// ---- loops and stencils

TEST_P(Limits, BoxesAndStencilsAtTheEndsOfAllCoordinates) {
  for (const bool is_masked : {false, true}) {
    for (const int origin : {kFirst, kLast - 15}) {
      SCOPED_TRACE(origin);
      Tree tree(device, {.name = "t", .origin = {origin}});
      Node block = tree.root().pointer({4}), leaf = is_masked ? block.bitmasked({4}) : block.dense({4});
      Field<int> x = leaf.place<int>("x"), y = leaf.place<int>("y"), s = leaf.place<int>("s");
      const int last = origin + 15, end = last == kLast ? kLast : last + 1, n = end - origin;
      run(write_large1, over_box(leaf, {origin}, {end}), x, y);
      EXPECT_EQ(wait_read(y, {origin}, {end}), std::vector<int>(n, 1));
      EXPECT_EQ(leaf.wait_num_active_cells(), static_cast<uint64_t>(is_masked ? n : 16));
      run(sum_near1, over_box(leaf, {origin}, {end}), y, s);
      std::vector<int> near(n, 2);
      near.front() = near.back() = 1;
      EXPECT_EQ(wait_read(s, {origin}, {end}), near);
      run(near_the_rim1, over_box(leaf, {origin}, {end}), y, s);
      EXPECT_EQ(wait_read(s, {origin}), 2);
      for (const int beyond : {origin == kFirst ? kLast : origin - 1, last == kLast ? kFirst : last + 1}) {
        try {
          over_box(leaf, {std::min(beyond, origin)}, {end});
          EXPECT_GE(beyond, origin) << "no error";
        } catch (const Error& e) {
          EXPECT_EQ(e.code(), ErrorCode::kOutOfRange);
        }
      }
      run(write_large1, over_box(leaf, {kLast}, {kLast}), x, y);
      run(write_large1, over_box(leaf, {kLast}, {kFirst}), x, y);
      run(write_large1, over_box(leaf, {kFirst}, {kFirst}), x, y);
    }
  }
}

// ---- topology tools

TEST_P(Limits, ToolsStopAtTheEndsOfAllCoordinatesInEachAxis) {
  for (const bool is_masked : {true, false}) {
    for (const auto& origin : {std::array{kFirst, kLast - 15}, std::array{kLast - 15, kFirst}}) {
      Tree tree(device, {.name = "t", .origin = {origin[0], origin[1]}});
      Node block = tree.root().pointer({4, 4}), leaf = is_masked ? block.bitmasked({4, 4}) : block;
      if (!is_masked) block.dense({4, 4});
      // A pointer node is named by the coordinates of its own cells.
      const int size = is_masked ? 1 : 4, i = origin[0] / size, j = origin[1] / size, last = 16 / size - 1;
      finish(leaf.activate({{i, j}, {i + last, j + last}}));
      finish(dilate(leaf, Neighbourhood::kVertices));
      EXPECT_EQ(leaf.wait_num_active_cells(), 8u) << "two corners";
      finish(erode(leaf, Neighbourhood::kFaces));
      EXPECT_EQ(leaf.wait_num_active_cells(), 0u) << "what is outside is inactive";
    }
  }
}

// As an activation with a coordinate outside: an error that says how many, and nothing of the call is done.
TEST_P(Limits, CellsOutsideTheOtherDomainLeaveATreeAsItWas) {
  for (const int shift : {0, 1 << 20}) {
    Tree from(device, {.name = "from", .origin = {-8, 0}}), to(device, {.name = "to", .origin = {shift, 0}});
    Node source = from.root().pointer({4, 4}).bitmasked({4, 4}),
         target = to.root().pointer({2, 2}).bitmasked({4, 4});
    Field<int> x = target.place<int>("x");
    finish(source.activate({{-1, 0}, {-8, 15}, {1, 1}, {2, 9}}));
    finish(target.activate({{shift + 5, 5}, {shift + 1, 1}}));
    const std::array<int32_t, 2> kept{shift + 5, 5};
    std::vector<int> coords{0, kept[0], kept[1]};
    const std::string outside =
        fmt::format(": {} of the active cells of {} are outside the domain [{}, {}) x [0, 8) of {}",
                    shift == 0 ? 3 : 4, source.path(), shift, shift + 8, target.path());
    EXPECT_EQ(words_later(copy_topology(source, target)), "copy_topology" + outside);
    EXPECT_EQ(words_later(merge_topology(source, target)), "merge_topology" + outside);
    EXPECT_EQ(target.wait_num_active_cells(), 2u);
    EXPECT_TRUE(target.wait_is_active({shift + 5, 5})) << "it does not go";
    EXPECT_FALSE(target.wait_is_active({2, 1}));
    // These only leave fewer, and need no cell of the other domain.
    finish(subtract_topology(source, target));
    EXPECT_EQ(target.wait_num_active_cells(), shift == 0 ? 1u : 2u);
    finish(intersect_topology(source, target));
    EXPECT_EQ(target.wait_num_active_cells(), 0u);
    // Only active cells count.
    finish(source.deactivate({{-1, 0}, {-8, 15}, {2, 9}}));
    if (shift == 0) {
      finish(copy_topology(source, target));
      EXPECT_TRUE(target.wait_is_active({1, 1}));
    }
  }
}

TEST_P(Limits, DenseLeavesOutsideTheOtherDomainLeaveATreeAsItWas) {
  Tree from(device, {.name = "from"}), to(device, {.name = "to"});
  Node source = from.root().pointer({4}).dense({4}), target = to.root().pointer({5}).dense({3});
  finish(source.activate({{12}}));  // 12 to 15, of which the other has but 12 to 14
  finish(target.activate({{1}}));
  EXPECT_EQ(words_later(copy_topology(source, target)),
            "copy_topology: 1 of the active cells of from.pointer[4].dense[4] are outside the domain [0, 15) "
            "of to.pointer[5].dense[3]");
  EXPECT_TRUE(target.wait_is_active({1}));
  EXPECT_EQ(target.wait_num_active_blocks(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Sparse, Limits, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace
}  // namespace coppice
