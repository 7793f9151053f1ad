// Collection of what was deactivated, and deactivation of everything below a node (see tree_storage.h).
#include "dynamic_lists.kernels.h"
#include "runtime_collection.kernels.h"
#include "sparse/runtime_counts.h"
#include "sparse/runtime_launch.h"
#include "sparse/tree_storage.h"

namespace coppice {

using device::AllocatorState;
using device::LoopElement;
using device::NodeKind;
using device::TreeState;

void TreeStorage::commit_topology(InStream& s, const TreeState& now) {
  // A launch that failed may have left shortages that nobody is to grow for.
  for (uint32_t i = 0; i < allocators_.size(); ++i) {
    if (now.allocators[i].shortage != 0) write_value(s, &state()->allocators[i].shortage, 0);
  }
  if (now.changed == 0 && now.lists_changed == 0) return;
  // This goes from root to leaves: nodes were added parents first, so allocators are in that order
  // already. One that recycles cells may do so below, too, by numbers that only the device knows.
  const auto begin = std::chrono::steady_clock::now();
  if (now.dirty != 0) clean_cells(s);
  bool may_be_recycled = now.dirty != 0;
  for (uint32_t a = 0; a < allocators_.size(); ++a) {
    may_be_recycled |= now.allocators[a].recycled_size != 0;
    if (may_be_recycled) collect_allocator(s, a);
  }
  if (may_be_recycled) {
    ++collections_;
    collection_time_ += std::chrono::steady_clock::now() - begin;
  }
  version_ += now.changed != 0;
  ++lists_version_;
  run_now(s, program_, count_version, 1, state());
}

// Parents are cleaned before children, and all before cells are collected: what lies below a cell that is
// zeroed is recycled or zeroed with it.
void TreeStorage::clean_cells(InStream& s) {
  uint64_t* const items = &counts()->dirty;
  for (uint32_t id = 1; id < nodes_.size(); ++id) {
    if (nodes_[id].kind != NodeKind::kBitmasked) continue;
    CoppiceDirtyNode d{state(), device_layout(id), -1, device::mask_words(nodes_[id].num_cells), 64};
    const std::vector<uint32_t> path = path_nodes(id);
    for (size_t level = path.size() - 1; level-- > 0 && d.pointer_level < 0;) {
      const NodeDescription& above = nodes_[path[level]];
      if (above.kind == NodeKind::kPointer)
        d.pointer_level = static_cast<int64_t>(level);
      else
        d.cell_words *= above.num_cells;
    }
    run_now(s, program_, count_dirty, 1, d, items);
    run_now_by(s, 16, program_, clean_dirty, items, d);
  }
}

void TreeStorage::commit_topology(InStream& s) {
  if (!s.is_recording()) return commit_topology(s, wait_read_state(s));
  clean_cells(s);
  for (uint32_t a = 0; a < allocators_.size(); ++a) collect_allocator(s, a);
  run_now(s, program_, count_version, 1, state());
  needed_lists_.clear();
}

void TreeStorage::recycle_all(InStream& s, uint32_t node) {
  constexpr uint32_t kBatch = 64;
  const uint32_t allocator = nodes_[node].allocator;
  uint64_t* const batches = &counts()->recycled;
  run_now(s, program_, count_batches, 1, &state()->allocators[allocator], kBatch, batches);
  run_now_by(s, 16, program_, recycle_all_cells, batches, state(), allocator, kBatch);
}

// Runs over all lists of a dynamic node, whether they hold something or not; `parents` are the containers
// above it, null where it lies below the root.
void TreeStorage::run_over_lists(InStream& s, const ListKernel& kernel, uint32_t id,
                                 const LoopList* parents) {
  const LoopElement* elements = nullptr;
  Items lists = 1;
  if (parents != nullptr) {
    uint64_t* const count = &counts()->recycled;
    run_now(s, program_, count_lists, 1, &list_state(parents->number)->count,
            nodes_[nodes_[id].parent].num_cells, count);
    lists = count;
    elements = parents->elements->as<LoopElement>();
  }
  run_now(s, program_, kernel, lists, state(), device_layout(id), elements);
}

void TreeStorage::recycle_below(InStream& s, uint32_t id) {
  const NodeDescription& n = nodes_[id];
  run_now(s, program_, mark_changed, 1, state());
  if (id != 0 && n.kind == NodeKind::kPointer) {
    recycle_all(s, id);
    return;  // what is below goes with the cells
  }
  if (n.kind == NodeKind::kDynamic) {
    run_over_lists(s, clear_lists, id, n.parent == 0 ? nullptr : &update_list(s, n.parent, false));
    return;
  }
  // Children go first: the cells that bits make reachable are still to be found.
  for (uint32_t child : n.children) recycle_below(s, child);
  if (n.kind == NodeKind::kBitmasked) {
    const LoopList& list = update_list(s, id, false);
    run_now(s, program_, zero_containers, &list_state(list.number)->count, list.elements->as<LoopElement>(),
            n.container_bytes);
  }
}

// Works by counts that stay on the device: all of it can be recorded, and where nothing was recycled it
// does nothing.
void TreeStorage::collect_allocator(InStream& s, uint32_t index) {
  AllocatorState* a = &state()->allocators[index];
  const uint32_t node = allocators_[index].node;
  uint64_t* const collected = counts()->collected;
  const bool is_chain = nodes_[node].kind == NodeKind::kDynamic, has_below = layouts_[node].below.count > 0;
  if (is_chain || has_below) run_now(s, program_, count_recycled, 1, a, collected);
  if (is_chain) run_now(s, program_, collect_chain, collected, a);
  if (has_below) run_now(s, program_, collect_below, collected, state(), index, device_layout(node));
  run_now(s, program_, collect_begin, 1, a, collected);
  run_now(s, program_, collect_move_free, collected + 1, a);
  run_now(s, program_, collect_bookkeep, 1, a);
  run_now(s, program_, collect_refill, collected, a);
}

BoundLaunch bind_deactivate_all(const Node& node) {
  TreeStorage& tree = node.storage();
  tree.freeze();
  Launch launch = tree.with_host_program(
      [&](Program& program) { return program.make_launch(mark_changed, range(1), tree.state()); });
  launch.keep_alive.push_back(share(&tree));
  LaunchUse use;
  use.kind = LaunchUse::Kind::kTopology;
  use.tree = &tree, use.node = node.id(), use.field = kNoField;
  use.effects = effect::kDeactivates, use.radius = LaunchUse::kAnywhere;
  use.name = node.path();
  launch.uses = make_intrusive<LaunchUses>(std::vector<LaunchUse>{use});
  launch.needs_repeat = [&tree, id = node.id()](InStream& s, LaunchBlock&) {
    tree.recycle_below(s, id);
    tree.commit_topology(s);
    return false;
  };
  return BoundLaunch(share(&tree.device()), std::move(launch));
}

}  // namespace coppice
