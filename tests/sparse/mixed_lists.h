// Launches of mixed_launches.h that append to lists, write them by index, clear and read them.
#pragma once
#include "tests/sparse/mixed_changes.h"

namespace coppice::mixed {

// Lists that one item has for itself, that are written by index, that are appended to, and that are
// contended; a plain plan has none of the latter, and no items that read or activate.
inline MixedLaunches::ListPlan MixedLaunches::plan_lists(int a, int b, int n, int per, bool is_plain) {
  ListPlan plan;
  const unsigned salt = (*random_)();
  std::map<int, int> owner;
  std::set<std::pair<int, int>> written;
  for (int k = 0; k < n * per; ++k) {
    const int list = pick_list(a), item = k / per;
    const std::vector<int>& known = (*models_)[a].lists[list].known;
    const int index = pick(size(known) + 12),
              mode = static_cast<int>(hash_u32(salt, static_cast<uint64_t>(list)) % 4);
    const bool is_own = owner.try_emplace(list, item).first->second == item,
               is_contended = mode == 0 && !is_plain;
    if (!is_plain && pick(5) == 0) {
      add(plan.operations, kActivateLeaf, leaf_coord(b, pick_leaf(b)));
    } else if (is_contended || (mode == 1 && is_own)) {
      add_list(plan.operations, a, pick(4) == 0 ? kClear : kAppend, list, next_value_++,
               is_contended ? kContended : kInOrder);
    } else if (mode == 2 && is_known(a, list) && written.emplace(list, index).second) {
      add_list(plan.operations, a, kSetElement, list, index, next_value_++);
    } else if (mode == 3 && !is_plain && is_known(a, list) && index < size(known) && pick(2) == 0) {
      plan.reads[plan.operations.size() / kNumbers] = known[index];
      add_list(plan.operations, a, kReadList, list, index, 0);
    } else if (mode == 3) {
      add_list(plan.operations, a, kAppend, list, next_value_++, kAnyOrder);
    } else {
      add(plan.operations, kNothing, leaf_coord(b, 0));
    }
  }
  return plan;
}
inline MixedLaunch MixedLaunches::lists(int a, int b) {
  MixedLaunch launch = named("lists", a, b);
  const int per = 1 + pick(4), n = draw_count();
  const auto [operations, reads] = plan_lists(a, b, n, per, false);
  apply_items(launch, {a, b, a}, operations);
  uint32_t* const index = keep_indices(launch, a, operations, per);
  int* const read = keep(launch, std::vector<int>(operations.size() / kNumbers, -1));
  launch.verify = [this, reads = reads, buffer = launch.kept.back(),
                   before = launch.verify](const Models& now) {
    before(now);
    if (reads.empty()) return;
    const std::vector<int> found = fetch<int>(*buffer, reads.rbegin()->first + 1);
    for (const auto& [at, value] : reads) expect_equal(found[at], value, "what an item read beside appends");
  };
  launch.bound =
      COPPICE_MIXED_BIND(program_, shape(a).dims, mixed_lists, range(n), trees_[a]->v,
                         trees_[b]->topology(shape(b).leaf()), keep(launch, operations), per, index, read);
  launch.is_alone = launch.removes = launch.may_lack_room = true;
  return launch;
}
inline MixedLaunch MixedLaunches::refill(int a) {
  MixedLaunch launch = named("refill", a, a);
  const int per = 1 + pick(4), n = draw_count();
  const std::vector<int> operations = plan_lists(a, a, n, per, true).operations;
  apply_items(launch, {a, a, a}, operations);
  launch.bound = COPPICE_MIXED_BIND(program_, shape(a).dims, mixed_refill, range(n), trees_[a]->v,
                                    keep(launch, operations), per);
  launch.removes = true;
  return launch;
}

// Where appends say that their elements are, they are.
inline uint32_t* MixedLaunches::keep_indices(MixedLaunch& launch, int a, const std::vector<int>& operations,
                                             int per) {
  uint32_t* const index = keep(launch, std::vector<uint32_t>(operations.size() / kNumbers, kNoPlace));
  std::vector<size_t> before;
  for (const ModelList& list : (*models_)[a].lists) before.push_back(list.size());
  launch.verify = [this, a, operations, per, before, buffer = launch.kept.back()](const Models& now) {
    const std::vector<uint32_t> found = fetch<uint32_t>(*buffer, operations.size() / kNumbers);
    for (size_t i = 0; i < found.size(); ++i) {
      const int* o = &operations[i * kNumbers];
      if (o[0] != kAppend || o[5] != kAnyOrder) continue;
      const int list = shape(a).number(shape(a).lists_below, {o[1], o[2], o[3]});
      const std::vector<int>& values = now[a].lists[list].known;
      if (found[i] >= values.size() || values[found[i]] != o[4])
        throw Mismatch(fmt::format("tree {}: an append to list {} gave index {}, where its value is not", a,
                                   list, found[i]));
    }
    check_contended(a, operations, static_cast<size_t>(per), found, before, now);
  };
  return index;
}

// A list that items clear and append to holds what some order of their calls leaves: elements stand where
// their appends said; an item's are the last of its appends behind its last clear; and there is an item that
// cleared last of all, of which nothing behind that is lost.
inline void MixedLaunches::check_contended(int a, const std::vector<int>& operations, size_t per,
                                           const std::vector<uint32_t>& index,
                                           const std::vector<size_t>& before, const Models& now) const {
  struct Script {
    bool clears = false;
    std::vector<size_t> appends;  // behind its last clear
  };
  std::map<int, std::map<size_t, Script>> lists;  // by list and item
  for (size_t i = 0; i < index.size(); ++i) {
    const int* o = &operations[i * kNumbers];
    if ((o[0] != kAppend && o[0] != kClear) || o[5] != kContended) continue;
    Script& script = lists[shape(a).number(shape(a).lists_below, {o[1], o[2], o[3]})][i / per];
    if (o[0] == kClear)
      script.clears = true, script.appends.clear();
    else
      script.appends.push_back(i);
  }
  for (const auto& [list, items] : lists) {
    const std::vector<int>& values = now[a].lists[list].known;
    const auto is_there = [&](size_t i) {
      return index[i] < values.size() && values[index[i]] == operations[i * kNumbers + 4];
    };
    bool any_clears = false, some_clear_was_last = false;
    size_t found = 0;
    for (const auto& [item, script] : items) {
      size_t left = 0;
      for (const size_t i : script.appends) {
        if (!is_there(i) && left > 0)
          throw Mismatch(
              fmt::format("tree {}, list {}: an item's append is lost, and an earlier one is not", a, list));
        left += is_there(i);
      }
      found += left, any_clears |= script.clears;
      some_clear_was_last |= script.clears && left == script.appends.size();
    }
    if (any_clears && (!some_clear_was_last || found != values.size()))
      throw Mismatch(fmt::format("tree {}, list {}: {} elements, of which {} are behind a clear", a, list,
                                 values.size(), found));
    if (!any_clears && found + before[list] != values.size())
      throw Mismatch(
          fmt::format("tree {}, list {}: {} elements, {} of them appended", a, list, values.size(), found));
  }
}

}  // namespace coppice::mixed
