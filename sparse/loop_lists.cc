// The lists that loops run through (see tree_storage.h): made anew when the topology
// has changed since, and only then.
//
// A list goes through the slots of the nearest pointer node above, container by container, which are in
// order already. Where these are many and few of them hold something (and for chunks of dynamic nodes)
// it is a select over the allocator's cells and a sort by coordinate. Containers further down follow
// from their cell.
//
// The host asks how many there are, once per step of this, and makes room for just so many. In a recording it
// cannot: what the host would decide is decided by small kernels in between (plan_list and the like), and
// there is room for as many as the allocators' capacity allows.
#include <algorithm>
#include <vector>

#include "core/error.h"
#include "gpu/stream_primitives.h"
#include "loop_lists.kernels.h"
#include "sparse/runtime_counts.h"
#include "sparse/runtime_launch.h"
#include "sparse/tree_storage.h"

namespace coppice {

using device::AllocatorState;
using device::ListState;
using device::LoopElement;
using device::NodeKind;

namespace {

// One item of the selection looks at this many cells: one atomic for all of them.
constexpr uint32_t kSelectionBatch = 64;
// One item looks at this many slots; and so many slots per live cell are still quicker to look through
// than a sort.
constexpr uint32_t kSlotBatch = 1024;
constexpr uint64_t kSlotsPerCell = 32, kFewSlots = 1 << 16;

uint32_t max_chunks(const NodeDescription& n) {
  return n.kind == NodeKind::kDynamic ? static_cast<uint32_t>((n.max_length + n.num_cells - 1) / n.num_cells)
                                      : 1;
}

}  // namespace

// Describes a list in the making.
struct TreeStorage::ListWork {
  uint32_t node;
  LoopList& list;
  std::vector<uint32_t> path;
  bool is_dynamic;
  int pointer_level = -1;  // of the nearest pointer node above, or of a dynamic node itself; -1: none
  uint64_t fan_out = 1;    // containers below one of its cells
  bool masked = false;     // ... some of which may be inactive
  CoppiceListPlan plan{};
  const uint32_t* cell_list = nullptr;
  Count cells = Count::known(1), items = Count::known(0);

