// Trees in two dimensions beside a model of them: a set of active cells per level and a map of values.
//
// A batch is one launch of many operations whose order does not count: the cells of the outermost node either
// only come in it (activation, writes) or only go (deactivation at any level). After it, lists, usage, values
// and activity must be the model's, whatever the threads did.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "sparse/device/random.h"
#include "sparse/program.h"
#include "sparse/tree.h"
#include "tests/sparse/model_runs.h"
#include "tests/sparse/staging.h"
#include "tests/sparse/test_devices.h"
#include "topology_model.kernels.h"

namespace coppice {

using Coord2 = std::array<int, 2>;

enum class ModelKind {
  kPointerDense,
  kPointerPointerDense,
  kPointerBitmasked,
  kBitmaskedBitmasked,
  kPointerPointer,     // values in the cells of a pointer node
  kMixedPointerBits,   // rows by pointer, columns by bits
  kMixedPointerDense,  // columns, then rows, then both
  kBitmaskedPointerDense,
};
inline constexpr const char* kModelKindNames[] = {
    "PointerDense",   "PointerPointerDense", "PointerBitmasked",  "BitmaskedBitmasked",
    "PointerPointer", "MixedPointerBits",    "MixedPointerDense", "BitmaskedPointerDense",
};

class ModelledTree {
 public:
  // 60 coordinates per axis, in ways to divide them that are no powers of two; the lowest ones are
  // whole cells of every inner node.
  static constexpr int kExtent = 60;

  ModelledTree(const IntrusivePtr<Device>& device, Program& program, ModelKind kind)
      : program_(program),
        first_(kind == ModelKind::kMixedPointerBits    ? Coord2{-20, -60}
               : kind == ModelKind::kMixedPointerDense ? Coord2{-60, -35}
                                                       : Coord2{-20, -36}),
        tree_(device, {.origin = {first_[0], first_[1]}}),
        leaf_(describe(kind)),
        x_(leaf_.place<int>("x")) {
    for (const Node& node : renewed_) wait_room(*device, node, 1 << 16);
  }

  // One launch of `n` operations, or some less: of the writes to one cell only one is kept.
  void run_batch(std::mt19937& random, int n) {
    auto pick = [&](int below) { return static_cast<int>(random() % static_cast<unsigned>(below)); };
    std::vector<int> packed;
    std::vector<std::pair<size_t, Coord2>> gone;
    std::map<Coord2, int> written;
    std::vector<Coord2> activated;
    const unsigned salt = random(), going_of_8 = static_cast<unsigned>(pick(9));  // none to all
    for (int i = 0; i < n; ++i) {
      const Coord2 c{first_[0] + pick(kExtent), first_[1] + pick(kExtent)};
      const Coord2 top = block_of(0, c);
      const bool goes = hash_u32(salt, top[0], top[1]) % 8 < going_of_8;
      const size_t level = goes ? static_cast<size_t>(pick(num_levels())) : 0;
      if (goes) {
        gone.emplace_back(level, c);
        const Coord2 at = coordinate_at(level, c);
        packed.insert(packed.end(), {kDeactivateFirst + static_cast<int>(level), at[0], at[1], 0});
      } else if (const bool is_written = pick(3) != 0; is_written) {
        const int value = 1 + pick(1000);
        if (!written.emplace(c, value).second) continue;
        packed.insert(packed.end(), {kSet, c[0], c[1], value});
      } else {
        activated.push_back(c);
        packed.insert(packed.end(), {kActivate, c[0], c[1], 0});
      }
    }
    run_on(program_, apply_batch2, range(static_cast<int64_t>(packed.size() / 4)), x_, leaf_.topology(),
           inner_.front().topology(), inner_.back().topology(), packed, static_cast<int>(inner_.size()));
    for (const auto& [level, c] : gone) model_deactivate(level, c);
    for (const auto& [c, value] : written) model_activate(c), values_[c] = value;
    for (const Coord2& c : activated) model_activate(c);
  }
  void deactivate_all() {
    finish(tree_.deactivate_all());
    for (auto& level : active_) level.clear();
    cells_.clear(), values_.clear();
  }
  void check() {
    check_lists();
    if (!testing::Test::HasFatalFailure()) check_cells();
  }

