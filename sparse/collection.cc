// Collection of what was deactivated, and deactivation of everything below a node (see tree_storage.h). In stream order.
#include "runtime_collection.kernels.h"
#include "runtime_lists.kernels.h"
#include "sparse/runtime_launch.h"
#include "sparse/tree_storage.h"

namespace coppice {

using device::AllocatorState;
using device::Element;
using device::NodeKind;
using device::TreeState;

void TreeStorage::settle(const TreeState& now) {
  // A launch that failed may have left shortages that nobody is to grow for.
  for (uint32_t i = 0; i < allocators_.size(); ++i) {
    if (now.allocators[i].shortage != 0) write_inline(stream(), &state()->allocators[i].shortage, 0);
  }
  if (now.changed == 0 && now.lists_changed == 0) return;
  collect(now);
  version_ += now.changed != 0;
  ++lists_version_;
  write_inline(stream(), &state()->changed, 0);
  write_inline(stream(), &state()->lists_changed, 0);
}

void TreeStorage::recycle_all(uint32_t node) {
  const uint32_t allocator = nodes_[node].allocator;
  const AllocatorState a = wait_read_inline(stream(), &state()->allocators[allocator]);
  constexpr uint32_t kBatch = 64;
  const uint32_t num_cells = std::min(a.num_cells, a.capacity);
  run_now_by(16, program_, recycle_all_cells, (num_cells + kBatch - 2) / kBatch, state(), allocator,
             num_cells, kBatch);
}

// Over all lists of a dynamic node, whether they hold something or not; `parents` are the containers above it, null
// where it lies below the root.
void TreeStorage::run_over_lists(const ListKernel& kernel, uint32_t id, const ElementList* parents) {
  uint64_t lists = 1;
  const Element* elements = nullptr;
  if (parents != nullptr) {
    lists = parents->items * nodes_[nodes_[id].parent].num_cells;
    elements = parents->elements->as<Element>();
  }
  run_now(program_, kernel, lists, state(), device_layout(id), elements);
}

void TreeStorage::recycle_below(uint32_t id) {
  const NodeDescription& n = nodes_[id];
  write_inline(stream(), &state()->changed, 1);
  if (id != 0 && n.kind == NodeKind::kPointer) {
    recycle_all(id);
    return;  // what is below goes with the cells
  }
  if (n.kind == NodeKind::kDynamic) {
    run_over_lists(clear_lists, id, n.parent == 0 ? nullptr : &update_list(n.parent, false));
    return;
  }
  // Below before here: what bits make reachable is still to be found.
  for (uint32_t child : n.children) recycle_below(child);
  if (n.kind == NodeKind::kBitmasked) {
    ElementList& list = update_list(id, false);
    run_now(program_, zero_containers, list.items, list.elements->as<Element>(), n.container_bytes);
  }
}

void TreeStorage::collect(TreeState now) {
  // Root to leaves: nodes were added parents first, so allocators are in that order already.
  for (uint32_t a = 0; a < allocators_.size(); ++a) {
    if (now.allocators[a].recycled_size == 0) continue;
    collect_allocator(a, now.allocators[a].recycled_size);
    if (a + 1 < allocators_.size()) now = wait_read_state();  // it may have recycled cells below
  }
}

void TreeStorage::collect_allocator(uint32_t index, uint32_t recycled) {
  AllocatorState* a = &state()->allocators[index];
  const uint32_t node = allocators_[index].node;
  if (nodes_[node].kind == NodeKind::kDynamic) run_now(program_, collect_chain, recycled, a);
  if (layouts_[node].below.count > 0)
    run_now(program_, collect_below, recycled, state(), index, device_layout(node));
  uint64_t* counts = counts_->as<uint64_t>() + 8;
  run_now(program_, collect_begin, 1, a, counts);
  const std::vector<uint64_t> found = wait_read_inline(stream(), counts, 2);
  run_now(program_, collect_move_free, found[1], a);
  run_now(program_, collect_bookkeep, 1, a);
  run_now(program_, collect_refill, found[0], a);
}

void TreeStorage::revert_appends() {
  // Lists of cells that this run activated are to be found, too; but the loop is to run over what it ran over.
  for (uint32_t id = 1; id < nodes_.size(); ++id) {
    if (nodes_[id].kind != NodeKind::kDynamic) continue;
    const uint32_t parent = nodes_[id].parent;
    if (parent != 0) make_list(parent, reverted_);
    run_over_lists(revert_lists, id, parent == 0 ? nullptr : &reverted_);
  }
  begin_append();
}

}  // namespace coppice
