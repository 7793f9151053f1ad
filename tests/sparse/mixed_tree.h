// A tree of the mixed model (mixed_model.h) on its device: made from a shape, and read back as a whole.
#pragma once
#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "mixed_model.kernels.h"
#include "sparse/program.h"
#include "sparse/read_back.h"
#include "sparse/tree.h"
#include "tests/sparse/mixed_deeds.h"
#include "tests/sparse/mixed_reference.h"
#include "tests/sparse/staging.h"

namespace coppice::mixed {

// A model and its tree differ. The test says after which steps.
struct Mismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};
template <class A, class B>
void expect_equal(const A& found, const B& expected, const std::string& what) {
  if (found != static_cast<A>(expected)) throw Mismatch(fmt::format("{}: {}, not {}", what, found, expected));
}

// A kernel of as many dimensions as a tree has, bound.
#define COPPICE_MIXED_BIND(program, dims, name, loop, ...)    \
  ((dims) == 1   ? (program).bind(name##1, loop, __VA_ARGS__) \
   : (dims) == 2 ? (program).bind(name##2, loop, __VA_ARGS__) \
                 : (program).bind(name##3, loop, __VA_ARGS__))

// Makes cells large, so that few of them fit into what there is at first.
template <int kBytes>
struct Padding {
  std::array<unsigned char, kBytes> bytes;
};

class MixedTree {
 public:
  MixedTree(Program& program, const MixedShape& shape, const std::string& name, uint64_t max_bytes)
      : shape(shape),
        max_bytes(max_bytes),
        program_(program),
        tree(share(&program.device()),
             {.name = name, .origin = shape.first(shape.leaf()), .max_bytes = max_bytes}) {
    Node at = tree.root();
    for (const MixedLevel& level : shape.levels) nodes.push_back(at = child(at, level));
    lists.push_back(nodes[shape.lists_below].dynamic(1 << 20, shape.chunk));
    x = leaf().place<int>("x"), y = leaf().place<int>("y"), v = lists[0].place<int>("v");
    for (int l = 0; l < shape.num_levels(); ++l) {
      if (shape.is_pointer(l)) nodes[l].place<Padding<2000>>("padding" + std::to_string(l));
    }
    lists[0].place<Padding<400>>("list_padding");
    for (int l = 0; l < shape.num_levels(); ++l) {
      std::vector<int> operations;
      for (int n = 0; n < shape.count(l); ++n) add_coord(operations, kNothing, shape.coord(l, n));
      coords_.push_back(wait_device_copy(program.device(), operations));
    }
  }

  const Node& leaf() const { return nodes.back(); }
  const Node& list_node() const { return lists[0]; }
  Field<unsigned char> topology(int level) const { return nodes[level].topology(); }
  // first x 3, extent x 3.
  std::vector<int> box(int level) const {
    const Coord3 first = shape.first(level), n = shape.cells(level);
    return {first[0], first[1], first[2], n[0], n[1], n[2]};
  }
  static void add_coord(std::vector<int>& operations, int deed, Coord3 c, int a = 0, int b = 0) {
    operations.insert(operations.end(), {deed, c[0], c[1], c[2], a, b});
  }

  // All that it has, by walks and by loops, which must agree with each other and with what memory is in use.
  ModelTree observe() {
    ModelTree found(shape);
    for (int l = 0; l < shape.num_levels(); ++l) {
      if (shape.has_inactive(l)) found.active[l] = ask_active(l);
    }
    const Coord3 first = shape.first(shape.leaf()), n = shape.cells(shape.leaf());
    const Coord3 end{first[0] + n[0], first[1] + n[1], first[2] + n[2]};
    found.x = wait_read(x, first, end), found.y = wait_read(y, first, end);
    read_lists(found);
    check_visits(found);
    check_counts(found);
    return found;
  }

  const MixedShape& shape;
  const uint64_t max_bytes;

 private:
  Program& program_;

 public:
  Tree tree;
  std::vector<Node> nodes, lists;
  Field<int> x, y, v;

 private:
  Node child(const Node& parent, const MixedLevel& level) const {
    const auto make = [&](auto... extents) {
      if (level.kind == device::NodeKind::kDense) return parent.dense({extents...});
      if (level.kind == device::NodeKind::kBitmasked) return parent.bitmasked({extents...});
      return parent.pointer({extents...});
    };
    const auto& [i, j, k] = level.extent;
    return shape.dims == 1 ? make(i) : shape.dims == 2 ? make(i, j) : make(i, j, k);
  }
  Device& device() const { return program_.device(); }

  template <class T>
  std::vector<T> fetch(const Buffer& from, size_t n) const {
    std::vector<T> values(n);
    if (n > 0) device().wait_copy(values.data(), from.data(), n * sizeof(T));
    return values;
  }
  std::vector<uint8_t> ask_active(int level) {
    const auto n = static_cast<size_t>(shape.count(level));
    const auto active = device().reserve(n, n);
    finish(COPPICE_MIXED_BIND(program_, shape.dims, mixed_active, range(static_cast<int64_t>(n)),
                              topology(level), coords_[level]->as<int>(), active->as<uint8_t>())
               .launch());
    return fetch<uint8_t>(*active, n);
  }
  void read_lists(ModelTree& found) {
    const auto n = static_cast<size_t>(shape.count(shape.lists_below));
    const auto buffer = device().reserve(4 * n, 4 * n);
    finish(COPPICE_MIXED_BIND(program_, shape.dims, mixed_lengths, range(static_cast<int64_t>(n)), v,
                              coords_[shape.lists_below]->as<int>(), buffer->as<uint32_t>())
               .launch());
    const std::vector<uint32_t> lengths = fetch<uint32_t>(*buffer, n);
    std::vector<uint32_t> begins(n);
    uint32_t total = 0;
    for (size_t i = 0; i < n; ++i) begins[i] = total, total += lengths[i];
    const auto first = wait_device_copy(device(), begins),
               box_copy = wait_device_copy(device(), box(shape.lists_below)),
               values = wait_device_copy(device(), std::vector<int>(total)),
               visits = wait_device_copy(device(), std::vector<uint32_t>(total));
    finish(COPPICE_MIXED_BIND(program_, shape.dims, mixed_elements, over(list_node()), v, box_copy->as<int>(),
                              buffer->as<uint32_t>(), first->as<uint32_t>(), values->as<int>(),
                              visits->as<uint32_t>())
               .launch());
    const std::vector<int> all = fetch<int>(*values, total);
    for (const uint32_t count : fetch<uint32_t>(*visits, total))
      expect_equal(count, 1u, tree_name() + ": visits of an element by the loop over lists");
    for (size_t i = 0; i < n; ++i)
      found.lists[i].known.assign(all.begin() + begins[i], all.begin() + begins[i] + lengths[i]);
    check_a_walk(found);
  }
  // One list is also read by walks, another one each time.
  void check_a_walk(const ModelTree& found) {
    const int n = static_cast<int>(++looks_ * 7 % found.lists.size());
    if (wait_read_list(v, shape.coord(shape.lists_below, n)) != found.lists[n].known)
      throw Mismatch(
          fmt::format("{}: the walk through list {} and the loop over lists differ", tree_name(), n));
  }
  void check_visits(const ModelTree& found) {
    const auto n = static_cast<size_t>(shape.count(shape.leaf()));
    const auto visits = wait_device_copy(device(), std::vector<uint32_t>(n)),
               box_copy = wait_device_copy(device(), box(shape.leaf()));
    finish(COPPICE_MIXED_BIND(program_, shape.dims, mixed_visits, over(leaf()), box_copy->as<int>(),
                              visits->as<uint32_t>())
               .launch());
    const std::vector<uint32_t> counts = fetch<uint32_t>(*visits, n);
    for (int i = 0; i < static_cast<int>(n); ++i)
      expect_equal(counts[i], found.is_active(shape.leaf(), i),
                   fmt::format("{}: visits of leaf cell {}", tree_name(), i));
  }
  // A leak is a cell in use that nothing leads to.
  void check_counts(const ModelTree& found) {
    for (int l = 0; l < shape.num_levels(); ++l) {
      for (int i = 0; i < shape.count(l); ++i) {
        if (shape.has_inactive(l) && found.active[l][i] && !found.is_active(l, i))
          throw Mismatch(
              fmt::format("{}: cell {} of node {} is active, what holds it is not", tree_name(), i, l));
      }
      expect_equal(nodes[l].wait_usage().active_cells, found.count_cells(l),
                   fmt::format("{}: cells of node {} in use", tree_name(), l));
    }
    expect_equal(list_node().wait_usage().active_cells, found.count_chunks(),
                 tree_name() + ": chunks in use");
  }
  std::string tree_name() const { return nodes[0].path(); }

  std::vector<IntrusivePtr<Buffer>> coords_;  // operations that name all cells of a node, by level
  uint64_t looks_ = 0;
};

}  // namespace coppice::mixed
