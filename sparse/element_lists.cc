// The lists that loops run through (see tree_storage.h): made anew when the topology
// has changed since, and only then.
//
// A list goes through the slots of the nearest pointer node above, container by container, which are in
// order already. Where these are many and few of them hold something (and for chunks of dynamic nodes)
// it is a select over the allocator's cells and a sort by coordinate. Containers further down follow
// from their cell. In stream order.
//
// The host asks how many there are, once per step of this, and makes room for just so many. In a recording it
// cannot: what the host would decide is decided by small kernels in between (plan_list and the like), and
// there is room for as many as the allocators' capacity allows.
#include <algorithm>
#include <vector>

#include "core/error.h"
#include "gpu/stream_primitives.h"
#include "sparse/runtime_launch.h"
#include "sparse/tree_storage.h"
#include "topology.kernels.h"

namespace coppice {

using device::AllocatorState;
using device::Element;
using device::ListState;
using device::NodeKind;

namespace {

// Cells that one item of the selection looks at: one atomic for all of them.
constexpr uint32_t kSelectionBatch = 64;
// Slots that one item looks at, and how many slots per live cell are still quicker to look through than a
// sort.
constexpr uint32_t kSlotBatch = 1024;
constexpr uint64_t kSlotsPerCell = 32, kFewSlots = 1 << 16;

uint32_t max_chunks(const NodeDescription& n) {
  return n.kind == NodeKind::kDynamic ? static_cast<uint32_t>((n.max_length + n.num_cells - 1) / n.num_cells)
                                      : 1;
}

}  // namespace

// A list in the making. `cells` and `items` are exact, or in a recording the most there can be.
struct TreeStorage::ListWork {
  uint32_t node;
  ElementList& list;
  std::vector<uint32_t> path;
  bool is_dynamic;
  int pointer_level = -1;  // of the nearest pointer node above, or of a dynamic node itself; -1: none
  uint64_t fan_out = 1;    // containers below one of its cells
  bool masked = false;     // ... some of which may be inactive
  bool is_recording;
  CoppiceListPlan plan{};
  const uint32_t* cell_list = nullptr;
  uint64_t cells = 1, items = 0;

