// The lists that loops run through (see tree_storage.h): made anew when the topology has changed since, and only then.
//
// A list goes through the slots of the nearest pointer node above, container by container, which are in order already. Where
// these are many and few of them hold something (and for chunks of dynamic nodes) it is a select over the allocator's
// cells and a sort by coordinate. Containers further down follow from their cell. In stream order.
#include <vector>

#include "core/error.h"
#include "gpu/stream_primitives.h"
#include "sparse/runtime_launch.h"
#include "sparse/tree_storage.h"
#include "topology.kernels.h"

namespace coppice {

using device::Element;
using device::NodeKind;

namespace {

// Cells that one item of the selection looks at: one atomic for all of them.
constexpr uint32_t kSelectionBatch = 64;
// Slots that one item looks at, and how many slots per live cell are still quicker to look through than a sort.
constexpr uint32_t kSlotBatch = 1024;
constexpr uint64_t kSlotsPerCell = 32, kFewSlots = 1 << 16;

uint32_t max_chunks(const NodeDescription& n) {
  return n.kind == NodeKind::kDynamic ? static_cast<uint32_t>((n.max_length + n.num_cells - 1) / n.num_cells)
                                      : 1;
}

}  // namespace

// How many values coordinate keys of a node can have, which tells how wide they need to be. Saturates.
uint64_t TreeStorage::key_space(const std::vector<uint32_t>& path, size_t levels) const {
  unsigned __int128 space = 1;
  for (size_t l = 0; l < levels; ++l) {
    const NodeDescription& n = nodes_[path[l]];
    space *= n.kind == NodeKind::kDynamic ? max_chunks(n) : n.num_cells;
    if (space >> 64 != 0) return ~uint64_t{0};
  }
  return static_cast<uint64_t>(space);
}

// Leaves the live cells of the node at `level` of the path in scratch_cells_, in order of their coordinates; returns how
// many there are. `node` is what the list is for.
uint64_t TreeStorage::select_cells(uint32_t node, const std::vector<uint32_t>& path, size_t level) {
  const NodeDescription& n = nodes_[path[level]];
  const device::AllocatorState* allocator = &state()->allocators[n.allocator];
  const device::AllocatorState a = wait_read_inline(stream(), allocator);
  const uint32_t num_cells = std::min(a.num_cells, a.capacity);
  const uint64_t space = key_space(path, level + 1);
  if (space == ~uint64_t{0})
    throw Error(ErrorCode::kInvalidArgument,
                this->path(node) + ": a loop over it would need keys of more than 64 bits");
  const bool narrow = space <= uint64_t{1} << 32;
  bool masked = false;
  for (size_t l = 0; l < level; ++l) masked |= nodes_[path[l]].kind == NodeKind::kBitmasked;
  ensure_items<uint64_t>(*device_, scratch_keys_, num_cells);
  ensure_items<uint32_t>(*device_, scratch_cells_, num_cells);
  uint64_t* count = counts_->as<uint64_t>();
  write_inline(stream(), count, 0);
  const CoppiceSelection selection{allocator,
                                   device_layout(path[level]),
                                   static_cast<uint32_t>(level),
                                   num_cells,
                                   max_chunks(n),
                                   kSelectionBatch,
                                   narrow ? 4u : 8u,
                                   masked};
  run_now(program_, select_live, (num_cells - 1 + kSelectionBatch - 1) / kSelectionBatch, state(), selection,
          scratch_keys_->as<void>(), scratch_cells_->as<uint32_t>(), count);
  const uint64_t cells = wait_read_inline(stream(), count);
  if (narrow)
    primitives::sort_by_key(stream(), scratch_keys_->as<uint32_t>(), scratch_cells_->as<uint32_t>(), cells);
  else
    primitives::sort_by_key(stream(), scratch_keys_->as<uint64_t>(), scratch_cells_->as<uint32_t>(), cells);
  return cells;
}

// The live cells of a pointer node by a walk over all of its slots, which are in order already: in scratch_cells_, or as
// the elements of `node` where that lies right below. False: there are too many slots for that.
bool TreeStorage::select_by_slots(uint32_t node, const std::vector<uint32_t>& path, size_t level,
                                  ElementList* list, uint64_t& count) {
  const uint32_t pointer = path[level];
  const ElementList& above = update_list(pointer, false);
  const uint64_t containers = above.items, slots = nodes_[pointer].num_cells;
  if (containers * slots > std::max(kFewSlots, kSlotsPerCell * live_cells(wait_read_state(), pointer)))
    return false;
  const auto parts = static_cast<uint32_t>((slots + kSlotBatch - 1) / kSlotBatch);
  const CoppiceSlots all{above.elements->as<Element>(), slots, kSlotBatch, parts};
  const uint64_t items = containers * parts;
  ensure_items<uint32_t>(*device_, scratch_flags_, items);
  uint32_t* starts = scratch_flags_->as<uint32_t>();
  run_now_by(1, program_, count_slots, items, all, starts);
  count = primitives::wait_exclusive_scan(stream(), starts, starts, items);
  const uint32_t* begins = starts;
  if (list != nullptr) {
    ensure_items<Element>(*device_, list->elements, count);
    run_now_by(1, program_, write_elements, items, static_cast<const device::TreeState*>(state()), all,
               begins, device_layout(pointer), device_layout(node), list->elements->as<Element>());
  } else {
    ensure_items<uint32_t>(*device_, scratch_cells_, count);
    run_now_by(1, program_, write_slots, items, all, begins, scratch_cells_->as<uint32_t>());
  }
  return true;
}

void TreeStorage::make_list(uint32_t node, ElementList& list) {
  const std::vector<uint32_t> path = path_nodes(node);
  const bool is_dynamic = nodes_[node].kind == NodeKind::kDynamic;
  int pointer_level = is_dynamic ? static_cast<int>(path.size()) - 1 : -1;
  uint64_t fan_out = 1;
  bool masked = false;
  for (size_t l = 0; l + 1 < path.size() && !is_dynamic; ++l) {
    const NodeDescription& n = nodes_[path[l]];
    if (n.kind == NodeKind::kPointer) {
      pointer_level = static_cast<int>(l), fan_out = 1, masked = false;
    } else {
      fan_out *= n.num_cells, masked |= n.kind == NodeKind::kBitmasked;
    }
  }
  uint64_t cells = 1;
  const uint32_t* cell_list = nullptr;
  if (pointer_level >= 0) {
    const auto level = static_cast<size_t>(pointer_level);
    const bool is_below = level + 2 == path.size();
    const bool by_slots =
        !is_dynamic && select_by_slots(node, path, level, is_below ? &list : nullptr, cells);
    if (by_slots && is_below) return set_items(list, cells);
    if (!by_slots) cells = select_cells(node, path, level);
    cell_list = scratch_cells_->as<uint32_t>();
  }
  uint64_t items = cells * fan_out;
  const uint32_t* selected = nullptr;
  if (masked && items > 0) {
    ensure_items<uint32_t>(*device_, scratch_flags_, items);
    ensure_items<uint32_t>(*device_, scratch_selected_, items);
    run_now(program_, flag_elements, items, state(), device_layout(node), pointer_level, cell_list, fan_out,
            scratch_flags_->as<uint32_t>());
    items = primitives::wait_select_if_flag(stream(), scratch_flags_->as<uint32_t>(),
                                            scratch_selected_->as<uint32_t>(), items);
    selected = scratch_selected_->as<uint32_t>();
  }
  ensure_items<Element>(*device_, list.elements, items);
  if (is_dynamic)
    run_now(program_, fill_chunks, items, state(), device_layout(node), cell_list,
            list.elements->as<Element>());
  else
    run_now(program_, fill_elements, items, state(), device_layout(node), pointer_level, cell_list, fan_out,
            selected, list.elements->as<Element>());
  set_items(list, items);
}

void TreeStorage::set_items(ElementList& list, uint64_t items) {
  ensure_items<uint64_t>(*device_, list.count, 1);
  write_inline(stream(), list.count->as<uint64_t>(), items);
  list.items = items;
}

void TreeStorage::make_neighbours(uint32_t node, ElementList& list) {
  const uint64_t items = list.items;
  const uint32_t stride = dims() == 3 ? 27 : dims() == 2 ? 9 : 3;
  ensure_items<uint32_t>(*device_, list.neighbours, items * stride);
  run_now(program_, fill_neighbours, items, state(), device_layout(nodes_[node].parent),
          list.elements->as<Element>(), device_layout(node), list.neighbours->as<uint32_t>());
}

ElementList& TreeStorage::update_list(uint32_t node, bool with_neighbours) {
  if (!lists_[node]) lists_[node] = std::make_unique<ElementList>();
  ElementList& list = *lists_[node];
  const uint64_t version = nodes_[node].kind == NodeKind::kDynamic ? version_ + lists_version_ : version_;
  if (list.version != version) {
    make_list(node, list);
    list.version = version;
  }
  if (with_neighbours && has_neighbour_table(node) && list.neighbour_version != version_) {
    make_neighbours(node, list);
    list.neighbour_version = version_;
  }
  return list;
}

}  // namespace coppice
