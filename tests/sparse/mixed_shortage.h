// The mixed model (mixed_model.h) expects this of a launch that ran out of memory (docs/sparse.md, "Running
// out of memory").
#pragma once
#include "tests/sparse/mixed_loops.h"

namespace coppice::mixed {

inline bool is_about_reserve(const Error& error) {
  return std::string(error.what()).find("reserve(n)") != std::string::npos;
}

// Only kOutOfMemory; and where there is no limit, only where memory is mapped before a
// launch whose needs cannot be told.
inline void check_error(const Error& error, bool may_lack_room, bool is_limited, const Device& device) {
  const bool is_told_apart =
      is_about_reserve(error) ? may_lack_room && !device.commits_on_touch() : is_limited;
  if (error.code() != ErrorCode::kOutOfMemory || !is_told_apart)
    throw Mismatch(std::string("an error that may not be: ") + error.what());
}

// Where memory comes with its first touch: may what a launch took not have fitted? `ever` are the cells of
// each node, and chunks, that were in use at any time before; what one node freed no other can have.
// Threads hold some for each other.
inline bool lacks_room(const MixedTree& tree, const ModelTree& after, const uint64_t* ever) {
  constexpr uint64_t kHeld = 8;
  uint64_t bytes = 0;
  const auto add = [&](const Node& node, uint64_t before, uint64_t needed) {
    const NodeUsage usage = node.wait_usage();
    bytes += usage.cell_bytes / (usage.capacity_cells + 1) * (std::max(before, needed) + kHeld + 1);
  };
  for (int l = 0; l < tree.shape.num_levels(); ++l) {
    if (tree.shape.is_pointer(l)) add(tree.nodes[l], ever[l], after.count_cells(l) + 2 * after.taken[l]);
  }
  add(tree.list_node(), ever[tree.shape.num_levels()], after.count_chunks() + 2 * after.taken_chunks);
  return bytes > tree.max_bytes;
}

// Values and activity may be those of before or after; where a launch did not run, or changes only what is
// there, they are all of one kind.
template <class T>
void check_each(const std::vector<T>& before, const std::vector<T>& after, const std::vector<T>& found,
                bool may_be_zero, const std::string& what) {
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] == before[i] || found[i] == after[i] || (may_be_zero && found[i] == T{})) continue;
    throw Mismatch(fmt::format("{} {} is {}, was {}, and {} had there been room", what, i, found[i],
                               before[i], after[i]));
  }
}

// Checks a list that was only appended to: it has what it had, and some of what came, none twice.
inline void check_appended(const ModelList& before, const ModelList& after, const std::vector<int>& found,
                           const std::string& what) {
  std::vector<int> had = before.values();
  std::map<int, int> may_come;
  for (const int value : after.values()) ++may_come[value];
  ModelList prefix = before;
  if (found.size() < had.size() ||
      !prefix.allows({found.begin(), found.begin() + static_cast<ptrdiff_t>(had.size())}))
    throw Mismatch(what + ": lost elements");
  for (const int value : found) {
    if (--may_come[value] < 0) throw Mismatch(fmt::format("{}: {} twice, or never appended", what, value));
  }
}

inline void check_between(const ModelTree& before, const ModelTree& after, const ModelTree& found,
                          const MixedLaunch& launch, bool ran, const std::string& what) {
  const bool is_whole = launch.changes_values;  // its values need no cells
  const bool happened = ran || launch.happens_in_part;
  // The run that makes room takes nothing away, so that what came and went in one item is there.
  for (size_t l = 0; l < found.active.size() && !launch.removes; ++l)
    check_each(before.active[l], after.active[l], found.active[l], false,
               fmt::format("{}: activity in node {}, cell", what, l));
  const ModelTree& least = happened && is_whole ? after : before;
  const ModelTree& most = happened ? after : before;
  check_each(least.x, most.x, found.x, happened && launch.removes, what + ": x");
  check_each(least.y, most.y, found.y, happened && launch.removes, what + ": y");
  if (happened && (launch.removes || is_whole)) return;
  for (size_t i = 0; i < found.lists.size(); ++i)
    check_appended(before.lists[i], most.lists[i], found.lists[i].known, fmt::format("{}: list {}", what, i));
}

}  // namespace coppice::mixed