  Items all_cells() const { return is_recording ? Items(&plan.counts->cells) : Items(cells); }
  Items all_items() const { return is_recording ? Items(&plan.counts->items) : Items(items); }
};

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

TreeStorage::ListWork TreeStorage::begin_list(uint32_t node, ElementList& list) {
  ListWork w{.node = node,
             .list = list,
             .path = path_nodes(node),
             .is_dynamic = nodes_[node].kind == NodeKind::kDynamic,
             .is_recording = stream().is_recording()};
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
  w.plan.counts = reinterpret_cast<CoppiceListCounts*>(counts_->as<uint64_t>() + kListCounts);
  w.plan.batch = kSelectionBatch, w.plan.fan_out = w.fan_out, w.plan.dynamic = w.is_dynamic;
  return w;
}

// The live cells of the node at `level` of the path, by their headers: in scratch_cells_,
// in order of their coordinates.
void TreeStorage::select_cells(ListWork& w) {
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
  const uint64_t most = w.is_recording ? allocators_[n.allocator].capacity
                                       : device::handed_out(wait_read_inline(stream(), allocator));
  room<uint64_t>(scratch_keys_, most), room<uint32_t>(scratch_cells_, most);
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
  if (w.is_recording) {
    w.plan.allocator = allocator;
    run_now(program_, plan_list, 1, w.plan);
    // What is sorted is as much as there is room for; cells come first.
    stream().fill_inline(scratch_keys_->data(), 0xff, most * (narrow ? 4 : 8));
    batches = &w.plan.counts->sources;
  } else {
    write_inline(stream(), count, 0);
  }
  run_now(program_, select_live, batches, state(), selection, scratch_keys_->as<void>(),
          scratch_cells_->as<uint32_t>(), count);
  w.cells = w.is_recording ? most : wait_read_inline(stream(), count);
  if (narrow)
    primitives::sort_by_key(stream(), scratch_keys_->as<uint32_t>(), scratch_cells_->as<uint32_t>(), w.cells);
  else
    primitives::sort_by_key(stream(), scratch_keys_->as<uint64_t>(), scratch_cells_->as<uint32_t>(), w.cells);
  w.cell_list = scratch_cells_->as<uint32_t>();
}

// The live cells of a pointer node by a walk over all of its slots, which are in order already:
// in scratch_cells_, or as the elements of the list's node where that lies right below. False:
// there are too many slots for that.
bool TreeStorage::select_by_slots(ListWork& w) {
  const uint32_t pointer = w.path[static_cast<size_t>(w.pointer_level)];
  const bool is_below = static_cast<size_t>(w.pointer_level) + 2 == w.path.size();
  const ElementList& above = update_list(pointer, false);
  const uint64_t containers = w.is_recording ? most_containers(pointer) : above.items,
                 slots = nodes_[pointer].num_cells;
  if (!w.is_recording &&
      containers * slots > std::max(kFewSlots, kSlotsPerCell * live_cells(wait_read_state(), pointer)))
    return false;
  const auto parts = static_cast<uint32_t>((slots + kSlotBatch - 1) / kSlotBatch);
  const CoppiceSlots all{above.elements->as<Element>(), slots, kSlotBatch, parts};
  const uint64_t items = containers * parts;
  room<uint32_t>(scratch_flags_, items + 1);
  uint32_t* starts = scratch_flags_->as<uint32_t>();
  Items sources = items;
  if (w.is_recording) {
    w.plan.containers = &list_state(above.number)->count, w.plan.parts = parts;
    run_now(program_, plan_list, 1, w.plan);
    sources = &w.plan.counts->sources;
  }
  run_now_by(1, program_, count_slots, sources, all, starts);
  // One more, whatever it is: what it becomes is the sum of all before it.
  primitives::exclusive_scan(stream(), starts, starts, items + 1, nullptr);
  w.cells = w.is_recording ? allocators_[nodes_[pointer].allocator].capacity
                           : wait_read_inline(stream(), starts + items);
  const uint32_t* begins = starts;
  if (is_below) {
    room<Element>(w.list, w.list.elements, w.cells);
    run_now_by(1, program_, write_elements, sources, static_cast<const device::TreeState*>(state()), all,
               begins, device_layout(pointer), device_layout(w.node), w.list.elements->as<Element>());
  } else {
    room<uint32_t>(scratch_cells_, w.cells);
    run_now_by(1, program_, write_slots, sources, all, begins, scratch_cells_->as<uint32_t>());
    w.cell_list = scratch_cells_->as<uint32_t>();
  }
  if (w.is_recording) run_now(program_, count_list, 1, w.plan, begins);
  return true;
}

// The containers below the cells found, without those under inactive bits. Returns
// their places, where bits decide.
const uint32_t* TreeStorage::expand(ListWork& w) {
  w.items = w.cells * w.fan_out;
  const uint32_t* places = nullptr;
  uint64_t kept = w.items;
  if (w.masked && w.items > 0) {
    room<uint32_t>(scratch_flags_, w.items + 1);
    uint32_t* flags = scratch_flags_->as<uint32_t>();
    run_now(program_, flag_elements, w.all_items(), state(), device_layout(w.node), w.pointer_level,
            w.cell_list, w.fan_out, flags);
    primitives::exclusive_scan(stream(), flags, flags, w.items + 1, nullptr);
    if (!w.is_recording) kept = wait_read_inline(stream(), flags + w.items);
    places = flags;
  }
  room<Element>(w.list, w.list.elements, kept);
  run_now(program_, fill_elements, w.all_items(), state(), device_layout(w.node), w.pointer_level,
          w.cell_list, w.fan_out, places, w.list.elements->as<Element>());
  w.items = kept;
  return places;
}

void TreeStorage::make_list(uint32_t node, ElementList& list) {
  ListWork w = begin_list(node, list);
  const uint32_t* places = nullptr;
  const uint32_t* const no_starts = nullptr;
  const bool by_slots = w.pointer_level >= 0 && !w.is_dynamic && select_by_slots(w);
  if (w.pointer_level >= 0 && !by_slots) select_cells(w);
  if (w.is_recording && w.pointer_level < 0) run_now(program_, plan_list, 1, w.plan);
  if (w.is_recording && !by_slots) run_now(program_, count_list, 1, w.plan, no_starts);
  if (w.is_dynamic) {
    w.items = w.cells;
    room<Element>(list, list.elements, w.items);
    run_now(program_, fill_chunks, w.all_cells(), state(), device_layout(node), w.cell_list,
            list.elements->as<Element>());
  } else if (by_slots && static_cast<size_t>(w.pointer_level) + 2 == w.path.size()) {
    w.items = w.cells;
  } else {
    places = expand(w);
  }
  if (w.is_recording) {
    run_now(program_, finish_list, 1, w.plan, places);
    return;
  }
  list.items = w.items;
  list.version = list_version(node);
  write_inline(stream(), list_state(list.number),
               ListState{list.items, list.version, list.neighbour_version});
}

void TreeStorage::make_neighbours(uint32_t node, ElementList& list) {
  const uint32_t stride = dims() == 3 ? 27 : dims() == 2 ? 9 : 3;
  CoppiceListPlan plan{};
  plan.tree = state(), plan.list = list_state(list.number);
  plan.counts = reinterpret_cast<CoppiceListCounts*>(counts_->as<uint64_t>() + kListCounts);
  const bool is_recording = stream().is_recording();
  room<uint32_t>(list, list.neighbours, (is_recording ? most_containers(node) : list.items) * stride);
  if (is_recording) run_now(program_, plan_neighbours, 1, plan);
  run_now(program_, fill_neighbours, is_recording ? Items(&plan.counts->items) : Items(list.items), state(),
          device_layout(nodes_[node].parent), list.elements->as<Element>(), device_layout(node),
          list.neighbours->as<uint32_t>());
  if (is_recording) {
    run_now(program_, finish_neighbours, 1, plan);
    return;
  }
  list.neighbour_version = version_;
  write_inline(stream(), &list_state(list.number)->neighbour_version, version_);
}

// The most containers of a node that there can be without its allocators growing.
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

ElementList& TreeStorage::update_list(uint32_t node, bool with_neighbours) {
  if (!lists_[node]) {
    lists_[node] = std::make_unique<ElementList>();
    lists_[node]->number = node;
  }
  ElementList& list = *lists_[node];
  with_neighbours = with_neighbours && has_neighbour_table(node);
  if (stream().is_recording()) {
    record_list(list, node, with_neighbours);
    return list;
  }
  if (list.version != list_version(node)) make_list(node, list);
  if (with_neighbours && list.neighbour_version != version_) make_neighbours(node, list);
  return list;
}

}  // namespace coppice
