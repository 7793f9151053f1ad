// Dynamic nodes: appending, writing by index, emptying and looping over lists.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "conformance_lists.kernels.h"
#include "core/error.h"
#include "lists.kernels.h"
#include "sparse/read_back.h"
#include "tests/sparse/conformance_fixture.h"

namespace coppice {
namespace {

uint64_t total(const std::vector<uint32_t>& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), uint64_t{0});
}

// Within a launch nobody reads a header: slots are written and read without an order (activation.h).
TEST_P(Conformance, C10_TheNextLaunchFindsACellsHeader) {
  Program unchecked(device, {});  // a kernel that reads headers touches more than its uses say
  for (int round = 0; round < 10; ++round) {
    Tree tree(device);
    Field<int> x = tree.root().pointer({64}).dense({1}).place<int>("x");
    uint32_t wrong = 0;
    run_on(unchecked, activate_each1, range(256), x, 64);
    run_on(unchecked, check_headers1, range(1), x, 64, inout(wrong));
    EXPECT_EQ(wrong, 0u);
  }
}

// By a kernel, by the host, and with the whole tree. Seen to fail when clear_list left the length as it was.
TEST_P(Conformance, C21_AClearedListIsEmptyAndIsAppendedToAgain) {
  for (const bool sparse : {false, true}) {
    Tree tree(device);
    Node parent = sparse ? tree.root().pointer({8}) : tree.root().dense({8});
    Node lists = parent.dynamic(1000, 4);
    Field<int> x = lists.place<int>("x");
    std::vector<uint32_t> index(200), lengths(8);
    const std::vector<int> some{1, 6}, other{2};
    for (int round = 0; round < 3; ++round) {
      run(append_items, range(200), x, 8, index);
      run(clear_list_at, range(2), x, some);
      run(clear_by_topology1, range(1), lists.topology(), other);
      finish(lists.deactivate({{5, 0, 0}}));
      run(lengths1, range(8), x, lengths);
      EXPECT_EQ(lengths, (std::vector<uint32_t>{25, 0, 0, 25, 25, 0, 0, 25}));
      EXPECT_EQ(lists.wait_usage().active_cells, 4u * 7u);
      run(append_items, range(40), x, 8, index);
      run(lengths1, range(8), x, lengths);
      EXPECT_EQ(lengths, (std::vector<uint32_t>{30, 5, 5, 30, 30, 5, 5, 30}));
      std::vector<int> values = wait_read_list(x, 6);
      std::sort(values.begin(), values.end());
      EXPECT_EQ(values, (std::vector<int>{6, 14, 22, 30, 38}));
      finish(round == 1 ? lists.deactivate_all() : tree.deactivate_all());
      run(lengths1, range(8), x, lengths);
      EXPECT_EQ(total(lengths), 0u);
      EXPECT_EQ(lists.wait_usage().active_cells, 0u);
    }
  }
}

// 128 KiB a chunk, so that one is committed at first.
TEST_P(Conformance, C23_AppendingAndClearingAgainAndAgainNeedsTwoChunks) {
  Tree tree(device);
  Node lists = tree.root().dense({4}).dynamic(1 << 20, 32768);
  Field<int> x = lists.place<int>("x");
  const int n = scaled(10000);
  std::vector<uint32_t> index(n);
  for (int round = 0; round < 100; ++round) {
    finish(tree.deactivate_all());
    run(append_items, range(n), x, 1, index);
    ASSERT_EQ(lists.wait_length({0, 0, 0}), static_cast<uint64_t>(n)) << "round " << round;
  }
  EXPECT_EQ(lists.wait_usage().active_cells, 1u);
  EXPECT_LE(lists.wait_usage().capacity_cells, 2u);
}