  // Returns whether the device decides, by kernels in between, what the host cannot know.
  bool is_planned() const { return !cells.is_known(); }
};

// Returns how many values coordinate keys of a node can have, which tells how wide they must be.
// Saturates.
uint64_t TreeStorage::key_space(const std::vector<uint32_t>& path, size_t levels) const {
  unsigned __int128 space = 1;
  for (size_t l = 0; l < levels; ++l) {
    const NodeDescription& n = nodes_[path[l]];
    space *= n.kind == NodeKind::kDynamic ? max_chunks(n) : n.num_cells;
    if (space >> 64 != 0) return ~uint64_t{0};
  }
  return static_cast<uint64_t>(space);
}

TreeStorage::ListWork TreeStorage::begin_list(InStream& s, uint32_t node, LoopList& list) {
  ListWork w{.node = node,
             .list = list,
             .path = path_nodes(node),
             .is_dynamic = nodes_[node].kind == NodeKind::kDynamic};
  if (w.is_dynamic) w.pointer_level = static_cast<int>(w.path.size()) - 1;
  for (size_t l = 0; l + 1 < w.path.size() && !w.is_dynamic; ++l) {
    const NodeDescription& n = nodes_[w.path[l]];
    if (n.kind == NodeKind::kPointer) {
      w.pointer_level = static_cast<int>(l), w.fan_out = 1, w.masked = false;
    } else {
      w.fan_out *= n.num_cells, w.masked |= n.kind == NodeKind::kBitmasked;
    }
  }
  w.plan.tree = state(), w.plan.list = list_state(list.number);
  w.plan.counts = &counts()->list;
  w.plan.batch = kSelectionBatch, w.plan.fan_out = w.fan_out, w.plan.dynamic = w.is_dynamic;
  if (s.is_recording()) w.cells = Count::on_device(&w.plan.counts->cells, 1);
  return w;
}

// Selects the live cells of the node at `level` of the path, by their headers: into scratch_cells_, in
// order of their coordinates.
void TreeStorage::select_cells(InStream& s, ListWork& w) {
  const auto level = static_cast<size_t>(w.pointer_level);
  const NodeDescription& n = nodes_[w.path[level]];
  const AllocatorState* allocator = &state()->allocators[n.allocator];
  const uint64_t space = key_space(w.path, level + 1);
  if (space == ~uint64_t{0})
    throw Error(ErrorCode::kInvalidArgument,
                path(w.node) + ": a loop over it would need keys of more than 64 bits");
  const bool narrow = space <= uint64_t{1} << 32;
  bool masked = false;
  for (size_t l = 0; l < level; ++l) masked |= nodes_[w.path[l]].kind == NodeKind::kBitmasked;
  const uint64_t most =
      w.is_planned() ? allocators_[n.allocator].capacity : device::handed_out(wait_read(s, allocator));
  reserve_scratch<uint64_t>(s, scratch_keys_, most), reserve_scratch<uint32_t>(s, scratch_cells_, most);
  const CoppiceSelection selection{allocator,
                                   device_layout(w.path[level]),
                                   static_cast<uint32_t>(level),
                                   max_chunks(n),
                                   kSelectionBatch,
                                   narrow ? 4u : 8u,
                                   masked,
                                   0};
  uint64_t* count = &w.plan.counts->cells;
  Items batches = (most - 1 + kSelectionBatch - 1) / kSelectionBatch;
  if (w.is_planned()) {
    w.plan.allocator = allocator;
    run_now(s, program_, plan_list, 1, w.plan);
    // As many keys are sorted as there is room for; those of cells come first.
    s.fill(scratch_keys_->data(), 0xff, most * (narrow ? 4 : 8));
    batches = &w.plan.counts->sources;
  } else {
    write_value(s, count, 0);
  }
  run_now(s, program_, select_live, batches, state(), selection, scratch_keys_->as<void>(),
          scratch_cells_->as<uint32_t>(), count);
  w.cells = wait_count(s, count, most);
  if (narrow)
    primitives::sort_by_key(s, scratch_keys_->as<uint32_t>(), scratch_cells_->as<uint32_t>(), w.cells.most());
  else
    primitives::sort_by_key(s, scratch_keys_->as<uint64_t>(), scratch_cells_->as<uint32_t>(), w.cells.most());
  w.cell_list = scratch_cells_->as<uint32_t>();
}

// Selects the live cells of a pointer node by a walk over all of its slots, which are in order already:
// into scratch_cells_, or as the elements of the list's node where that lies right below. Returns false
// where there are too many slots for that.
bool TreeStorage::select_by_slots(InStream& s, ListWork& w) {
  const uint32_t pointer = w.path[static_cast<size_t>(w.pointer_level)];
  const bool is_below = static_cast<size_t>(w.pointer_level) + 2 == w.path.size();
  const LoopList& above = update_list(s, pointer, false);
  const Count containers = containers_in(s, above);
  const uint64_t slots = nodes_[pointer].num_cells, all_slots = containers.most() * slots;
  if (containers.is_known() &&
      all_slots > std::max(kFewSlots, kSlotsPerCell * live_cells(wait_read_state(s), pointer)))
    return false;
  const auto parts = static_cast<uint32_t>((slots + kSlotBatch - 1) / kSlotBatch);
  const CoppiceSlots all{above.elements->as<LoopElement>(), slots, kSlotBatch, parts};
  const uint64_t items = containers.most() * parts;
  reserve_scratch<uint32_t>(s, scratch_flags_, items + 1);
  uint32_t* starts = scratch_flags_->as<uint32_t>();
  Items sources = items;
  if (w.is_planned()) {
    w.plan.containers = containers.address(), w.plan.parts = parts;
    run_now(s, program_, plan_list, 1, w.plan);
    sources = &w.plan.counts->sources;
  }
  run_now_by(s, 1, program_, count_slots, sources, all, starts);
  // One item more is scanned, whatever it is: it becomes the sum of all before it.
  primitives::exclusive_scan(s, starts, starts, items + 1, nullptr);
  w.cells = w.is_planned()
                ? Count::on_device(&w.plan.counts->cells, allocators_[nodes_[pointer].allocator].capacity)
                : Count::known(wait_read(s, starts + items));
  const uint32_t* begins = starts;
  if (is_below) {
    reserve_scratch<LoopElement>(s, w.list, w.list.elements, w.cells.most());
    run_now_by(s, 1, program_, write_elements, sources, static_cast<const device::TreeState*>(state()), all,
               begins, device_layout(pointer), device_layout(w.node), w.list.elements->as<LoopElement>());
  } else {
    reserve_scratch<uint32_t>(s, scratch_cells_, w.cells.most());
    run_now_by(s, 1, program_, write_slots, sources, all, begins, scratch_cells_->as<uint32_t>());
    w.cell_list = scratch_cells_->as<uint32_t>();
  }
  if (w.is_planned()) run_now(s, program_, count_list, 1, w.plan, begins);
  return true;
}

// Finds the containers below the cells found, without those under inactive bits. Returns their places,
// where bits decide.
const uint32_t* TreeStorage::expand(InStream& s, ListWork& w) {
  const uint64_t most = w.cells.most() * w.fan_out;
  const Count all = w.is_planned() ? Count::on_device(&w.plan.counts->items, most) : Count::known(most);
  const uint32_t* places = nullptr;
  w.items = all;
  if (w.masked && most > 0) {
    reserve_scratch<uint32_t>(s, scratch_flags_, most + 1);
    uint32_t* flags = scratch_flags_->as<uint32_t>();
    run_now(s, program_, flag_elements, all, state(), device_layout(w.node), w.pointer_level, w.cell_list,
            w.fan_out, flags);
    primitives::exclusive_scan(s, flags, flags, most + 1, nullptr);
    if (all.is_known()) w.items = Count::known(wait_read(s, flags + most));
    places = flags;
  }
  reserve_scratch<LoopElement>(s, w.list, w.list.elements, w.items.most());
  run_now(s, program_, fill_elements, all, state(), device_layout(w.node), w.pointer_level, w.cell_list,
          w.fan_out, places, w.list.elements->as<LoopElement>());
  return places;
}

void TreeStorage::make_list(InStream& s, uint32_t node, LoopList& list) {
  ListWork w = begin_list(s, node, list);
  const uint32_t* places = nullptr;
  const uint32_t* const no_starts = nullptr;
  const bool by_slots = w.pointer_level >= 0 && !w.is_dynamic && select_by_slots(s, w);
  if (w.pointer_level >= 0 && !by_slots) select_cells(s, w);
  if (w.is_planned() && w.pointer_level < 0) run_now(s, program_, plan_list, 1, w.plan);
  if (w.is_planned() && !by_slots) run_now(s, program_, count_list, 1, w.plan, no_starts);
  if (w.is_dynamic) {
    w.items = w.cells;
    reserve_scratch<LoopElement>(s, list, list.elements, w.items.most());
    run_now(s, program_, fill_chunks, w.cells, state(), device_layout(node), w.cell_list,
            list.elements->as<LoopElement>());
  } else if (by_slots && static_cast<size_t>(w.pointer_level) + 2 == w.path.size()) {
    w.items = w.cells;
  } else {
    places = expand(s, w);
  }
  if (w.is_planned()) {
    run_now(s, program_, finish_list, 1, w.plan, places);
    return;
  }
  list.items = w.items.value();
  list.version = list_version(node);
  write_value(s, list_state(list.number), ListState{list.items, list.version, list.neighbour_version});
}

void TreeStorage::make_neighbours(InStream& s, uint32_t node, LoopList& list) {
  const uint32_t stride = dims() == 3 ? 27 : dims() == 2 ? 9 : 3;
  CoppiceListPlan plan{};
  plan.tree = state(), plan.list = list_state(list.number);
  plan.counts = &counts()->list;
  Count items = containers_in(s, list);
  reserve_scratch<uint32_t>(s, list, list.neighbours, items.most() * stride);
  if (!items.is_known()) {
    run_now(s, program_, plan_neighbours, 1, plan);
    items = Count::on_device(&plan.counts->items, items.most());  // none where the table is up to date
  }
  run_now(s, program_, fill_neighbours, items, state(), device_layout(nodes_[node].parent),
          list.elements->as<LoopElement>(), device_layout(node), list.neighbours->as<uint32_t>());
  if (!items.is_known()) {
    run_now(s, program_, finish_neighbours, 1, plan);
    return;
  }
  list.neighbour_version = version_;
  write_value(s, &list_state(list.number)->neighbour_version, version_);
}

Count TreeStorage::containers_in(InStream& s, const LoopList& list) const {
  return s.is_recording() ? Count::on_device(&list_state(list.number)->count, most_containers(list.number))
                          : Count::known(list.items);
}

// Returns the most containers of a node that there can be without its allocators growing.
uint64_t TreeStorage::most_containers(uint32_t node) const {
  uint64_t most = 1;
  for (uint32_t id = nodes_[node].parent; id != 0; id = nodes_[id].parent) {
    if (nodes_[id].kind == NodeKind::kPointer) return most * allocators_[nodes_[id].allocator].capacity;
    most *= nodes_[id].num_cells;
  }
  return most;
}

uint64_t TreeStorage::list_version(uint32_t node) const {
  return nodes_[node].kind == NodeKind::kDynamic ? version_ + lists_version_ : version_;
}

LoopList& TreeStorage::update_list(InStream& s, uint32_t node, bool with_neighbours) {
  if (!lists_[node]) {
    lists_[node] = std::make_unique<LoopList>();
    lists_[node]->number = node;
  }
  LoopList& list = *lists_[node];
  with_neighbours = with_neighbours && has_neighbour_table(node);
  if (s.is_recording()) {
    record_list(s, list, node, with_neighbours);
    return list;
  }
  if (list.version != list_version(node)) make_list(s, node, list);
  if (with_neighbours && list.neighbour_version != version_) make_neighbours(s, node, list);
  return list;
}

}  // namespace coppice
