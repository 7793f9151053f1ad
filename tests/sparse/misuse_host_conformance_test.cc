// Misuse by the host that once was silent: trees whose nodes do not fit together or end beyond all
// coordinates, calls with too few numbers, nodes of other devices. Each is one clear Error, and does nothing.
#include <gtest/gtest.h>

#include <limits>

#include "gpu/stream_primitives.h"
#include "sparse/bulk_append.h"
#include "sparse/program_ptx.h"
#include "sparse/topology_tools.h"
#include "tests/sparse/misuse.h"
#include "tests/sparse/traced.h"

namespace coppice {
namespace {

constexpr int kLast = std::numeric_limits<int>::max(), kFirst = std::numeric_limits<int>::min();

class HostMisuse : public MisuseTest {};

// ---- descriptions

TEST_P(HostMisuse, ExtentsWithoutAxesAreOfAllOfTheTreesAxes) {
  const auto described = [&](const auto& describe) {
    return words_of([&] {
      Tree tree(device, {.name = "t"});
      describe(tree.root());
      tree.freeze();
    });
  };
  const std::string names = "; a node on fewer or other axes names them, as in dense({Axis::i}, {8})";
  EXPECT_EQ(described([](Node root) {
              root.pointer({4, 4}).dense({8});
            }),
            "node t.pointer[4,4].dense[8]: 1 extent given, t.pointer[4,4] divides 2 axes (i, j)" + names);
  EXPECT_EQ(described([](Node root) {
              root.pointer({4}).bitmasked({8, 8});
            }),
            "node t.pointer[4].bitmasked[8,8]: 2 extents given, t.pointer[4] divides 1 axis (i)" + names);
  EXPECT_EQ(described([](Node root) { root.dense({Axis::j}, {4}).pointer({8}); }),
            "node t.dense[4].pointer[8]: 1 extent given, t.dense[4] divides 1 axis (j)" + names);
  EXPECT_EQ(described([](Node root) {
              root.dense({8}), root.pointer({4, 4});
            }),
            "node t.pointer[4,4]: 2 extents given, t.dense[8] has 1" + names);
  const Axis i = Axis::i, j = Axis::j, k = Axis::k;
  for (int parent = 1; parent <= 3; ++parent) {
    for (int child = 1; child <= 3; ++child) {
      const auto with = [](Node above, int n) {
        return n == 1 ? above.pointer({2}) : n == 2 ? above.pointer({2, 2}) : above.pointer({2, 2, 2});
      };
      EXPECT_EQ(described([&](Node root) { with(with(root, parent), child); }).empty(), parent == child)
          << parent << " above " << child;
    }
  }
  // Nodes that name their axes may have any.
  EXPECT_EQ(described([&](Node root) { root.pointer({4, 4}).dense({i}, {8}); }), "");
  EXPECT_EQ(described([&](Node root) { root.pointer({4, 4}).dense({k}, {8}); }), "");
  EXPECT_EQ(described([&](Node root) { root.dense({i}, {4}).dense({j}, {4}).dense({8, 8}); }), "");
  EXPECT_EQ(described([&](Node root) { root.dense({i}, {4}), root.pointer({4, 4}).dense({2, 2}); }), "");
}

// Seen before: cells of such a tree had coordinates that began again at the lowest.
TEST_P(HostMisuse, ATreeEndsWhereCoordinatesDo) {
  const auto frozen = [&](int origin) {
    return words_of([&] {
      Tree tree(device, {.name = "t", .origin = {origin}});
      tree.root().pointer({4}).dense({4});
      tree.freeze();
    });
  };
  EXPECT_EQ(frozen(kLast - 11),
            "node t.pointer[4].dense[4]: 16 coordinates from 2147483636 on end beyond 2^31");
  EXPECT_EQ(frozen(kLast - 15), "");
  EXPECT_EQ(frozen(kFirst), "");
}

// ---- the rim of all coordinates

TEST_P(HostMisuse, TreesAtTheRimOfAllCoordinatesAreAsOthers) {
  for (const int origin : {kFirst, kLast - 15, 0}) {
    Tree tree(device, {.name = "t", .origin = {origin}});
    SCOPED_TRACE(origin);
    Node block = tree.root().pointer({4}), leaf = block.dense({4}),
         lists = tree.root().dense({16}).dynamic(8, 4);
    Field<int> x = leaf.place<int>("x"), y = leaf.place<int>("y"), s = leaf.place<int>("s"),
               list = lists.place<int>("list");
    const int last = origin + 15;
    std::vector<int> rim{origin, last};
    run(set_at1, range(2), x, rim);
    run(append_at1, range(2), list, rim);
    EXPECT_EQ(wait_read(x, {origin}), 1);
    EXPECT_EQ(wait_read(x, {last}), 2);
    EXPECT_EQ(wait_read_list(list, {last}), std::vector<int>{2});
    run(near_the_rim1, over(leaf), x, y);
    EXPECT_EQ(wait_read(y, {origin + 2}), 1) << "reads the cell two before it";
    EXPECT_EQ(wait_read(y, {last - 2}), 2);
    EXPECT_EQ(wait_read(y, {last}), 2) << "there is nothing beyond";
    EXPECT_TRUE(leaf.wait_is_active({last}));
    for (const int outside : {origin == kFirst ? kLast : origin - 1, last == kLast ? kFirst : last + 1}) {
      EXPECT_EQ(wait_read(x, {outside}), 0);
      EXPECT_FALSE(leaf.wait_is_active({outside}));
      std::vector<int> at{outside};
      EXPECT_NE(refusal(set_at1, range(1), x, at).find("is outside the domain"), std::string::npos);
      EXPECT_NE(refusal(append_at1, range(1), list, at).find("is outside the domain"), std::string::npos);
      const AsyncValueRef<Chain> done = leaf.activate({{outside}});
      EXPECT_THROW(finish(done), Error);
      device->default_stream().clear_error();
    }
    finish(leaf.activate({{last - 4}, {origin + 4}}));
    EXPECT_EQ(leaf.wait_num_active_blocks(), 4u);
  }
}

// Each cell adds to itself and to the one beside it, across the end of all coordinates.
TEST_P(HostMisuse, SumsBeyondTheRimAreErrors) {
  for (const int origin : {kFirst, kLast - 15}) {
    Tree tree(device, {.origin = {origin}});
    Node leaf = tree.root().pointer({4}).dense({4});
    Field<int> s = leaf.place<int>("s");
    finish(leaf.activate({{origin}, {origin + 4}, {origin + 8}, {origin + 12}}));
    const std::string words = refusal(scatter_at_rim1, over(leaf), s);
    EXPECT_NE(words.find("is outside the domain"), std::string::npos) << words;
  }
}

// ---- calls of the host

TEST_P(HostMisuse, TheHostGivesAsManyNumbersAsTheTreeHasAxes) {
  Plane p(device);
  const std::string one = "1 coordinate given, tree 'plane' has 2 dimensions",
                    three = "3 coordinates given, tree 'plane' has 2 dimensions";
  EXPECT_EQ(words_of([&] { p.leaf.activate({{7}}); }), one);
  EXPECT_EQ(words_of([&] { p.leaf.activate({{7, 1}, {1, 2, 3}}); }), three);
  EXPECT_EQ(words_of([&] { p.leaf.deactivate({{7}}); }), one);
  EXPECT_EQ(words_of([&] { p.leaf.wait_is_active({7}); }), one);
  EXPECT_EQ(words_of([&] { p.lists.wait_length({7, 1, 3}); }), three);
  EXPECT_EQ(words_of([&] { wait_read(p.x, {7}); }), one);
  EXPECT_EQ(words_of([&] { wait_read_list(p.list, {7}); }), one);
  EXPECT_EQ(p.leaf.wait_num_active_cells(), 2u);
}

TEST_P(HostMisuse, WhatHasNoValuesOrCellsIsNotReadLoopedOverOrActivated) {
  Plane p(device);
  const Field<int> none;
  EXPECT_EQ(words_of([&] { wait_read(none, {1, 2}); }), "the field to read is none: Node::place() makes one");
  EXPECT_EQ(words_of([&] {
              wait_read(p.leaf.topology(), {1, 2});
            }),
            p.leaf.path() + ": a node's topology has no values to read");
  EXPECT_EQ(words_of([&] {
              wait_read_list(p.lists.topology(), {3, 1});
            }),
            p.lists.path() + ": a node's topology has no values to read");
  EXPECT_EQ(words_of([&] {
              wait_read(p.list, {1, 2});
            }),
            p.lists.path() + ": its fields have lists of values: wait_read_list() reads one");
  EXPECT_EQ(words_of([&] {
              wait_read(p.x, {kFirst, kFirst}, {kLast, kLast});
            }),
            "tree 'plane': a box to read has 4294967295 x 4294967295 x 1 cells, at most 2^40");
  EXPECT_EQ(refusal(number_cells2, over(p.tree.root()), p.x),
            "kernel misuse.number_cells2: the node looped over is plane, a tree's root, which has no cells");
  EXPECT_EQ(refusal(activate_item2, range(1), p.tree.root().topology()),
            "kernel misuse.activate_item2: handle 1 is on plane, a tree's root, which has no cells");
  EXPECT_EQ(words_of([&] {
              finish(p.tree.root().activate({{1, 2}}));
            }),
            "activation of plane: a tree's root has no cells");
  device->default_stream().clear_error();
}

TEST_P(HostMisuse, NodesOfAnotherDeviceAreRefused) {
  Plane p(device);
  const IntrusivePtr<Device> second = Device::cpu(1);
  Tree tree(second, {.name = "elsewhere"});
  Node leaf = tree.root().dense({4, 4});
  Field<int> x = leaf.place<int>("x");
  EXPECT_EQ(
      refusal(number_cells2, over(leaf), x),
      "kernel misuse.number_cells2: the node looped over is elsewhere.dense[4,4], on another device than "
      "the program");
  EXPECT_EQ(
      refusal(add_item2, range(1), x),
      "kernel misuse.add_item2: handle 1 is on elsewhere.dense[4,4], on another device than the program");
}

// Once nothing happened, and nothing was said.
TEST_P(HostMisuse, DeactivationIsOfCellsThatAreThere) {
  Plane p(device);
  try {
    finish(p.leaf.deactivate({{3, 1}, {16, 0}, {0, -1}}));
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kOutOfRange);
    EXPECT_EQ(e.message(), "deactivation of " + p.leaf.path() +
                               ": 2 of the coordinates are outside the domain [0, 16) x [0, 16)");
  }
  device->default_stream().clear_error();
  EXPECT_TRUE(p.leaf.wait_is_active({3, 1})) << "as with an activation, nothing of the call is done";
  Tree tree(device, {.name = "t"});
  Node dense = tree.root().pointer({4}).dense({4});
  EXPECT_EQ(words_of([&] { dense.deactivate({{1}}); }),
            "deactivation of t.pointer[4].dense[4]: cells of a dense node are active as long as what is "
            "above them");
}

TEST_P(HostMisuse, HandlesThatNameNothingAreRefused) {
  const std::string no_tree =
      "a Tree, Node or Field is used that was default-made or moved from: it names no tree";
  Plane p(device);
  Node gone = p.leaf;
  const Node kept = std::move(gone);
  EXPECT_EQ(words_of([&] { gone.activate({{1, 1}}); }), no_tree);
  EXPECT_EQ(words_of([&] { gone.wait_is_active({1, 1}); }), no_tree);
  const std::string no_node = "the node was moved from, and names no tree";
  EXPECT_EQ(words_of([&] { over_box(gone, {0, 0}, {1, 1}); }), "over_box(node, low, high): " + no_node);
  EXPECT_EQ(words_of([&] { program->launch(number_cells2, over(gone), p.x); }), "over(node): " + no_node);
  EXPECT_EQ(words_of([&] { gone.deactivate_all(); }), no_tree);
  EXPECT_EQ(words_of([&] { gone.dense({4, 4}); }), no_tree);
  EXPECT_EQ(words_of([&] { dilate(gone, Neighbourhood::kFaces); }), no_tree);
  EXPECT_EQ(words_of([&] { append(Field<int>(), nullptr, nullptr, 0); }), no_tree);
  EXPECT_EQ(words_of([&] {
              wait_read(Field<int>(), {1, 1});
            }),
            "the field to read is none: Node::place() makes one");
  // Seen to fail: the launch was accepted, and read the tree's memory when that had gone.
  Field<int> taken = p.x;
  const Field<int> other = std::move(taken);
  EXPECT_NE(words_of([&] { program->launch(number_cells2, over(p.leaf), taken); }), "");
  Field<unsigned char> topology = p.leaf.topology();
  const Field<unsigned char> other_topology = std::move(topology);
  EXPECT_EQ(topology.id.tree, nullptr);
  EXPECT_EQ(other_topology.id.tree, p.leaf.tree().get());
  taken = other;
  EXPECT_EQ(words_of([&] { program->launch(number_cells2, over(p.leaf), taken); }), "");
  EXPECT_EQ(words_of([] { BoundLaunch(nullptr, Launch()); }), "a BoundLaunch without a device");
  EXPECT_EQ(words_of([&] { BoundLaunch(device, Launch()); }), "a BoundLaunch without a kernel's code");
  EXPECT_EQ(words_of([] { Tree(nullptr, {.name = "t"}); }), "tree 't': no device");
  EXPECT_EQ(words_of([] { Program(nullptr); }), "a program without a device");
}

TEST_P(HostMisuse, ProgramsAndLaunchesThatWereMovedFromAreRefused) {
  Plane p(device);
  Program first(device);
  BoundLaunch bound = first.bind(number_cells2, over(p.leaf), p.x);
  Function function = traced({bound});
  const Program second = std::move(first);
  const std::string no_program = "a Program is used that was moved from";
  EXPECT_EQ(words_of([&] { first.wait(); }), no_program);
  EXPECT_EQ(words_of([&] { first.launch(number_cells2, over(p.leaf), p.x); }), no_program);
  EXPECT_EQ(words_of([&] { first.bind(number_cells2, over(p.leaf), p.x); }), no_program);
  EXPECT_EQ(words_of([&] { first.compile(number_cells2, over(p.leaf), p.x); }), no_program);
  EXPECT_EQ(words_of([&] { first.uses(number_cells2, over(p.leaf), p.x); }), no_program);
  EXPECT_EQ(words_of([&] { first.explain(number_cells2, over(p.leaf), p.x); }), no_program);
  EXPECT_EQ(words_of([&] { ProgramPtx::of(first, jit::PtxTarget{}, number_cells2, over(p.leaf), p.x); }),
            no_program);
  const BoundLaunch taken = std::move(bound);
  const std::string no_launch = "a BoundLaunch is used that was moved from";
  EXPECT_EQ(words_of([&] { bound.launch(); }), no_launch);
  EXPECT_EQ(words_of([&] { bound.name(); }), no_launch);
  EXPECT_EQ(words_of([&] { traced({taken, bound}); }), no_launch);
  const Function replayed = std::move(function);
  EXPECT_EQ(words_of([&] { function.run(); }), "a Function is used that was moved from");
}

// These are the rules of docs/sparse.md, "Nodes".
TEST_P(HostMisuse, OriginsAxesAndLengthsKeepToTheirRules) {
  const auto described = [&](int32_t origin, const auto& describe) {
    return words_of([&] {
      Tree tree(device, {.name = "t", .origin = {origin}});
      describe(tree.root());
      tree.freeze();
    });
  };
  const auto two_levels = [](Node root) { root.pointer({64}).dense({8}); };
  EXPECT_EQ(described(-8, two_levels), "");
  EXPECT_EQ(described(-4, two_levels), "tree 't': origin -4 is not a multiple of 8 cells of t.pointer[64]");
  const auto three_levels = [](Node root) { root.pointer({16}).pointer({4}).dense({8}); };
  EXPECT_EQ(described(-32, three_levels), "");
  EXPECT_EQ(described(-8, three_levels),
            "tree 't': origin -8 is not a multiple of 32 cells of t.pointer[16]");
  const auto of_extent = [](int32_t extent) {
    return [extent](Node root) { root.pointer({1 << 16}).dense({extent}); };
  };
  EXPECT_EQ(described(kFirst, of_extent(1 << 15)), "");
  EXPECT_EQ(described(kFirst, of_extent(1 << 16)),
            "node t.pointer[65536].dense[65536]: more than 2^31 coordinates on an axis");
  EXPECT_EQ(described(0,
                      [](Node root) {
                        root.dense({Axis::k, Axis::i}, {4, 8});
                      }),
            "node t.dense[4,8]: axes must be named in the order i, j, k, ...");
  EXPECT_EQ(described(0, [](Node root) { root.dynamic((1 << 30) + 1); }),
            "node t.dynamic[1073741825]: a list's largest length is between 1 and 2^30");
}

// Seen to fail by SIGSEGV, and by the activation of cell 7.
TEST_P(HostMisuse, WhatHandlesAndArraysDoNotHaveIsRefused) {
  Tree tree(device, {.name = "line"}), other(device, {.name = "other"});
  Node block = tree.root().pointer({64}), leaf = block.dense({4}), list = block.dynamic(64, 4);
  const auto x = leaf.place<int>("x"), v = list.place<int>("v");
  const auto y = other.root().dense({4}).place<int>("y");
  tree.freeze(), other.freeze();
  const std::string foreign = "the field to read is of another tree than 'other', which its handle names";
  EXPECT_EQ(words_of([&] { wait_read(Field<int>{x.id, y.tree}, {0}); }), foreign);
  EXPECT_EQ(words_of([&] { wait_read(Field<int>{{}, y.tree}, {0}); }), foreign);
  EXPECT_EQ(words_of([&] { wait_read_list(Field<int>{v.id, y.tree}, {0}); }), foreign);
  EXPECT_EQ(words_of([&] { wait_read_list(x, {0}); }),
            "line.pointer[64].dense[4] has no lists: wait_read_list() is for fields on dynamic nodes");
  using Coords = std::vector<std::array<int32_t, 3>>;
  EXPECT_EQ(
      words_of([&] {
        leaf.activate(Coords{{7, 8, 3}});
      }),
      "activation of line.pointer[64].dense[4]: (7, 8, 3): 3 coordinates given, tree 'line' has 1 dimension");
  EXPECT_EQ(words_of([&] {
              block.deactivate(Coords{{0, 0, 0}, {7, 0, 1}});
            }),
            "deactivation of line.pointer[64]: (7, 0, 1): 3 coordinates given, tree 'line' has 1 dimension");
  EXPECT_EQ(words_of([&] { leaf.activate(nullptr, 5); }),
            "the coordinates to activate: 5 items at address 0");
  EXPECT_EQ(words_of([&] { finish(leaf.activate(nullptr, 0)); }), "");
  const IntrusivePtr<Buffer> few = device->reserve(60, 60);
  EXPECT_EQ(words_of([&] { finish(leaf.activate(few->as<int32_t>(), 5)); }), "");
  EXPECT_EQ(words_of([&] { leaf.activate(few->as<int32_t>() + 3, 5); }),
            "the coordinates to activate: 5 items of 12 bytes, and the buffer has room for 4 from there on");
  EXPECT_EQ(
      words_of([&] { append(v, few->as<int32_t>(), few->as<int>(), ~uint64_t{0}); }),
      "the coordinates to append at: 18446744073709551615 items of 12 bytes, and the buffer has room for 5 "
      "from there on");
  EXPECT_EQ(words_of([&] { append(v, few->as<int32_t>(), few->as<int>() + 13, 5); }),
            "what is to be appended: 5 items of 4 bytes, and the buffer has room for 2 from there on");
}

// Seen to fail: null was no items, in silence, and what lies behind a buffer was read as their number.
TEST_P(HostMisuse, CountsOfRangesLieInMemory) {
  Plane p(device);
  EXPECT_EQ(words_of([&] { range_on_device(nullptr); }),
            "range_on_device(count): the count's address is null");
  const IntrusivePtr<Buffer> counts = device->reserve(64, 64);
  const auto* const first = counts->as<uint64_t>();
  EXPECT_EQ(refusal(add_item2, range_on_device(first + 7), p.x), "");
  const std::string launch = "kernel misuse.add_item2: the count of its range ";
  EXPECT_EQ(refusal(add_item2, range_on_device(first + 8), p.x),
            launch + "is at byte 64 of a buffer of 64 bytes");
  const auto* const between = reinterpret_cast<const uint64_t*>(counts->as<uint32_t>() + 15);
  EXPECT_EQ(refusal(add_item2, range_on_device(between), p.x),
            launch + "is at an address that 8 does not divide");
  EXPECT_EQ(words_of([&] { program->bind(add_item2, range_on_device(first + 8), p.x); }),
            launch + "is at byte 64 of a buffer of 64 bytes");
}

TEST_P(HostMisuse, NamesAreOfOneLine) {
  EXPECT_EQ(words_of([&] { Tree(device, {.name = "two\nlines"}); }),
            "tree 'two?lines': its name has a control character");
  Tree tree(device, {.name = "t"});
  Node leaf = tree.root().dense({4});
  EXPECT_EQ(words_of([&] { leaf.place<int>("tab\t"); }), "field 'tab?': its name has a control character");
  leaf.place<int>("H\xc3\xb6he");
}

TEST_P(HostMisuse, MemoryOfAnotherDeviceIsRefused) {
  Plane p(device);
  for (const IntrusivePtr<Device>& second : {Device::cpu(1), Device::simt()}) {
    const IntrusivePtr<Buffer> theirs = second->reserve(4096, 4096), ours = device->reserve(4096, 4096);
    int* const numbers = theirs->as<int>() + 3;
    const std::string elsewhere = " is in memory of another device";
    EXPECT_EQ(refusal(read_at_item2, range(1), p.x, numbers),
              "kernel misuse.read_at_item2: what argument 2 leads to" + elsewhere);
    EXPECT_EQ(refusal(add_item2, range_on_device(theirs->as<uint64_t>()), p.x),
              "kernel misuse.add_item2: the count of its range" + elsewhere);
    EXPECT_EQ(words_of([&] { program->bind(read_at_item2, range(1), p.x, numbers); }),
              "kernel misuse.read_at_item2: what argument 2 leads to" + elsewhere);
    EXPECT_EQ(words_of([&] { p.leaf.activate(numbers, 1); }), "the coordinates to activate" + elsewhere);
    EXPECT_EQ(words_of([&] { append(p.list, numbers, ours->as<int>(), 1); }),
              "the coordinates to append at" + elsewhere);
    EXPECT_EQ(words_of([&] { append(p.list, ours->as<int>(), numbers, 1); }),
              "what is to be appended" + elsewhere);
    Stream& stream = device->default_stream();
    EXPECT_EQ(words_of([&] { stream.copy(theirs->data(), ours->data(), 8); }),
              "what a copy goes to" + elsewhere);
    EXPECT_EQ(words_of([&] { stream.copy(ours->data(), theirs->data(), 8); }),
              "what is to be copied" + elsewhere);
    EXPECT_EQ(words_of([&] { stream.fill(theirs->data(), 0, 8); }), "what is to be filled" + elsewhere);
    EXPECT_EQ(words_of([&] { device->wait_copy(ours->data(), theirs->data(), 8); }),
              "what is to be copied" + elsewhere);
    const auto sort = stream.enqueue("sort", [&](InStream& s) {
      primitives::sort_by_key(s, theirs->as<uint32_t>(), ours->as<uint32_t>(), 4);
    });
    EXPECT_EQ(words_of([&] { finish(sort); }), "an array of a primitive" + elsewhere);
    stream.clear_error();
    // Between their buffers lies memory of the host, which is nobody's.
    int plain = 0;
    device->wait_copy(ours->data(), &plain, sizeof plain);
  }
}

// Seen to fail: they wrote and read beyond buffers without a word, and ended the process later, or at address
// 0.
TEST_P(HostMisuse, NothingIsFilledOrCopiedBeyondABuffersEnds) {
  const IntrusivePtr<Buffer> small = device->reserve(64, 64), large = device->reserve(1 << 20, 1 << 20);
  Stream& stream = device->default_stream();
  std::vector<std::byte> host(8192);
  auto* const bytes = small->as<std::byte>();
  EXPECT_EQ(words_of([&] { stream.fill(small->data(), 1, 65); }),
            "what is to be filled: 65 bytes from byte 0 on of a buffer of 64 bytes");
  EXPECT_EQ(words_of([&] { stream.fill(bytes + 60, 1, 8); }),
            "what is to be filled: 8 bytes from byte 60 on of a buffer of 64 bytes");
  EXPECT_EQ(words_of([&] { stream.fill(large->as<std::byte>() + (1 << 20) - 7, 1, 8); }),
            fmt::format("what is to be filled: 8 bytes from byte {} on of a buffer of {} bytes",
                        (1 << 20) - 7, 1 << 20));
  EXPECT_EQ(words_of([&] { stream.copy(small->data(), host.data(), 8192); }),
            "what a copy goes to: 8192 bytes from byte 0 on of a buffer of 64 bytes");
  EXPECT_EQ(words_of([&] { stream.copy(host.data(), bytes + 8, 64); }),
            "what is to be copied: 64 bytes from byte 8 on of a buffer of 64 bytes");
  EXPECT_EQ(words_of([&] { device->wait_copy(host.data(), small->data(), 8192); }),
            "what is to be copied: 8192 bytes from byte 0 on of a buffer of 64 bytes");
  EXPECT_EQ(words_of([&] { device->wait_copy(host.data(), large->as<std::byte>() - 4, 8); }),
            "what is to be copied: 8 bytes that begin 4 bytes before a buffer");
  EXPECT_EQ(words_of([&] { stream.fill(nullptr, 0, 8); }), "what is to be filled: 8 bytes at address 0");
  EXPECT_EQ(words_of([&] { device->wait_copy(nullptr, small->data(), 8); }),
            "what a copy goes to: 8 bytes at address 0");
  const auto inside = stream.enqueue("inside", [&](InStream& s) { s.fill(bytes + 1, 1, 64); });
  EXPECT_EQ(words_of([&] { finish(inside); }),
            "what is to be filled: 64 bytes from byte 1 on of a buffer of 64 bytes");
  stream.clear_error();
  // A buffer may have grown to more than was asked for.
  const IntrusivePtr<Buffer> grown = device->reserve(100'000, 100);
  grown->grow(grown->reserved_bytes());
  finish(stream.fill(grown->data(), 1, grown->reserved_bytes()));
  // All of it, and nothing of nowhere, are right.
  finish(stream.fill(small->data(), 7, 64));
  finish(stream.fill(nullptr, 7, 0));
  device->wait_copy(host.data(), small->data(), 64);
  EXPECT_EQ(host[63], std::byte{7});
}

TEST_P(HostMisuse, ABoxOfADenseTreeIsActivatedInsideItsDomainAlone) {
  Tree tree(device, {.name = "t"});
  Node leaf = tree.root().dense({4, 4});
  leaf.place<int>("x");
  finish(leaf.activate({{3, 3}}));
  try {
    finish(leaf.activate({{3, 4}}));
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kOutOfRange);
    EXPECT_EQ(e.message(),
              "activation of t.dense[4,4]: 1 of the coordinates are outside the domain [0, 4) x [0, 4)");
  }
  device->default_stream().clear_error();
}

INSTANTIATE_TEST_SUITE_P(Sparse, HostMisuse, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace
}  // namespace coppice