// The particles of a cell are found anew in each substep; the orbits repeat after n of them.
TEST_P(Conformance, C25_ListsOfParticlesRebuiltAgainAndAgainLeakNothing) {
  const int n = 64, particles = scaled(10000), substeps = is_emulated() ? 2 * n : 1000;
  Tree tree(device);
  Node block = tree.root().pointer({16, 16}), lists = block.dense({4, 4}).dynamic(1 << 16, 16);
  Field<int> x = lists.place<int>("particle");
  auto bytes = [&] { return block.wait_usage().bytes + lists.wait_usage().bytes; };
  uint64_t after_all_orbits = 0;
  std::vector<uint32_t> marks(particles);
  for (int step = 0; step < substeps; ++step) {
    tree.deactivate_all();
    run(enter_lists2, range(particles), x, step, n);
    run(mark_entries2, over(lists), x, marks);
    if (step == n) after_all_orbits = bytes();
  }
  EXPECT_EQ(bytes(), after_all_orbits);
  // Bytes stay the same while chunks are lost, as long as there are free ones: none may be
  // left when all lists are empty.
  uint64_t held = 0;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) held += (lists.wait_length({i, j, 0}) + 15) / 16;
  }
  EXPECT_EQ(lists.wait_usage().active_cells, held) << "chunks that no list has";
  wait(tree.deactivate_all());
  EXPECT_EQ(lists.wait_usage().active_cells, 0u);
  EXPECT_EQ(block.wait_usage().active_cells, 0u);
  EXPECT_EQ(marks, std::vector<uint32_t>(particles, static_cast<uint32_t>(substeps)));
}

// Seen to fail, as C41 and C46 were, when set_element did not raise the length.
TEST_P(Conformance, C40_AWriteByIndexExtendsTheLength) {
  Tree tree(device);
  Node lists = tree.root().pointer({4}).dynamic(1000, 4);
  Field<int> x = lists.place<int>("x");
  for (const int to : {0, 3, 4, 9, 100, 999}) {
    const std::vector<int> at{to}, value{to + 1};
    run(set_elements, range(1), x, 3, at, value);
    EXPECT_EQ(lists.wait_length({3, 0, 0}), static_cast<uint64_t>(to) + 1);
  }
  EXPECT_EQ(lists.wait_length({0, 0, 0}), 0u);
  EXPECT_EQ(lists.wait_usage().active_cells, 250u) << "every chunk before the last is there";
}

// Also where the chunks were used before.
TEST_P(Conformance, C41_HolesBetweenWritesByIndexAreZero) {
  Tree tree(device);
  Node lists = tree.root().pointer({4}).dynamic(1000, 4);
  Field<int> x = lists.place<int>("x");
  std::vector<uint32_t> index(40);
  for (int round = 0; round < 2; ++round) {
    const std::vector<int> at{9, 2}, to{90, 20};
    run(set_elements, range(2), x, 3, at, to);
    EXPECT_EQ(wait_read_list(x, 3), (std::vector<int>{0, 0, 20, 0, 0, 0, 0, 0, 0, 90}));
    finish(tree.deactivate_all());
    run(append_items, range(40), x, 1, index);
    finish(tree.deactivate_all());
  }
}

// Seen to fail, as C21 and C43 were, when the threads of a warp got the same index (on the emulated GPU).
TEST_P(Conformance, C42_ParallelAppendsKeepEveryValueOnce) {
  Tree tree(device);
  Node lists = tree.root().pointer({8}).dense({4}).dynamic(1 << 20, 16);
  Field<int> x = lists.place<int>("x");
  const int n = is_emulated() ? 1000 : 20000;
  std::vector<uint32_t> index(n);
  run(append_items, range(n), x, 7, index);
  for (int at = 0; at < 7; ++at) {
    const std::vector<int> values = wait_read_list(x, at);
    std::vector<bool> seen(n);
    for (size_t k = 0; k < values.size(); ++k) {
      ASSERT_EQ(values[k] % 7, at);
      EXPECT_FALSE(seen[values[k]]);
      seen[values[k]] = true;
      EXPECT_EQ(index[values[k]], k);
    }
    EXPECT_EQ(values.size(), static_cast<size_t>((n - at + 6) / 7));
  }
}

