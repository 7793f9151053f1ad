// Lists of dynamic nodes beside a model of them: a map from a list to a vector of its elements.
//
// A batch is one launch of many operations whose order does not count: a list is appended to in it,
// or written by index, or it goes (with its parent or alone). Where appends end up is theirs to say;
// they must say every place once.
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

#include "list_model.kernels.h"
#include "sparse/device/random.h"
#include "sparse/program.h"
#include "sparse/tree.h"
#include "tests/sparse/model_runs.h"
#include "tests/sparse/staging.h"
#include "tests/sparse/test_devices.h"

namespace coppice {

enum class ListParent { kDense, kPointer, kPointerDense, kPointerBitmasked };
inline constexpr const char* kListParentNames[] = {"Dense", "Pointer", "PointerDense", "PointerBitmasked"};

class ModelledLists {
 public:
  using List = std::array<int, 2>;
  static constexpr int kRows = 9, kColumns = 7, kChunk = 4;

  ModelledLists(const IntrusivePtr<Device>& device, Program& program, ListParent parent)
      : program_(program), parent_(parent), tree_(device), lists_(describe()), x_(lists_.place<int>("x")) {
    wait_room(*device, lists_, 1 << 17);
  }

  // One launch of `n` operations, or some less: of the writes to one element only one is kept.
  void run_batch(std::mt19937& random, int n) {
    auto pick = [&](size_t below) { return static_cast<int>(random() % below); };
    const unsigned salt = random(), going_of_8 = random() % 6;
    std::vector<int> packed;
    std::set<std::array<int, 3>> written;
    for (int i = 0; i < n; ++i) {
      const List list{pick(kRows), pick(kColumns)}, top = block_of(list);
      if (hash_u32(salt, top[0], top[1]) % 8 < going_of_8) {
        const bool with_parent = parent_ != ListParent::kDense && pick(3) == 0;
        const List& at = with_parent ? top : list;
        packed.insert(packed.end(), {with_parent ? kDeactivateParent : kClear, at[0], at[1], 0, 0});
      } else if (hash_u32(salt + 1, list[0], list[1]) % 3 != 0) {
        packed.insert(packed.end(), {kAppend, list[0], list[1], 1 + pick(1000), 0});
      } else {
        const int index = pick(elements_[list].size() + 20);
        if (written.insert({list[0], list[1], index}).second)
          packed.insert(packed.end(), {kSet, list[0], list[1], index, 1 + pick(1000)});
      }
    }
    const size_t operations = packed.size() / 5;
    std::vector<uint32_t> index(operations);
    run_on(program_, apply_list_batch2, range(static_cast<int64_t>(operations)), x_, outer_.topology(),
           packed, index);
    model(packed, index);
  }
  void deactivate_all() {
    finish(tree_.deactivate_all());
    elements_.clear(), blocks_.clear();
  }
  void check() {
    check_lengths();
    if (!testing::Test::HasFatalFailure()) check_elements();
  }

 private:
  enum { kAppend, kSet, kClear, kDeactivateParent };  // as in list_model.kernels.cc

  Node describe() {
    const Node root = tree_.root();
    switch (parent_) {
      case ListParent::kDense:
        outer_ = root.dense({kRows, kColumns});
        return outer_.dynamic(1 << 20, kChunk);
      case ListParent::kPointer:
        outer_ = root.pointer({kRows, kColumns});
        return outer_.dynamic(1 << 20, kChunk);
      case ListParent::kPointerDense:
        outer_ = root.pointer({3, kColumns});
        return outer_.dense({3, 1}).dynamic(1 << 20, kChunk);
      case ListParent::kPointerBitmasked:
        outer_ = root.pointer({3, kColumns});
        return outer_.bitmasked({3, 1}).dynamic(1 << 20, kChunk);
    }
    throw std::logic_error("parent");
  }
  // The outermost node's cell that holds a list.
  List block_of(List list) const {
    const bool divided = parent_ == ListParent::kPointerDense || parent_ == ListParent::kPointerBitmasked;
    return {list[0] / (divided ? 3 : 1), list[1]};
  }