 private:
  // Kinds of operations as topology_model.kernels.cc has them; deactivation counts on by level, inner ones
  // first.
  enum { kActivate, kSet, kDeactivateFirst };

  Node describe(ModelKind kind) {
    const Node root = tree_.root();
    leaf_has_inactive_cells_ = kind == ModelKind::kPointerBitmasked ||
                               kind == ModelKind::kBitmaskedBitmasked || kind == ModelKind::kPointerPointer ||
                               kind == ModelKind::kMixedPointerBits;
    counts_inner_ = kind != ModelKind::kBitmaskedBitmasked;
    leaf_is_pointer_ = kind == ModelKind::kPointerPointer;
    switch (kind) {
      case ModelKind::kPointerDense:
        inner_ = {root.pointer({12, 15})}, sizes_ = {{5, 4}};
        return inner_[0].dense({5, 4});
      case ModelKind::kPointerPointerDense:
        inner_ = {root.pointer({3, 5})}, sizes_ = {{20, 12}, {5, 3}};
        inner_.push_back(inner_[0].pointer({4, 4}));
        renewed_ = {inner_[1]};
        return inner_[1].dense({5, 3});
      case ModelKind::kPointerBitmasked:
        inner_ = {root.pointer({6, 10})}, sizes_ = {{10, 6}};
        return inner_[0].bitmasked({10, 6});
      case ModelKind::kBitmaskedBitmasked:
        inner_ = {root.bitmasked({6, 10})}, sizes_ = {{10, 6}};
        return inner_[0].bitmasked({10, 6});
      case ModelKind::kPointerPointer:
        inner_ = {root.pointer({12, 15})}, sizes_ = {{5, 4}};
        renewed_ = {inner_[0].pointer({5, 4})};
        return renewed_[0];
      case ModelKind::kMixedPointerBits:
        inner_ = {root.pointer({Axis::i}, {60})}, sizes_ = {{1, 60}};
        return inner_[0].bitmasked({Axis::j}, {60});
      case ModelKind::kMixedPointerDense:
        inner_ = {root.pointer({Axis::j}, {12})}, sizes_ = {{60, 5}, {4, 5}};
        inner_.push_back(inner_[0].pointer({Axis::i}, {15}));
        return inner_[1].dense({4, 5});
      case ModelKind::kBitmaskedPointerDense:
        inner_ = {root.bitmasked({3, 5})}, sizes_ = {{20, 12}, {5, 3}};
        inner_.push_back(inner_[0].pointer({4, 4}));
        renewed_ = {inner_[1]};
        return inner_[1].dense({5, 3});
    }
    throw std::logic_error("kind");
  }
  // Levels that can be deactivated.
  int num_levels() const { return static_cast<int>(inner_.size()) + (leaf_has_inactive_cells_ ? 1 : 0); }

  Coord2 block_of(size_t level, Coord2 c) const {
    return {(c[0] - first_[0]) / sizes_[level][0], (c[1] - first_[1]) / sizes_[level][1]};
  }
  // Inner nodes count in their own cells, from as many of them below zero.
  Coord2 coordinate_at(size_t level, Coord2 c) const {
    if (level == inner_.size()) return c;
    const Coord2 block = block_of(level, c);
    return {block[0] + first_[0] / sizes_[level][0], block[1] + first_[1] / sizes_[level][1]};
  }

  // ---- the model
  void model_activate(Coord2 c) {
    for (size_t l = 0; l < inner_.size(); ++l) active_[l].insert(block_of(l, c));
    if (leaf_has_inactive_cells_) cells_.insert(c);
  }
  bool model_is_active(Coord2 c) const {
    for (size_t l = 0; l < inner_.size(); ++l) {
      if (!active_[l].contains(block_of(l, c))) return false;
    }
    return !leaf_has_inactive_cells_ || cells_.contains(c);
  }
  // The entries of a rectangle [low, high) go from a set of or a map by coordinates.
  template <class Container>
  static void erase_rectangle(Container& from, Coord2 low, Coord2 high) {
    for (int i = low[0]; i < high[0]; ++i)
      from.erase(from.lower_bound({i, low[1]}), from.lower_bound({i, high[1]}));
  }
  // A cell goes, with everything below it.
  void model_deactivate(size_t level, Coord2 c) {
    if (level == inner_.size()) {
      cells_.erase(c), values_.erase(c);
      return;
    }
    const Coord2 block = block_of(level, c), size = sizes_[level];
    if (active_[level].erase(block) == 0) return;
    const Coord2 low{block[0] * size[0], block[1] * size[1]}, high{low[0] + size[0], low[1] + size[1]};
    for (size_t l = level + 1; l < inner_.size(); ++l) {
      erase_rectangle(active_[l], {low[0] / sizes_[l][0], low[1] / sizes_[l][1]},
                      {high[0] / sizes_[l][0], high[1] / sizes_[l][1]});
    }
    const Coord2 from{low[0] + first_[0], low[1] + first_[1]}, to{high[0] + first_[0], high[1] + first_[1]};
    erase_rectangle(cells_, from, to);
    erase_rectangle(values_, from, to);
  }