// Seen to take minutes when walks of a repeated launch began at a list's first chunk.
TEST_P(Conformance, C43_LengthsAreExactAfterParallelAppends) {
  Tree tree(device);
  Node lists = tree.root().dense({32}).dynamic(1 << 20, 8);
  Field<int> x = lists.place<int>("x");
  const int n = is_emulated() ? 1000 : 100000;
  std::vector<uint32_t> index(n), lengths(32);
  for (int round = 1; round <= 3; ++round) {
    for (const int used : {1, 5, 32}) {
      finish(tree.deactivate_all());
      for (int times = 0; times < round; ++times) run(append_items, range(n), x, used, index);
      run(lengths1, range(32), x, lengths);
      for (int at = 0; at < 32; ++at) {
        const int expected = at < used ? round * ((n - at + used - 1) / used) : 0;
        ASSERT_EQ(lengths[at], static_cast<uint32_t>(expected)) << at << " of " << used;
      }
    }
  }
}

TEST_P(Conformance, C44_ManyListsAreAppendedToAtOnce) {
  for (const bool sparse : {false, true}) {
    Tree tree(device);
    Node lists = (sparse ? tree.root().pointer({128}) : tree.root().dense({128})).dynamic(1024, 16);
    Field<int> x = lists.place<int>("x");
    run(append_each1, range(128), x, 128);
    EXPECT_EQ(lists.wait_usage().active_cells, 128u * 8u);
    std::vector<int> expected(128);
    std::iota(expected.begin(), expected.end(), 0);
    for (int at = 0; at < 128; ++at) ASSERT_EQ(wait_read_list(x, at), expected) << at;
  }
}

TEST_P(Conformance, C45_AnEmptyListHasNoLengthAndIsNotActivatedByAsking) {
  Tree tree(device);
  Node block = tree.root().pointer({4}), lists = block.dense({2}).dynamic(100, 4);
  Field<int> x = lists.place<int>("x");
  std::vector<uint32_t> lengths(8, 9);
  run(lengths1, range(8), x, lengths);
  EXPECT_EQ(lengths, std::vector<uint32_t>(8, 0));
  EXPECT_EQ(lists.wait_length({5, 0, 0}), 0u);
  EXPECT_FALSE(lists.wait_is_active({5, 0, 0}));
  int first = 9;
  run(read_first1, range(1), x, 5, inout(first));
  EXPECT_EQ(first, 0);
  EXPECT_EQ(block.wait_usage().active_cells, 0u);
  EXPECT_EQ(lists.wait_usage().active_cells, 0u);
}

TEST_P(Conformance, C46_AWriteBelowTheLengthKeepsIt) {
  Tree tree(device);
  Node lists = tree.root().dense({4}).dynamic(100, 4);
  Field<int> x = lists.place<int>("x");
  const std::vector<int> late{10}, early{3}, one{1}, two{2};
  run(set_elements, range(1), x, 2, late, one);
  run(set_elements, range(1), x, 2, early, two);
  EXPECT_EQ(wait_read_list(x, 2), (std::vector<int>{0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1}));
  std::vector<uint32_t> index(3);
  run(append_items, range(2, 3), x, 3, index);
  EXPECT_EQ(index[2], 11u) << "an append goes behind what was written";
}

