// Bulk append beside a model of it: every list gets its elements in the order in which they were given.
#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "core/error.h"
#include "lists.kernels.h"
#include "sparse/bulk_append.h"
#include "sparse/read_back.h"
#include "sparse/tree_storage.h"
#include "tests/sparse/test_devices.h"

namespace coppice {
namespace {

using List = std::array<int, 3>;

struct Vector5 {
  uint16_t v[5];
  bool operator==(const Vector5&) const = default;
};

class BulkAppend : public DeviceTest {
 protected:
  // A tree, which coordinates it has (missing leading ones 0), and whether there are so
  // many lists that keys are sorted.
  struct Shape {
    const char* name;
    Node (*describe)(Node root);
    List extent;
    bool is_large = false;
  };
  static std::vector<Shape> shapes() {
    return {{"one list", [](Node r) { return r.dynamic(1 << 20, 4); }, {1, 1, 1}},
            {"dense", [](Node r) { return r.dense({7}).dynamic(1 << 20, 4); }, {1, 1, 7}},
            {"pointer",
             [](Node r) {
               return r.pointer({5, 6}).dynamic(1 << 20, 8);
             },
             {1, 5, 6}},
            {"pointer, bitmasked, dense",
             [](Node r) {
               return r.pointer({2, 2}).bitmasked({3, 2}).dense({2, 1}).dynamic(1 << 20, 2);
             },
             {1, 12, 4}},
            {"pointer, pointer, dense",
             [](Node r) {
               return r.pointer({2, 1, 2}).pointer({2, 3, 1}).dense({1, 2, 2}).dynamic(1 << 20, 16);
             },
             {4, 6, 4}},
            {"axes apart",
             [](Node r) { return r.pointer({Axis::i}, {3}).bitmasked({Axis::j}, {5}).dynamic(1 << 20, 1); },
             {1, 3, 5}},
            {"many lists",
             [](Node r) {
               return r.pointer({1 << 10, 1 << 10}).pointer({1 << 10, 3}).dynamic(1 << 20, 4);
             },
             {1, 1 << 20, 3 << 10},
             true}};
  }
  template <class T>
  AsyncValueRef<Chain> append_and_wait(const Field<T>& field, const std::vector<int32_t>& coords,
                                       const std::vector<T>& values) {
    const auto at = wait_device_copy(*device, coords), what = wait_device_copy(*device, values);
    const AsyncValueRef<Chain> done =
        append(field, at->template as<int32_t>(), what->template as<T>(), values.size());
    wait(done);
    return done;
  }
  template <class T>
  std::string error_of(const Field<T>& field, const std::vector<int32_t>& coords,
                       const std::vector<T>& values) {
    const auto done = append_and_wait(field, coords, values);
    device->default_stream().clear_error();
    return done.is_error() ? done.error().what() : "";
  }
  static detail::GivenCoord given(const List& at, const Shape& shape) {
    const int dims = shape.extent[0] > 1 ? 3 : shape.extent[1] > 1 ? 2 : 1;
    std::array<int32_t, 3> axes{};
    for (int a = 0; a < dims; ++a) axes[static_cast<size_t>(a)] = at[static_cast<size_t>(3 - dims + a)];
    return axes;
  }
};
INSTANTIATE_TEST_SUITE_P(Sparse, BulkAppend, testing::ValuesIn(test_devices()), device_test_name);

TEST_P(BulkAppend, EveryListGetsItsElementsInTheirOrder) {
  for (const Shape& shape : shapes()) {
    SCOPED_TRACE(shape.name);
    Tree tree(device);
    Node lists = shape.describe(tree.root());
    Field<int> x = lists.place<int>("x");
    std::mt19937 random(7);
    std::map<List, std::vector<int>> model;
    int next = 1;
    for (int round = 0; round < 6; ++round) {
      const int n = round == 0 ? 1 : 1 + static_cast<int>(random() % static_cast<unsigned>(scaled(20000)));
      std::vector<int32_t> coords;
      std::vector<int> values;
      for (int i = 0; i < n; ++i) {
        List at{};
        // Few lists of many, some of them often.
        for (size_t d = 0; d < 3; ++d) {
          const auto extent = static_cast<unsigned>(shape.extent[d]);
          at[d] = static_cast<int>(extent < 100 ? random() % extent : random() % 5 * 7919 % extent);
        }
        coords.insert(coords.end(), at.begin(), at.end());
        values.push_back(next);
        model[at].push_back(next++);
      }
      finish(append_and_wait(x, coords, values));
      uint64_t chunks = 0;
      const uint64_t chunk_cells = tree.storage().layout().node(lists.id()).num_cells;
      for (const auto& [at, expected] : model) {
        ASSERT_EQ(wait_read_list(x, given(at, shape)), expected)
            << at[0] << ", " << at[1] << ", " << at[2] << ", round " << round;
        chunks += (expected.size() + chunk_cells - 1) / chunk_cells;
      }
      ASSERT_EQ(lists.wait_usage().active_cells, chunks);
      if (round == 3) {
        finish(tree.deactivate_all());
        model.clear();
        ASSERT_EQ(lists.wait_usage().active_cells, 0u);
      }
    }
  }
}

// Beside appends of a kernel, and lists that are cleared in between. Chunks that come from
// the free list are zeroed ones.
TEST_P(BulkAppend, TakesTurnsWithKernels) {
  constexpr int kLists = 6;
  Tree tree(device);
  Node lists = tree.root().pointer({3}).dense({2}).dynamic(1 << 16, 4);
  Field<int> x = lists.place<int>("x"), other = lists.place<int>("other");
  std::mt19937 random(3);
  std::vector<std::vector<int>> model(kLists);
  for (int round = 0; round < 12; ++round) {
    std::vector<int32_t> coords;
    std::vector<int> values;
    for (int i = 0; i < 50; ++i) {
      const int at = static_cast<int>(random() % kLists);
      coords.insert(coords.end(), {0, 0, at});
      values.push_back(1000 * round + i);
      model[static_cast<size_t>(at)].push_back(values.back());
    }
    finish(append_and_wait(x, coords, values));
    std::vector<uint32_t> index(40);
    run(append_items, range(40), x, kLists, index);
    for (int i = 0; i < 40; ++i) {
      std::vector<int>& list = model[static_cast<size_t>(i % kLists)];
      list.resize(std::max(list.size(), size_t{index[static_cast<size_t>(i)]} + 1));
      list[index[static_cast<size_t>(i)]] = i;
    }
    const std::vector<int> cleared{static_cast<int>(random() % kLists)};
    run(clear_list_at, range(1), x, cleared);
    model[static_cast<size_t>(cleared[0])].clear();
    const std::vector<int> longer{static_cast<int>(model[1].size()) + 9}, value{5};
    run(set_elements, range(1), x, 1, longer, value);
    model[1].resize(static_cast<size_t>(longer[0]) + 1);
    model[1].back() = 5;
    for (int at = 0; at < kLists; ++at) {
      ASSERT_EQ(wait_read_list(x, at), model[static_cast<size_t>(at)]) << at << ", round " << round;
      ASSERT_EQ(wait_read_list(other, at), std::vector<int>(model[static_cast<size_t>(at)].size()));
    }
    // A loop over the node finds the same elements.
    std::vector<int> looped(1);
    run(sum_entries, over(lists), x, looped);
    int sum = 0;
    for (const std::vector<int>& list : model) sum += std::accumulate(list.begin(), list.end(), 0);
    ASSERT_EQ(looped[0], sum);
  }
}

TEST_P(BulkAppend, ValuesAreOfAnyTypeAndLayout) {
  for (const CellLayout layout : {CellLayout::kStructOfArrays, CellLayout::kArrayOfStructs}) {
    Tree tree(device);
    Node lists = tree.root().dense({3}).dynamic(1000, 4).layout(layout);
    Field<uint8_t> bytes = lists.place<uint8_t>("bytes");
    Field<Vector5> shorts = lists.place<Vector5>("shorts");
    Field<double> doubles = lists.place<double>("doubles");
    const std::vector<int32_t> coords{0, 0, 2, 0, 0, 0, 0, 0, 2, 0, 0, 2};
    finish(append_and_wait(bytes, coords, std::vector<uint8_t>{1, 2, 3, 4}));
    finish(
        append_and_wait(shorts, coords, std::vector<Vector5>{{{1, 2, 3, 4, 5}}, {{6}}, {{7}}, {{8, 0, 9}}}));
    finish(append_and_wait(doubles, coords, std::vector<double>{.5, 1.5, 2.5, 3.5}));
    EXPECT_EQ(wait_read_list(bytes, 2), (std::vector<uint8_t>{1, 3, 4, 0, 0, 0, 0, 0, 0}));
    EXPECT_EQ(wait_read_list(shorts, 2)[5], (Vector5{{8, 0, 9}}));
    EXPECT_EQ(wait_read_list(shorts, 2)[6], Vector5{});
    EXPECT_EQ(wait_read_list(doubles, 2), (std::vector<double>{0, 0, 0, 0, 0, 0, .5, 2.5, 3.5}));
    EXPECT_EQ(wait_read_list(doubles, 0), (std::vector<double>{0, 0, 1.5}));
  }
}

TEST_P(BulkAppend, MistakesAreErrorsAndAppendNothing) {
  for (const bool is_large : {false, true}) {
    Tree tree(device, {.name = "grid", .origin = {-4, 0, 0}});
    const int extent = is_large ? 1 << 20 : 8;
    Node parent = tree.root().pointer({extent}), lists = parent.dynamic(5, 2);
    Field<int> x = lists.place<int>("x"), y = parent.place<int>("y");
    const std::string before = "append to 'x' on grid.pointer[" + std::to_string(extent) + "].dynamic[5]: ";
    EXPECT_EQ(
        error_of(x, {0, 0, -4, 0, 0, -5, 0, 0, extent}, {1, 2, 3}),
        before + "2 of the coordinates are outside the domain [-4, " + std::to_string(extent - 4) + ")");
    EXPECT_EQ(parent.wait_usage().active_cells, 0u);
    finish(append_and_wait(x, {0, 0, -1, 0, 0, 2, 0, 0, -1}, std::vector<int>{1, 2, 3}));
    EXPECT_EQ(error_of(x, {0, 0, 3, 0, 0, -1, 0, 0, -1, 0, 0, 2, 0, 0, -1, 0, 0, -1}, {1, 2, 3, 4, 5, 6}),
              before + "the list at (-1) has 2 elements and is to get 4 more; 5 are all it may have");
    EXPECT_EQ(wait_read_list(x, -1), (std::vector<int>{1, 3}));
    EXPECT_EQ(wait_read_list(x, 2), (std::vector<int>{2}));
    EXPECT_EQ(parent.wait_usage().active_cells, 2u);
    EXPECT_EQ(lists.wait_usage().active_cells, 2u);
    finish(append_and_wait(x, {0, 0, -1, 0, 0, -1, 0, 0, -1}, std::vector<int>{4, 5, 6}));
    EXPECT_EQ(wait_read_list(x, -1), (std::vector<int>{1, 3, 4, 5, 6}));
    finish(append_and_wait(x, {}, std::vector<int>{}));
    try {
      append_and_wait(y, {0, 0, 0}, std::vector<int>{1});
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      EXPECT_EQ(e.what(), "append: grid.pointer[" + std::to_string(extent) +
                              "] is no dynamic node, so that its fields have no lists");
    }
  }
}

// Seen: lists beside a leaf began at the origin of the leaf's coordinates, so that -2 was outside the domain.
TEST_P(BulkAppend, ListsHaveTheCoordinatesOfTheCellsThatTheyAreBelow) {
  for (const bool lists_first : {false, true}) {
    Tree tree(device, {.name = "grid", .origin = {-14, 0, 0}});
    Node parent = tree.root().pointer({4});
    Node other = lists_first ? parent.dynamic(100, 4) : parent.dense({7});
    Node lists = lists_first ? other : parent.dynamic(100, 4), leaf = lists_first ? parent.dense({7}) : other;
    Field<int> x = lists.place<int>("x"), y = leaf.place<int>("y");
    finish(append_and_wait(x, {0, 0, -2, 0, 0, 1, 0, 0, -2}, std::vector<int>{1, 2, 3}));
    EXPECT_EQ(wait_read_list(x, -2), (std::vector<int>{1, 3}));
    EXPECT_EQ(wait_read_list(x, 1), std::vector<int>{2});
    EXPECT_TRUE(parent.wait_is_active({-2, 0, 0}) && parent.wait_is_active({1, 0, 0}));
    EXPECT_TRUE(leaf.wait_is_active({-14, 0, 0}) && leaf.wait_is_active({13, 0, 0}));
    EXPECT_EQ(parent.wait_usage().active_cells, 2u);
    EXPECT_EQ(
        error_of(x, {0, 0, -3}, {1}),
        "append to 'x' on grid.pointer[4].dynamic[100]: 1 of the coordinates are outside the domain [-2, 2)");
  }
}

TEST_P(BulkAppend, OutOfMemoryAppendsNothing) {
  Tree tree(device, {.name = "grid", .max_bytes = 1 << 17});
  Node lists = tree.root().dense({4}).dynamic(1 << 20, 64);
  Field<int> x = lists.place<int>("x");
  const int n = 100000;
  std::vector<int32_t> coords;
  std::vector<int> values;
  for (int i = 0; i < n; ++i) coords.insert(coords.end(), {0, 0, i % 4}), values.push_back(i);
  const std::string error = error_of(x, coords, values);
  EXPECT_NE(error.find("append: grid.dense[4].dynamic[1048576] is full"), std::string::npos) << error;
  for (int at = 0; at < 4; ++at) EXPECT_EQ(lists.wait_length({at, 0, 0}), 0u);
  EXPECT_EQ(lists.wait_usage().active_cells, 0u);
  coords.resize(300), values.resize(100);
  finish(append_and_wait(x, coords, values));
  for (int at = 0; at < 4; ++at) EXPECT_EQ(lists.wait_length({at, 0, 0}), 25u);
}

}  // namespace
}  // namespace coppice
