// Making loops' lists (see loop_lists.h).
//
// A list goes through the slots of the nearest pointer node above, container by container, which are in
// order already. Where these are many and few of them hold something (and for chunks of dynamic nodes)
// it is a select over the allocator's cells and a sort by coordinate. Containers further down follow
// from their cell.
//
// The host asks how many there are, once per step of this, and makes room for just so many. In a recording it
// cannot: what the host would decide is decided by small kernels in between (plan_list and the like), and
// there is room for as many as the allocators' capacity allows.
#include "sparse/loop_lists.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.h"
#include "gpu/stream_primitives.h"
#include "loop_lists.kernels.h"
#include "runtime_ranks.kernels.h"
#include "sparse/runtime_launch.h"

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
constexpr uint32_t kSlotBatch = 1024, kGpuSlotBatch = 1;
constexpr uint64_t kMostSlotItems = 1 << 20, kMostGpuSlotItems = 1 << 23;
constexpr uint64_t kSlotsPerCell = 32, kFewSlots = 1 << 16;

}  // namespace

LoopLists::LoopLists(TreeMemory& memory, TreeScratch& scratch, Program& program)
    : layout_(memory.layout()),
      memory_(memory),
      scratch_(scratch),
      program_(program),
      lists_(memory.layout().nodes().size()) {}

template <class T>
void LoopLists::reserve(InStream& s, LoopList& list, IntrusivePtr<Buffer>& buffer, uint64_t items) {
  const Buffer* const before = buffer.get();
  scratch_.reserve<T>(s, buffer, items);
  if (buffer.get() == before || !s.is_recording()) return;
  list.version = list.neighbour_version = ~uint64_t{0};
  lost_.push_back(list.number);
}

// Describes a list in the making.
struct LoopLists::ListWork {
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
  // Returns whether its node lies right below that pointer node.
  bool is_right_below() const { return static_cast<size_t>(pointer_level) + 2 == path.size(); }
};

LoopLists::ListWork LoopLists::begin_list(InStream& s, uint32_t node, LoopList& list) {
  ListWork w{.node = node,
             .list = list,
             .path = layout_.path_nodes(node),
             .is_dynamic = layout_.node(node).kind == NodeKind::kDynamic};
  if (w.is_dynamic) w.pointer_level = static_cast<int>(w.path.size()) - 1;
  for (size_t l = 0; l + 1 < w.path.size() && !w.is_dynamic; ++l) {
    const TreeNode& n = layout_.node(w.path[l]);
    if (n.kind == NodeKind::kPointer) {
      w.pointer_level = static_cast<int>(l), w.fan_out = 1, w.masked = false;
    } else {
      w.fan_out *= n.num_cells, w.masked |= n.kind == NodeKind::kBitmasked;
    }
  }
  w.plan.tree = memory_.state(), w.plan.list = memory_.list_state(list.number);
  w.plan.counts = &memory_.counts()->list;
  w.plan.batch = kSelectionBatch, w.plan.fan_out = w.fan_out, w.plan.dynamic = w.is_dynamic;
  if (s.is_recording()) w.cells = Count::on_device(&w.plan.counts->cells, 1);
  return w;
}

// Selects the live cells of the node at `level` of the path, by their headers: into scratch_.cells, in
// order of their coordinates.
void LoopLists::select_cells(InStream& s, ListWork& w) {
  const auto level = static_cast<size_t>(w.pointer_level);
  const TreeNode& n = layout_.node(w.path[level]);
  const AllocatorState* allocator = memory_.allocator_state(n.allocator);
  const uint64_t space = layout_.key_space(w.path, level + 1);
  if (space == ~uint64_t{0})
    throw Error(ErrorCode::kInvalidArgument,
                layout_.path(w.node) + ": a loop over it would need keys of more than 64 bits");
  const bool narrow = space <= uint64_t{1} << 32;
  bool masked = false;
  for (size_t l = 0; l < level; ++l) masked |= layout_.node(w.path[l]).kind == NodeKind::kBitmasked;
  const uint64_t most = w.is_planned() ? memory_.allocators()[n.allocator].capacity
                                       : device::handed_out(wait_read(s, allocator));
  scratch_.reserve<uint64_t>(s, scratch_.keys, most);
  scratch_.reserve<uint32_t>(s, scratch_.cells, most);
  const CoppiceSelection selection{allocator,
                                   memory_.device_layout(w.path[level]),
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
    s.fill(scratch_.keys->data(), 0xff, most * (narrow ? 4 : 8));
    batches = &w.plan.counts->sources;
  } else {
    write_value(s, count, 0);
  }
  run_now(s, program_, select_live, batches, memory_.state(), selection, scratch_.keys->as<void>(),
          scratch_.cells->as<uint32_t>(), count);
  w.cells = wait_count(s, count, most);
  sort_cells(s, w, narrow);
}

void LoopLists::sort_cells(InStream& s, ListWork& w, bool narrow) {
  auto* const cells = scratch_.cells->as<uint32_t>();
  if (narrow)
    primitives::sort_by_key(s, scratch_.keys->as<uint32_t>(), cells, w.cells.most());
  else
    primitives::sort_by_key(s, scratch_.keys->as<uint64_t>(), cells, w.cells.most());
  w.cell_list = cells;
}