// Zero bytes, padding too, and a number that the other members are made from.
template <class T, class Fill>
std::vector<T> numbered(int n, const Fill& fill) {
  std::vector<T> values(n);
  for (int i = 0; i < n; ++i) {
    std::memset(static_cast<void*>(&values[i]), 0, sizeof(T));
    fill(values[i], i);
  }
  return values;
}
// Struct of arrays and array of structs.
TEST_P(Conformance, C47_ElementsAreOfAnyType) {
  const int n = 50;
  const auto check = [&]<class T>(const auto& append, const std::vector<T>& values) {
    Tree tree(device);
    Field<T> x = tree.root().dense({1}).dynamic(100, 4).template place<T>("x");
    for (int i = 0; i < n; ++i) run(append, range(i, i + 1), x, values);
    const std::vector<T> got = wait_read_list(x, 0);
    ASSERT_EQ(got.size(), values.size());
    for (int i = 0; i < n; ++i) EXPECT_EQ(std::memcmp(&got[i], &values[i], sizeof(T)), 0) << i;
  };
  const auto bytes = numbered<uint8_t>(n, [](uint8_t& v, int i) { v = static_cast<uint8_t>(5 * i); });
  check(append_u8, bytes);
  check(append_u64, numbered<uint64_t>(n, [](uint64_t& v, int i) { v = (uint64_t{1} << 63) + i; }));
  check(append_particle, numbered<Particle>(n, [](Particle& v, int i) {
          v.x[2] = 0.5f * static_cast<float>(i), v.kind = static_cast<uint8_t>(i), v.mass = i;
        }));
  check(append_matrix, numbered<Mat3d>(n, [](Mat3d& v, int i) { v = Mat3d::Identity() * i; }));
  check(append_nested, numbered<Nested>(n, [](Nested& v, int i) {
          v.weights[1].value = i, v.weights[0].tag = static_cast<uint8_t>(i), v.sum = 3;
        }));
  for (CellLayout layout : {CellLayout::kStructOfArrays, CellLayout::kArrayOfStructs}) {
    Tree tree(device);
    Node lists = tree.root().pointer({2}).dynamic(100, 4).layout(layout);
    Field<uint8_t> first = lists.place<uint8_t>("first");
    Field<Nested> x = lists.place<Nested>("x");
    Field<uint64_t> y = lists.place<uint64_t>("y");
    run(append_u8, range(n), first, bytes);
    uint32_t misaligned = 0;
    run(count_misaligned, over(lists), x, y, inout(misaligned));
    EXPECT_EQ(misaligned, 0u);
  }
}

// Write and Update reach elements that are there; what names a list by its coordinate alone is refused.
TEST_P(Conformance, C48_WritesThatAreNoAppendsActivateNothing) {
  Tree tree(device);
  Node block = tree.root().pointer({4}), lists = block.dynamic(100, 4);
  Field<int> x = lists.place<int>("x");
  const auto expect_empty = [&] {
    EXPECT_EQ(block.wait_usage().active_cells, 0u);
    EXPECT_EQ(lists.wait_usage().active_cells, 0u);
  };
  run(write_entries1, over(lists), x, 5);
  run(add_to_entries1, over(lists), x, 5);
  expect_empty();
  try {
    run(add_to_list1, range(1), x, 2);
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(),
                 "kernel conformance_lists.add_to_list1: field 'x' on tree.pointer[4].dynamic[100] has lists "
                 "of values; use Append, or Read");
  }
  expect_empty();
  std::vector<uint32_t> index(6);
  run(append_items, range(6), x, 1, index);
  run(write_entries1, over(lists), x, 5);
  run(add_to_entries1, over(lists), x, 2);
  EXPECT_EQ(wait_read_list(x, 0), std::vector<int>(6, 7));
  EXPECT_EQ(block.wait_usage().active_cells, 1u);
  EXPECT_EQ(lists.wait_usage().active_cells, 2u);
}

