// Collection of what was deactivated, and deactivation of everything below a node (see collector.h).
#include "sparse/collector.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "dynamic_lists.kernels.h"
#include "gpu/host_access.h"
#include "runtime_collection.kernels.h"
#include "sparse/ranks/block_masks.h"
#include "sparse/runtime_launch.h"
#include "sparse/tree_storage.h"

namespace coppice {

using device::AllocatorState;
using device::LoopElement;
using device::NodeKind;
using device::TreeState;

Collector::Collector(TreeMemory& memory, LoopLists& lists, Program& program)
    : layout_(memory.layout()), memory_(memory), lists_(lists), program_(program) {}

void Collector::commit_topology(InStream& s, const TreeState& now) {
  // A launch that failed may have left shortages that nobody is to grow for.
  for (uint32_t i = 0; i < layout_.num_allocators(); ++i) {
    if (now.allocators[i].shortage != 0) write_value(s, &memory_.state()->allocators[i].shortage, 0);
  }
  if (now.changed == 0 && now.lists_changed == 0) return;
  // This goes from root to leaves: nodes were added parents first, so allocators are in that order
  // already. One that recycles cells may do so below, too, by numbers that only the device knows.
  const auto begin = std::chrono::steady_clock::now();
  if (now.dirty != 0) clean_cells(s);
  bool may_be_recycled = now.dirty != 0;
  for (uint32_t a = 0; a < layout_.num_allocators(); ++a) {
    may_be_recycled |= now.allocators[a].recycled_size != 0;
    if (may_be_recycled) collect_allocator(s, a);
  }
  if (may_be_recycled) {
    ++collections_;
    collection_time_ += std::chrono::steady_clock::now() - begin;
  }
  lists_.count_version(s, now.changed != 0);
  run_now(s, program_, count_version, 1, memory_.state());
}

void Collector::tell_changes(InStream& s, uint64_t launch) {
  run_now(s, program_, ::tell_changes, 1, memory_.state(), launch);
}

// Parents are cleaned before children, and all before cells are collected: what lies below a cell that is
// zeroed is recycled or zeroed with it.
void Collector::clean_cells(InStream& s) {
  uint64_t* const items = &memory_.counts()->dirty;
  for (uint32_t id = 1; id < layout_.nodes().size(); ++id) {
    if (layout_.node(id).kind != NodeKind::kBitmasked) continue;
    CoppiceDirtyNode d{memory_.state(), memory_.device_layout(id), -1,
                       device::mask_words(layout_.node(id).num_cells), 64};
    const std::vector<uint32_t> path = layout_.path_nodes(id);
    for (size_t level = path.size() - 1; level-- > 0 && d.pointer_level < 0;) {
      const TreeNode& above = layout_.node(path[level]);
      if (above.kind == NodeKind::kPointer)
        d.pointer_level = static_cast<int64_t>(level);
      else
        d.cell_words *= above.num_cells;
    }
    run_now(s, program_, count_dirty, 1, d, items);
    run_now_by(s, 16, program_, clean_dirty, items, d);
  }
}

void Collector::commit_topology(InStream& s) {
  if (!s.is_recording()) return commit_topology(s, memory_.wait_read_state(s));
  clean_cells(s);
  for (uint32_t a = 0; a < layout_.num_allocators(); ++a) collect_allocator(s, a);
  run_now(s, program_, count_version, 1, memory_.state());
  lists_.forget_recorded(s);
}

void Collector::recycle_all(InStream& s, uint32_t node) {
  // A thread of a GPU that looks at several cells waits for one after the other.
  const uint32_t batch = memory_.device().shares_items() ? 1 : 64;
  const uint32_t allocator = layout_.node(node).allocator;
  uint64_t* const batches = &memory_.counts()->recycled;
  run_now(s, program_, count_batches, 1, memory_.allocator_state(allocator), batch, batches);
  run_now_by(s, 16, program_, recycle_all_cells, batches, memory_.state(), allocator, batch);
}

// Runs over all lists of a dynamic node, whether they hold something or not; `parents` are the containers
// above it, null where it lies below the root.
void Collector::run_over_lists(InStream& s, const ListKernel& kernel, uint32_t id, const LoopList* parents) {
  const LoopElement* elements = nullptr;
  Items lists = 1;
  if (parents != nullptr) {
    uint64_t* const count = &memory_.counts()->recycled;
    run_now(s, program_, count_lists, 1, &memory_.list_state(parents->number)->count,
            layout_.node(layout_.node(id).parent).num_cells, count);
    lists = count;
    elements = parents->elements->as<LoopElement>();
  }
  run_now(s, program_, kernel, lists, memory_.state(), memory_.device_layout(id), elements);
}

void Collector::recycle_below(InStream& s, uint32_t id) {
  const TreeNode& n = layout_.node(id);
  run_now(s, program_, mark_changed, 1, memory_.state());
  if (id != 0 && n.kind == NodeKind::kPointer) {
    recycle_all(s, id);
    return;  // what is below goes with the cells
  }
  if (n.kind == NodeKind::kDynamic) {
    run_over_lists(s, clear_lists, id, n.parent == 0 ? nullptr : &lists_.update(s, n.parent, false));
    return;
  }
  // Children go first: the cells that bits make reachable are still to be found.
  for (uint32_t child : n.children) recycle_below(s, child);
  if (n.kind == NodeKind::kBitmasked) {
    const LoopList& list = lists_.update(s, id, false);
    run_now(s, program_, zero_containers, &memory_.list_state(list.number)->count,
            list.elements->as<LoopElement>(), n.container_bytes);
  }
}

// Works by counts that stay on the device: all of it can be recorded, and where nothing was recycled it
// does nothing.
void Collector::collect_allocator(InStream& s, uint32_t index) {
  AllocatorState* a = memory_.allocator_state(index);
  const uint32_t node = layout_.allocator_nodes()[index];
  uint64_t* const collected = memory_.counts()->collected;
  const bool is_chain = layout_.node(node).kind == NodeKind::kDynamic,
             has_below = layout_.node_layout(node).below.count > 0;
  if (is_chain || has_below) run_now(s, program_, count_recycled, 1, a, collected);
  if (is_chain) run_now(s, program_, collect_chain, collected, a);
  if (has_below)
    run_now(s, program_, collect_below, collected, memory_.state(), index, memory_.device_layout(node));
  // Some 16 KB for each thread block.
  constexpr uint64_t kRefillBytes = 16 << 10;
  const auto batch =
      static_cast<uint32_t>(std::clamp<uint64_t>(kRefillBytes / layout_.node(node).cell_bytes, 1, 64));
  run_now(s, program_, collect_begin, 1, a, batch, collected);
  run_now(s, program_, collect_move_free, collected + 1, a);
  run_now(s, program_, collect_bookkeep, 1, a);
  run_now_by(s, std::max(256 / batch, 1u), program_, collect_refill, collected, a, batch);
}

namespace {

// Returns whether all cells of a node and below it are there as long as what is above them.
bool is_dense_alone(const TreeLayout& layout, uint32_t node) {
  const TreeNode& n = layout.node(node);
  return n.kind == device::NodeKind::kDense &&
         std::all_of(n.children.begin(), n.children.end(),
                     [&](uint32_t child) { return is_dense_alone(layout, child); });
}

}  // namespace

BoundLaunch bind_deactivate_all(const Node& node) {
  TreeStorage& tree = node.storage();
  tree.freeze();
  if (node.id() != 0 && is_dense_alone(tree.layout(), node.id()))
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("deactivation of {}: cells of a dense node are active as long as what is above them",
                    node.path()));
  Launch launch = tree.programs().with_host(
      [&](Program& program) { return program.make_launch(mark_changed, range(1), tree.memory().state()); });
  launch.name = "sparse.deactivate_all";
  launch.keep_alive.push_back(share(&tree));
  LaunchUse use;
  use.kind = LaunchUse::Kind::kTopology;
  use.tree = &tree, use.node = node.id(), use.field = kNoField;
  use.effects = effect::kDeactivates, use.radius = LaunchUse::kAnywhere;
  use.name = node.path();
  launch.uses = make_intrusive<LaunchUses>(std::vector<LaunchUse>{use});
  launch.needs_repeat = [&tree, id = node.id()](InStream& s, LaunchBlock&) {
    tree.collector().recycle_below(s, id);
    if (tree.is_over_ranks() && tree.layout().node(id).kind == NodeKind::kBitmasked)
      deactivate_everywhere(s, tree, id);
    tree.collector().commit_topology(s);
    return false;
  };
  return BoundLaunch(share(&tree.device()), std::move(launch));
}

}  // namespace coppice