  // ---- the model
  void model(const std::vector<int>& packed, const std::vector<uint32_t>& index) {
    std::map<List, std::map<uint32_t, int>> appended;
    for (size_t i = 0; i < index.size(); ++i) {
      const int* o = &packed[5 * i];
      const List list{o[1], o[2]};
      if (o[0] == kAppend) {
        ASSERT_TRUE(appended[list].emplace(index[i], o[3]).second) << "index " << index[i] << " twice";
        blocks_.insert(block_of(list));
      } else if (o[0] == kSet) {
        std::vector<int>& to = elements_[list];
        to.resize(std::max(to.size(), static_cast<size_t>(o[3]) + 1));
        to[o[3]] = o[4];
        blocks_.insert(block_of(list));
      } else if (o[0] == kClear) {
        elements_.erase(list);
      } else {
        blocks_.erase(list);
        std::erase_if(elements_, [&](const auto& entry) { return block_of(entry.first) == list; });
      }
    }
    for (const auto& [list, values] : appended) {
      std::vector<int>& to = elements_[list];
      ASSERT_EQ(values.begin()->first, to.size()) << "where appends begin";
      for (const auto& [at, value] : values) {
        ASSERT_EQ(at, to.size()) << "a place that no append had";
        to.push_back(value);
      }
    }
  }

  // ---- comparison
  void check_lengths() {
    std::vector<uint32_t> lengths(kRows * kColumns);
    std::vector<uint8_t> active(lengths.size());
    run_on(program_, list_lengths2, range(kRows * kColumns), x_, lists_.topology(), kColumns, lengths,
           active);
    uint64_t chunks = 0;
    for (int i = 0; i < kRows * kColumns; ++i) {
      const auto found = elements_.find({i / kColumns, i % kColumns});
      const size_t expected = found == elements_.end() ? 0 : found->second.size();
      ASSERT_EQ(lengths[i], expected) << i / kColumns << ", " << i % kColumns;
      ASSERT_EQ(active[i] != 0, expected != 0) << i / kColumns << ", " << i % kColumns;
      chunks += (expected + kChunk - 1) / kChunk;
    }
    ASSERT_EQ(lists_.wait_usage().active_cells, chunks);
    if (parent_ != ListParent::kDense) {
      ASSERT_EQ(outer_.wait_usage().active_cells, blocks_.size());
    }
  }
  void check_elements() {
    std::vector<int> places, expected;
    std::vector<uint32_t> first(kRows * kColumns);
    for (const auto& [list, values] : elements_) {
      first[list[0] * kColumns + list[1]] = static_cast<uint32_t>(expected.size());
      for (size_t k = 0; k < values.size(); ++k)
        places.insert(places.end(), {list[0], list[1], static_cast<int>(k)}), expected.push_back(values[k]);
    }
    std::vector<int> walked(expected.size(), -1), looped(expected.size(), -1);
    std::vector<uint32_t> visits(expected.size());
    run_on(program_, read_elements2, range(static_cast<int64_t>(expected.size())), x_, places, walked);
    run_on(program_, copy_entries2, over(lists_), x_, kColumns, first, looped, visits);
    ASSERT_EQ(walked, expected);
    ASSERT_EQ(looped, expected);
    ASSERT_EQ(visits, std::vector<uint32_t>(expected.size(), 1));
  }

  Program& program_;
  const ListParent parent_;
  Tree tree_;
  Node outer_ = tree_.root();
  Node lists_;
  Field<int> x_;
  std::map<List, std::vector<int>> elements_;
  std::set<List> blocks_;  // active cells of the outermost node
};

using ListModel = ModelTest<ModelledLists, ListParent>;

inline std::string list_test_name(const testing::TestParamInfo<ListModel::ParamType>& info) {
  return std::string(kListParentNames[static_cast<int>(std::get<1>(info.param))]) + "_" +
         std::get<0>(info.param);
}
inline auto all_list_models() {
  return testing::Combine(testing::ValuesIn(test_devices()),
                          testing::Values(ListParent::kDense, ListParent::kPointer, ListParent::kPointerDense,
                                          ListParent::kPointerBitmasked));
}

}  // namespace coppice
