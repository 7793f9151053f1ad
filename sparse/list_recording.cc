// Loops' lists in recordings (launch_run.h; see loop_lists.h): memory that stays where it is, and news of
// what replays did.
#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "gpu/host_access.h"
#include "sparse/loop_lists.h"

namespace coppice {

using device::ListState;
using device::TreeState;

void LoopLists::begin_recording(InStream&, bool can_change) {
  can_change_ = can_change;
  scratch_.begin_recording();
  needed_.clear();
}

void LoopLists::update(InStream& s, const NeededLists& needed) {
  for (const auto& [node, with_neighbours] : needed) update(s, node, with_neighbours);
}

// Records what brings a list up to date; does nothing where that has been done, and the topology cannot
// have changed since.
void LoopLists::record_list(InStream& s, LoopList& list, uint32_t node, bool with_neighbours) {
  const auto has = [&](bool neighbours) {
    return std::find(needed_.begin(), needed_.end(), std::pair(node, neighbours)) != needed_.end();
  };
  const bool is_made = has(false) || has(true), has_table = has(true);
  if (!is_made || (with_neighbours && !has_table)) needed_.emplace_back(node, with_neighbours);
  if (!can_change_) {
    COPPICE_CHECK(list.version == list_version(node), "lists of trees that stay as they are have been made");
    return;
  }
  if (!is_made) make_list(s, node, list);
  if (with_neighbours && !has_table) make_neighbours(s, node, list);
}

void LoopLists::keep_for_recording(InStream&, std::vector<IntrusivePtr<RefCounted>>& kept) {
  scratch_.keep_for_recording(kept);
  for (const std::unique_ptr<LoopList>& list : lists_) {
    if (list && list->elements) kept.emplace_back(list->elements);
    if (list && list->neighbours) kept.emplace_back(list->neighbours);
  }
}

void LoopLists::forget_lost(InStream& s) {
  for (const uint32_t number : lost_) {
    write_value(s, memory_.list_state(number), ListState{0, ~uint64_t{0}, ~uint64_t{0}});
  }
  lost_.clear();
}

void LoopLists::wait_sync_after_replays(InStream& s) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(memory_.state());
  const std::vector<std::byte> read =
      wait_read(s, bytes, sizeof(TreeState) + layout_.nodes().size() * sizeof(ListState));
  TreeState now;
  std::memcpy(&now, read.data(), sizeof now);
  version_ = now.version, lists_version_ = now.lists_version;
  for (const std::unique_ptr<LoopList>& list : lists_) {
    if (!list) continue;
    ListState its;
    std::memcpy(&its, read.data() + sizeof now + list->number * sizeof its, sizeof its);
    list->items = its.count, list->version = its.version, list->neighbour_version = its.neighbour_version;
  }
}

}  // namespace coppice