TEST_P(Conformance, C49_ListsBelowOneAndTwoLevels) {
  std::vector<uint32_t> index(60), lengths(12);
  for (const bool sparse : {false, true}) {
    Tree one(device), two(device);
    Node lists1 = (sparse ? one.root().pointer({4}) : one.root().dense({4})).dynamic(100, 4);
    Node lists2 = sparse ? two.root().pointer({Axis::i}, {3}).pointer({Axis::j}, {4}).dynamic(100, 4)
                         : two.root().dense({Axis::i}, {3}).dense({Axis::j}, {4}).dynamic(Axis::k, 100, 4);
    Field<int> x1 = lists1.place<int>("x"), x2 = lists2.place<int>("x");
    run(append_items, range(60), x1, 4, index);
    for (int at = 0; at < 4; ++at) EXPECT_EQ(lists1.wait_length({at, 0, 0}), 15u);
    const std::vector<int> third{3};
    run(clear_list_at, range(1), x1, third);
    EXPECT_EQ(lists1.wait_length({3, 0, 0}), 0u);
    EXPECT_EQ(lists1.wait_length({2, 0, 0}), 15u);
    run(append_items2, range(60), x2, 3, 4);
    run(lengths2, range(12), x2, 4, lengths);
    EXPECT_EQ(lengths, std::vector<uint32_t>(12, 5));
    run(clear_list2, range(4, 8), x2, 4);  // row 1
    run(lengths2, range(12), x2, 4, lengths);
    EXPECT_EQ(lengths, (std::vector<uint32_t>{5, 5, 5, 5, 0, 0, 0, 0, 5, 5, 5, 5}));
    EXPECT_EQ(lists2.wait_usage().active_cells, 16u);
  }
}

// Seen to fail when the version of lists did not advance after appends.
TEST_P(Conformance, C54_ALoopOverListsVisitsWhatTheyHold) {
  Tree tree(device);
  Node lists = tree.root().pointer({16}).dynamic(64, 8);
  Field<int> x = lists.place<int>("x");
  for (int each = 1; each <= 3; ++each) {
    run(append_each1, range(16), x, 20);
    std::vector<uint32_t> visits(16 * 64);
    uint32_t wrong = 0;
    run(mark_places1, over(lists), x, visits, inout(wrong));
    for (int at = 0; at < 16; ++at) {
      for (int k = 0; k < 64; ++k) ASSERT_EQ(visits[64 * at + k], k < 20 * each ? 1u : 0u) << at << ", " << k;
    }
    EXPECT_EQ(wrong, static_cast<uint32_t>(16 * 20 * (each - 1))) << "values begin at 0 again each time";
  }
}

// Without the checks it reads as zero.
TEST_P(Conformance, C65_IndicesOutsideOfAListAreNamedByTheChecks) {
  Program checked(device, CodegenOptions{.checks = true}), plain(device, CodegenOptions{});
  Tree tree(device, {.name = "grid"});
  Node lists = tree.root().pointer({4}).dynamic(100, 4);
  Field<int> x = lists.place<int>("x");
  std::vector<uint32_t> index(6), length(8);
  std::vector<int> values(8, -1);
  run(append_items, range(6), x, 1, index);
  const auto read = [&](Program& program, int64_t first, int64_t last, int at) -> std::string {
    // The kernel reads element i into values[i].
    auto done = launch_and_wait(program, read_list_at, range(first, last), x, at, length, values);
    device->default_stream().clear_error();
    return done.is_error() ? done.error().what() : "";
  };
  const std::string before = "kernel lists.read_list_at: field 'x' on grid.pointer[4].dynamic[100]: index ";
  EXPECT_EQ(read(checked, 0, 6, 0), "");
  EXPECT_EQ(read(checked, 6, 7, 0), before + "6 is not in the list at (0), which has elements [0, 6)");
  EXPECT_EQ(read(checked, 2, 3, 3), before + "2 is not in the list at (3), which has elements [0, 0)");
  values[6] = -1;
  EXPECT_EQ(read(plain, 6, 7, 0), "");
  EXPECT_EQ(values[6], 0);
  EXPECT_EQ(lists.wait_length({0, 0, 0}), 6u);
  // Writes are checked always: a list ends at its largest length.
  const std::vector<int> at{100}, value{1};
  auto done = launch_and_wait(plain, set_elements, range(1), x, 1, at, value);
  ASSERT_TRUE(done.is_error());
  EXPECT_STREQ(done.error().what(),
               "kernel lists.set_elements: field 'x' on grid.pointer[4].dynamic[100]: the list at (1) is to "
               "hold element 100; 100 elements are all it may have");
  device->default_stream().clear_error();
  EXPECT_EQ(lists.wait_length({1, 0, 0}), 0u);
}

}  // namespace
}  // namespace coppice