// Selects the live cells of a pointer node by a walk over all of its slots, which are in order already:
// into scratch_.cells, or as the elements of the list's node where that lies right below. Returns false
// where there are too many slots for that.
bool LoopLists::select_by_slots(InStream& s, ListWork& w) {
  const uint32_t pointer = w.path[static_cast<size_t>(w.pointer_level)];
  const LoopList& above = update(s, pointer, false);
  const Count containers = containers_in(s, above);
  const uint64_t slots = layout_.node(pointer).num_cells, all_slots = containers.most() * slots;
  if (containers.is_known() &&
      all_slots >
          std::max(kFewSlots, kSlotsPerCell * memory_.live_cells(memory_.wait_read_state(s), pointer)))
    return false;
  // A GPU has many threads, but a recording counts with all slots that there may ever be.
  const bool is_gpu = memory_.device().shares_items();
  const uint64_t least = is_gpu ? kGpuSlotBatch : kSlotBatch;
  const uint64_t most_items = is_gpu ? kMostGpuSlotItems : kMostSlotItems;
  const auto batch = static_cast<uint32_t>(std::clamp<uint64_t>(all_slots / most_items, least, kSlotBatch));
  const auto parts = static_cast<uint32_t>((slots + batch - 1) / batch);
  const CoppiceSlots all{above.elements->as<LoopElement>(), slots, batch, parts};
  const uint64_t items = containers.most() * parts;
  scratch_.reserve<uint32_t>(s, scratch_.flags, items + 1);
  uint32_t* starts = scratch_.flags->as<uint32_t>();
  Items sources = items;
  if (w.is_planned()) {
    w.plan.containers = containers.address(), w.plan.parts = parts;
    run_now(s, program_, plan_list, 1, w.plan);
    sources = &w.plan.counts->sources;
  }
  run_now_by(s, 1, program_, count_slots, sources, all, starts);
  // One item more is scanned, whatever it is: it becomes the sum of all before it.
  primitives::exclusive_scan(s, starts, starts, items + 1, nullptr);
  w.cells = w.is_planned() ? Count::on_device(&w.plan.counts->cells, memory_.capacity(pointer))
                           : Count::known(wait_read(s, starts + items));
  write_selected(s, w, all, sources, starts);
  return true;
}

// Writes what slots hold, in their order: the elements of the list's node, where that lies right below the
// pointer node, or cells.
void LoopLists::write_selected(InStream& s, ListWork& w, const CoppiceSlots& all, const Items& sources,
                               const uint32_t* begins) {
  if (w.is_right_below()) {
    const uint32_t pointer = w.path[static_cast<size_t>(w.pointer_level)];
    reserve<LoopElement>(s, w.list, w.list.elements, w.cells.most());
    run_now_by(s, 1, program_, write_elements, sources,
               static_cast<const device::TreeState*>(memory_.state()), all, begins,
               memory_.device_layout(pointer), memory_.device_layout(w.node),
               w.list.elements->as<LoopElement>());
  } else {
    scratch_.reserve<uint32_t>(s, scratch_.cells, w.cells.most());
    run_now_by(s, 1, program_, write_slots, sources, all, begins, scratch_.cells->as<uint32_t>());
    w.cell_list = scratch_.cells->as<uint32_t>();
  }
  if (w.is_planned()) run_now(s, program_, count_list, 1, w.plan, begins);
}

// Finds the containers below the cells found, without those under inactive bits. Returns their places,
// where bits decide.
const uint32_t* LoopLists::expand(InStream& s, ListWork& w) {
  const uint64_t most = w.cells.most() * w.fan_out;
  const Count all = w.is_planned() ? Count::on_device(&w.plan.counts->items, most) : Count::known(most);
  const uint32_t* places = nullptr;
  w.items = all;
  if (w.masked && most > 0) {
    scratch_.reserve<uint32_t>(s, scratch_.flags, most + 1);
    uint32_t* flags = scratch_.flags->as<uint32_t>();
    run_now(s, program_, flag_elements, all, memory_.state(), memory_.device_layout(w.node), w.pointer_level,
            w.cell_list, w.fan_out, flags);
    primitives::exclusive_scan(s, flags, flags, most + 1, nullptr);
    if (all.is_known()) w.items = Count::known(wait_read(s, flags + most));
    places = flags;
  }
  reserve<LoopElement>(s, w.list, w.list.elements, w.items.most());
  run_now(s, program_, fill_elements, all, memory_.state(), memory_.device_layout(w.node), w.pointer_level,
          w.cell_list, w.fan_out, places, w.list.elements->as<LoopElement>());
  return places;
}

