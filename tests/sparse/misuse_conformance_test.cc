// Misuse in kernels that no compiler sees and that once was silent: coordinates of another number of axes
// than the tree has, own cells of fields that have none. Each is one clear Error before anything runs.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>

#include "tests/sparse/misuse.h"

namespace coppice {
namespace {

class Misuse : public MisuseTest {
 protected:
  // Without the place in the kernel file, which must be there.
  template <class... Arguments>
  std::string refusal_in_file(Arguments&&... arguments) {
    const std::string words = refusal(std::forward<Arguments>(arguments)...);
    std::smatch parts;
    static const std::regex place("(kernel [^ ]+ )[^ ]*misuse\\.kernels\\.cc:[0-9]+: (.*)");
    if (std::regex_match(words, parts, place)) return parts[1].str() + parts[2].str();
    return words.empty() ? "nothing is refused" : "no place: " + words;
  }
};

// Seen before: `w.add(i, {7}, 1)` on a tree of two dimensions wrote to (0, 7).
#define COPPICE_TEST_REFUSED(name, loop)                                                                \
  EXPECT_EQ(refusal_in_file(read_at_##name, loop, p.x, inout(out)), of_x("read_at_" #name));            \
  EXPECT_EQ(refusal_in_file(add_##name, loop, p.x), of_x("add_" #name));                                \
  EXPECT_EQ(refusal_in_file(set_##name, loop, p.x), of_x("set_" #name));                                \
  EXPECT_EQ(refusal_in_file(activate_##name, loop, p.leaf.topology()), of_leaf("activate_" #name));     \
  EXPECT_EQ(refusal_in_file(deactivate_##name, loop, p.leaf.topology()), of_leaf("deactivate_" #name)); \
  EXPECT_EQ(refusal_in_file(is_active_##name, loop, p.leaf.topology(), inout(out)),                     \
            of_leaf("is_active_" #name));                                                               \
  EXPECT_EQ(refusal_in_file(element_##name, loop, p.list, inout(out)), of_list("element_" #name));      \
  EXPECT_EQ(refusal_in_file(length_##name, loop, p.list, inout(length)), of_list("length_" #name));     \
  EXPECT_EQ(refusal_in_file(append_##name, loop, p.list), of_list("append_" #name));                    \
  EXPECT_EQ(refusal_in_file(set_element_##name, loop, p.list), of_list("set_element_" #name));          \
  EXPECT_EQ(refusal_in_file(appended_##name, loop, p.list, inout(out)), of_list("appended_" #name));    \
  EXPECT_EQ(refusal_in_file(appended_length_##name, loop, p.list, inout(length)),                       \
            of_list("appended_length_" #name));                                                         \
  EXPECT_EQ(refusal_in_file(clear_##name, loop, p.list), of_list("clear_" #name))

TEST_P(Misuse, ACoordinateHasAsManyNumbersAsTheTreeHasAxes) {
  Plane p(device);
  run(append_item2, range(1), p.list);
  int out = 0;
  uint32_t length = 0;
  std::string given = "1 coordinate given";
  const auto line = [&](const std::string& kernel, const std::string& of) {
    return "kernel misuse." + kernel + ": " + of + ": " + given + ", tree 'plane' has 2 dimensions";
  };
  const auto of_x = [&](const std::string& k) { return line(k, "field 'x' on " + p.leaf.path()); };
  const auto of_list = [&](const std::string& k) { return line(k, "field 'list' on " + p.lists.path()); };
  const auto of_leaf = [&](const std::string& k) { return line(k, p.leaf.path()); };
  COPPICE_TEST_REFUSED(item1, range(2));
  COPPICE_TEST_REFUSED(team1, range(2));
  COPPICE_TEST_REFUSED(cell1, over(p.leaf));
  COPPICE_TEST_REFUSED(block1, over(p.leaf));
  COPPICE_TEST_REFUSED(shared_block1, over(p.leaf));
  COPPICE_TEST_REFUSED(entry1, over(p.lists));
  given = "3 coordinates given";
  COPPICE_TEST_REFUSED(item3, range(2));
  EXPECT_EQ(wait_read(p.x, {0, 0}, {16, 16}), std::vector<int>(256, 0)) << "nothing is half-done";
  EXPECT_EQ(p.leaf.wait_num_active_cells(), 2u);
  EXPECT_EQ(wait_read_list(p.list, {3, 1}), std::vector<int>{1});
}

TEST_P(Misuse, TheRightNumberOfCoordinatesDoesWhatItSays) {
  Plane p(device);
  int out = 0;
  uint32_t length = 0;
  run(set_item2, range(1), p.x);
  run(add_item2, range(1), p.x);
  run(read_at_item2, range(1), p.x, inout(out));
  EXPECT_EQ(out, 2);
  run(is_active_item2, range(1), p.leaf.topology(), inout(out));
  EXPECT_EQ(out, 1);
  run(deactivate_item2, range(1), p.leaf.topology());
  run(is_active_item2, range(1), p.leaf.topology(), inout(out));
  EXPECT_EQ(out, 0);
  run(activate_item2, range(1), p.leaf.topology());
  EXPECT_TRUE(p.leaf.wait_is_active({3, 1}));
  run(append_item2, range(1), p.list);
  run(set_element_item2, range(1), p.list);
  run(element_item2, range(1), p.list, inout(out));
  run(length_item2, range(1), p.list, inout(length));
  EXPECT_EQ(out, 1);
  EXPECT_EQ(length, 3u);
  run(appended_item2, range(1), p.list, inout(out));
  run(appended_length_item2, range(1), p.list, inout(length));
  EXPECT_EQ(out, 1);
  EXPECT_EQ(length, 3u);
  run(clear_item2, range(1), p.list);
  EXPECT_EQ(p.lists.wait_length({3, 1}), 0u);
}

TEST_P(Misuse, TheLineIsThatOfTheKernelFile) {
  std::ifstream file(COPPICE_DOCS "/../tests/sparse/misuse.kernels.cc");
  ASSERT_TRUE(file);
  int number = 0, wrong = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (line.find("the wrong one") != line.npos) wrong = number;
  }
  Plane p(device);
  EXPECT_NE(
      refusal(add_where_told, range(1), p.x, 0).find("misuse.kernels.cc:" + std::to_string(wrong) + ": "),
      std::string::npos)
      << refusal(add_where_told, range(1), p.x, 0);
}

// Where handles meet in one function: the wrong one is told.
TEST_P(Misuse, AHandleInAFunctionOrAnArrayIsTold) {
  Plane p(device);
  Tree line(device, {.name = "line"});
  const Field<int> right = line.root().dense({16}).place<int>("right");
  std::vector<int> which{0, 1, 2};
  for (const std::string& words : {refusal(add_in_function, range(1), right, p.x, 3),
                                   refusal(add_to_either, range(1), right, p.x, 3, which)}) {
    EXPECT_NE(words.find("1 coordinate given, tree 'plane' has 2 dimensions"), std::string::npos) << words;
  }
  EXPECT_EQ(wait_read(p.x, {0, 3}), 0);
  EXPECT_EQ(refusal(add_in_function, range(1), right, right, 10), "");
  EXPECT_EQ(wait_read(right, {10}) + wait_read(right, {11}), 2);
}

// Seen before: refused, as soon as an array hid a handle.
TEST_P(Misuse, WhatIsNeverRunIsNoMisuse) {
  Plane p(device);
  Tree line(device, {.name = "line"});
  const Node node = line.root().dense({16});
  const Field<int> a = node.place<int>("a"), b = node.place<int>("b");
  std::vector<int> which{1};
  run(activate_item2, range(1), p.leaf.topology());
  EXPECT_EQ(refusal(add_in_axes, range(1), a, b, p.x, which), "");
  EXPECT_EQ(wait_read(b, {3}) + wait_read(p.x, {3, 1}), 2);
}

// Seen before: they left a status, and every later launch was skipped without a word.
TEST_P(Misuse, KernelsThatOnlyAskHarmNoLaterLaunch) {
  Plane p(device);
  Tree line(device, {.name = "line"});
  Node right = line.root().pointer({4}).dense({4}), lists = line.root().dense({16}).dynamic(64, 8);
  const Field<int> list = lists.place<int>("list");
  right.place<int>("right");
  std::vector<int> which{1};
  int out = 7;
  refusal(ask_either, range(1), right.topology(), p.leaf.topology(), which, inout(out));
  run(set_item2, range(1), p.x);
  EXPECT_EQ(wait_read(p.x, {3, 1}), 1);
  refusal(ask_either_list, range(1), list, p.list, which, inout(out));
  run(append_item2, range(1), p.list);
  EXPECT_EQ(wait_read_list(p.list, {3, 1}), std::vector<int>{1});
}

// Seen before: another tree's field was read at the same coordinate, a coarser node's at one that means
// another place.
TEST_P(Misuse, AnOwnCellIsOfTheNodeLoopedOverOrOneWithTheSameCells) {
  Tree tree(device, {.name = "grid"}), other(device, {.name = "other"});
  Node block = tree.root().pointer({4, 4}), leaf = block.dense({4, 4}), beside = block.bitmasked({4, 4}),
       coarse = tree.root().pointer({2, 2}).dense({8, 8}), part = tree.root().dense({8, 8});
  Field<int> y = leaf.place<int>("y"), x = leaf.place<int>("x"), z = beside.place<int>("z"),
             w = coarse.place<int>("w"), of_block = block.place<int>("of_block"), v = part.place<int>("v");
  Field<int> far = other.root().pointer({4, 4}).dense({4, 4}).place<int>("far");
  finish(leaf.activate({{5, 6}}));
  finish(beside.activate({{5, 6}}));
  finish(coarse.activate({{5, 6}}));
  finish(detail::node_of(far.tree, far.id.node).activate({{5, 6}}));
  for (const Node& node : {leaf, beside, coarse, part})
    run(number_cells2, over(node),
        node.id() == leaf.id()     ? x
        : node.id() == beside.id() ? z
        : node.id() == coarse.id() ? w
                                   : v);
  run(number_cells2, over(detail::node_of(far.tree, far.id.node)), far);
  for (const Field<int>& same : {x, z, w}) {
    run(copy_own2, over(leaf), same, y);
    EXPECT_EQ(wait_read(y, {5, 6}), 507);
    run(copy_near2, over(leaf), same, y);
    EXPECT_EQ(wait_read(y, {5, 6}), 507);
    if (same.id.field == z.id.field) continue;  // its neighbour is not active
    run(copy_next2, over(leaf), same, y);
    EXPECT_EQ(wait_read(y, {5, 6}), 508);
  }
  const auto line = [&](const std::string& kernel, const Field<int>& f, const char* name) {
    return "kernel misuse." + kernel + ": field '" + name + "' on " +
           detail::node_of(f.tree, f.id.node).path() +
           ": it has no own cell for those of grid.pointer[4,4].dense[4,4], which is looped over; ";
  };
  const std::string instead = "read it by coordinate, field.at(cell, {...})";
  const std::pair<Field<int>, const char*> others[] = {{far, "far"}, {of_block, "of_block"}, {v, "v"}};
  for (const auto& [f, name] : others) {
    EXPECT_EQ(refusal_in_file(copy_own2, over(leaf), f, y), line("copy_own2", f, name) + instead);
    EXPECT_EQ(refusal_in_file(copy_next2, over(leaf), f, y), line("copy_next2", f, name) + instead);
    EXPECT_EQ(refusal_in_file(copy_near2, over(leaf), f, y), line("copy_near2", f, name) + instead);
    EXPECT_EQ(refusal_in_file(laplace2, over(leaf), f, y), line("laplace2", f, name) + instead);
    EXPECT_EQ(refusal_in_file(sum_to_own2, over(leaf), f),
              line("sum_to_own2", f, name) + "add to it by coordinate, with an Accumulate that has no reach");
    EXPECT_EQ(refusal(copy_by_walk2, over(leaf), f, y), "") << "by coordinate";
  }
  run(copy_by_walk2, over(leaf), far, y);
  EXPECT_EQ(wait_read(y, {5, 6}), 507);
}

TEST_P(Misuse, AnElementHasTheValuesOfItsListsCellAndNoOther) {
  Tree tree(device, {.name = "grid"}), other(device, {.name = "other"});
  Node cells = tree.root().dense({4, 4}), lists = cells.dynamic(16, 4), wider = tree.root().dense({8, 8});
  Field<int> y = lists.place<int>("y"), x = cells.place<int>("x"), w = wider.place<int>("w");
  Field<int> far = other.root().dense({4, 4}).place<int>("far");
  run(number_cells2, over(cells), x);
  run(append_item2, range(1), y);
  run(copy_for_entry2, over(lists), x, y);
  EXPECT_EQ(wait_read_list(y, {3, 1}), std::vector<int>{302});
  for (const Field<int>& f : {w, far}) {
    EXPECT_NE(
        refusal(copy_for_entry2, over(lists), f, y).find(" has no own cell for those of grid.dense[4,4]"),
        std::string::npos)
        << refusal(copy_for_entry2, over(lists), f, y);
  }
}

TEST_P(Misuse, ElementsAndLengthsAreOfDynamicNodes) {
  Plane p(device);
  int out = 0;
  uint32_t length = 0;
  const std::string why = "field 'x' on " + p.leaf.path() +
                          ": it has one value per cell: lengths, and elements by index, are of fields on "
                          "dynamic nodes";
  EXPECT_EQ(refusal_in_file(element_item2, range(1), p.x, inout(out)), "kernel misuse.element_item2: " + why);
  EXPECT_EQ(refusal_in_file(length_item2, range(1), p.x, inout(length)),
            "kernel misuse.length_item2: " + why);
}

INSTANTIATE_TEST_SUITE_P(Sparse, Misuse, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace
}  // namespace coppice