  // ---- comparison
  void check_lists() {
    const std::set<Coord2>& holders = active_[inner_.size() - 1];
    const uint64_t n = leaf_.wait_num_active_blocks();
    ASSERT_EQ(n, holders.size());
    std::vector<int> origins(2 * n);
    run_on(program_, list_origins2, over(leaf_), origins);
    std::vector<Coord2> listed;
    for (uint64_t i = 0; i < n; ++i)
      listed.push_back(block_of(inner_.size() - 1, {origins[2 * i], origins[2 * i + 1]}));
    ASSERT_EQ(std::set<Coord2>(listed.begin(), listed.end()), holders);
    for (size_t l = 0; counts_inner_ && l < inner_.size(); ++l)
      ASSERT_EQ(inner_[l].wait_usage().active_cells, active_[l].size()) << "level " << l;
    if (leaf_is_pointer_) {
      ASSERT_EQ(leaf_.wait_usage().active_cells, cells_.size());
    }
  }
  // Values and activity everywhere; a loop over the cells visits the active ones once.
  void check_cells() {
    std::vector<int> c;
    for (int i = 0; i < kExtent * kExtent; ++i)
      c.insert(c.end(), {first_[0] + i / kExtent, first_[1] + i % kExtent});
    const size_t n = c.size() / 2;
    std::vector<int> got(n), is_active(n), visits(n);
    run_on(program_, look_up2, range(static_cast<int64_t>(n)), x_, leaf_.topology(), c, got, is_active);
    run_on(program_, count_visits2, over(leaf_), visits, first_[0], first_[1], kExtent);
    for (size_t i = 0; i < n; ++i) {
      const Coord2 at{c[2 * i], c[2 * i + 1]};
      const auto value = values_.find(at);
      const int expected = model_is_active(at) ? 1 : 0;
      ASSERT_EQ(got[i], value == values_.end() ? 0 : value->second) << at[0] << ", " << at[1];
      ASSERT_EQ(is_active[i] != 0, expected != 0) << at[0] << ", " << at[1];
      ASSERT_EQ(visits[i], expected) << at[0] << ", " << at[1];
    }
  }

  Program& program_;
  Coord2 first_;
  Tree tree_;
  std::vector<Node> inner_;    // outside in
  std::vector<Node> renewed_;  // pointer nodes below others: their cells come again and again in a launch
  std::vector<Coord2> sizes_;  // coordinates that a cell of each inner node covers
  bool leaf_has_inactive_cells_ = false, counts_inner_ = true, leaf_is_pointer_ = false;
  Node leaf_;
  Field<int> x_;
  std::array<std::set<Coord2>, 2> active_;  // cells of the inner nodes
  std::set<Coord2> cells_;                  // of a leaf that has inactive ones
  std::map<Coord2, int> values_;
};

using TopologyModel = ModelTest<ModelledTree, ModelKind>;

inline std::string model_test_name(const testing::TestParamInfo<TopologyModel::ParamType>& info) {
  return std::string(kModelKindNames[static_cast<int>(std::get<1>(info.param))]) + "_" +
         std::get<0>(info.param);
}
inline auto all_models() {
  std::vector<ModelKind> kinds;
  for (size_t i = 0; i < std::size(kModelKindNames); ++i) kinds.push_back(static_cast<ModelKind>(i));
  return testing::Combine(testing::ValuesIn(test_devices()), testing::ValuesIn(kinds));
}

}  // namespace coppice