void LoopLists::make_list(InStream& s, uint32_t node, LoopList& list) {
  ListWork w = begin_list(s, node, list);
  const uint32_t* places = nullptr;
  const uint32_t* const no_starts = nullptr;
  const bool by_slots = w.pointer_level >= 0 && !w.is_dynamic && select_by_slots(s, w);
  if (w.pointer_level >= 0 && !by_slots) select_cells(s, w);
  if (w.is_planned() && w.pointer_level < 0) run_now(s, program_, plan_list, 1, w.plan);
  if (w.is_planned() && !by_slots) run_now(s, program_, count_list, 1, w.plan, no_starts);
  if (w.is_dynamic) {
    w.items = w.cells;
    reserve<LoopElement>(s, list, list.elements, w.items.most());
    run_now(s, program_, fill_chunks, w.cells, memory_.state(), memory_.device_layout(node), w.cell_list,
            list.elements->as<LoopElement>());
  } else if (by_slots && w.is_right_below()) {
    w.items = w.cells;
  } else {
    places = expand(s, w);
  }
  if (w.is_planned()) {
    run_now(s, program_, finish_list, 1, w.plan, places);
    return;
  }
  list.items = w.items.value();
  if (own_ && node != 0 && layout_.node(node).parent == own_->node) keep_own(s, node, list);
  list.version = list_version(node);
  write_value(s, memory_.list_state(list.number),
              ListState{list.items, list.version, list.neighbour_version});
}

void LoopLists::keep_own(InStream& s, uint32_t node, LoopList& list) {
  const uint64_t n = list.items;
  list.items = list.interior = 0;
  if (n == 0) return;
  const auto& domain = layout_.node_layout(own_->node).domain;
  const CoppiceOwnPart own{own_->begin, own_->end, {domain[0], domain[1], domain[2]}};
  scratch_.reserve<uint32_t>(s, scratch_.flags, n + 1);
  scratch_.reserve<LoopElement>(s, scratch_.elements, n);
  uint32_t* const flags = scratch_.flags->as<uint32_t>();
  for (const bool interior : {true, false}) {
    run_now(s, program_, flag_own, n, own, interior, memory_.device_layout(node),
            list.elements->as<LoopElement>(), flags);
    primitives::exclusive_scan(s, flags, flags, n + 1, nullptr);
    run_now(s, program_, ::keep_own, n, flags, list.elements->as<LoopElement>(),
            scratch_.elements->as<LoopElement>() + list.items);
    list.items += wait_read(s, flags + n);
    if (interior) list.interior = list.items;
  }
  std::swap(list.elements, scratch_.elements);
}

void LoopLists::make_neighbours(InStream& s, uint32_t node, LoopList& list) {
  const uint32_t stride = layout_.dims() == 3 ? 27 : layout_.dims() == 2 ? 9 : 3;
  CoppiceListPlan plan{};
  plan.tree = memory_.state(), plan.list = memory_.list_state(list.number);
  plan.counts = &memory_.counts()->list;
  Count items = containers_in(s, list);
  reserve<uint32_t>(s, list, list.neighbours, items.most() * stride);
  if (!items.is_known()) {
    run_now(s, program_, plan_neighbours, 1, plan);
    items = Count::on_device(&plan.counts->items, items.most());  // none where the table is up to date
  }
  run_now(s, program_, fill_neighbours, items, memory_.state(),
          memory_.device_layout(layout_.node(node).parent), list.elements->as<LoopElement>(),
          memory_.device_layout(node), list.neighbours->as<uint32_t>());
  if (!items.is_known()) {
    run_now(s, program_, finish_neighbours, 1, plan);
    return;
  }
  list.neighbour_version = version_;
  write_value(s, &memory_.list_state(list.number)->neighbour_version, version_);
}

Count LoopLists::containers_in(InStream& s, const LoopList& list) const {
  return s.is_recording()
             ? Count::on_device(&memory_.list_state(list.number)->count, most_containers(list.number))
             : Count::known(list.items);
}

// Returns the most containers of a node that there can be without its allocators growing.
uint64_t LoopLists::most_containers(uint32_t node) const {
  uint64_t most = 1;
  for (uint32_t id = layout_.node(node).parent; id != 0; id = layout_.node(id).parent) {
    if (layout_.node(id).kind == NodeKind::kPointer) return most * memory_.capacity(id);
    most *= layout_.node(id).num_cells;
  }
  return most;
}

uint64_t LoopLists::list_version(uint32_t node) const {
  return layout_.node(node).kind == NodeKind::kDynamic ? version_ + lists_version_ : version_;
}

LoopList& LoopLists::update(InStream& s, uint32_t node, bool with_neighbours) {
  if (!lists_[node]) {
    lists_[node] = std::make_unique<LoopList>();
    lists_[node]->number = node;
  }
  LoopList& list = *lists_[node];
  with_neighbours = with_neighbours && layout_.has_neighbour_table(node);
  if (s.is_recording()) {
    record_list(s, list, node, with_neighbours);
    return list;
  }
  if (list.version != list_version(node)) make_list(s, node, list);
  if (with_neighbours && list.neighbour_version != version_) make_neighbours(s, node, list);
  return list;
}

void LoopLists::clear(InStream&) {
  for (std::unique_ptr<LoopList>& list : lists_) list.reset();
}

void LoopLists::count_version(InStream&, bool topology_has_changed) {
  version_ += topology_has_changed;
  ++lists_version_;
}

}  // namespace coppice
