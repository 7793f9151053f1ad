// Usage of nodes and the report on a tree's memory (see memory_report.h).
#include "sparse/memory_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "sparse/runtime_launch.h"
#include "sparse/tree_storage.h"
#include "topology_tools.kernels.h"

namespace coppice {

using device::NodeKind;

namespace {

uint64_t size_of(const IntrusivePtr<Buffer>& buffer) { return buffer ? buffer->size_bytes() : 0; }

std::string per_cell(uint64_t bytes, uint64_t cells) {
  return cells == 0 ? "-" : fmt::format("{:.1f}", static_cast<double>(bytes) / static_cast<double>(cells));
}

}  // namespace

// Counts the containers of a dense or bitmasked node: those there is memory for, or those whose ancestors
// are all active.
uint64_t TreeStorage::count_containers(InStream& s, const device::TreeState& now, uint32_t node,
                                       bool committed) {
  uint64_t fan_out = 1;
  for (uint32_t n = nodes_[node].parent; n != 0; n = nodes_[n].parent) {
    if (nodes_[n].kind == NodeKind::kPointer) {
      const uint64_t capacity = paid_cells(now.allocators[nodes_[n].allocator]) - 1;
      return fan_out * (committed ? capacity : live_cells(now, n));
    }
    // Only a list tells which of them are active.
    if (nodes_[n].kind == NodeKind::kBitmasked && !committed) return update_list(s, node, false).items;
    fan_out *= nodes_[n].num_cells;
  }
  return fan_out;
}

uint64_t TreeStorage::count_active(InStream& s, uint32_t node) {
  const LoopList& list = update_list(s, node, false);
  const uint32_t words = static_cast<uint32_t>((nodes_[node].num_cells + 63) / 64);
  const IntrusivePtr<Buffer> total = device_->reserve(sizeof(uint64_t), sizeof(uint64_t));
  const CoppiceContainers containers{state(), device_layout(node), list.elements->as<device::LoopElement>(),
                                     nullptr, words};
  run_now(s, program_, ::count_active, list.items * words, containers, total->as<uint64_t>());
  return wait_read(s, total->as<uint64_t>());
}

NodeUsage TreeStorage::full_usage(InStream& s, uint32_t node, const device::TreeState& now) {
  const NodeDescription& n = nodes_[node];
  NodeUsage u;
  if (node == 0) {
    u.active_cells = u.existing_cells = u.capacity_cells = 1;
    u.cell_bytes = root_->size_bytes();
  } else if (n.kind == NodeKind::kPointer || n.kind == NodeKind::kDynamic) {
    const device::AllocatorState& a = now.allocators[n.allocator];
    const uint64_t cells = paid_cells(a);
    u.active_cells = u.existing_cells = live_cells(now, node);
    u.capacity_cells = cells - 1;
    u.cell_bytes = cells * a.cell_bytes;
    u.list_bytes = 2 * cells * sizeof(uint32_t);
    u.free_cells = a.free_size - std::min(a.free_used, a.free_size);
    u.recycled_cells = a.recycled_size;
    u.collected_cells = a.collected, u.collections = a.collections;
  } else {
    const uint64_t committed = count_containers(s, now, node, true);
    u.existing_cells = count_containers(s, now, node, false) * n.num_cells;
    u.active_cells = n.kind == NodeKind::kBitmasked ? count_active(s, node) : u.existing_cells;
    u.capacity_cells = committed * n.num_cells;
    u.cell_bytes = committed * n.container_bytes;
  }
  if (lists_[node]) {
    const LoopList& list = *lists_[node];
    u.element_list_bytes = size_of(list.elements) + size_of(list.neighbours);
  }
  u.bytes = u.cell_bytes + u.list_bytes + u.element_list_bytes;
  return u;
}

MemoryReport TreeStorage::memory_report(InStream& s) {
  MemoryReport report;
  const device::TreeState now = wait_read_state(s);
  for (uint32_t id = 1; id < nodes_.size(); ++id)
    report.nodes.push_back({path(id), nodes_[id].kind, full_usage(s, id, now)});
  report.collections = collections_;
  report.collection_s = std::chrono::duration<double>(collection_time_).count();
  report.root_bytes = root_->size_bytes();
  report.ambient_bytes = ambient_->size_bytes();
  report.bookkeeping_bytes =
      size_of(state_) + size_of(device_layouts_) + size_of(device_below_) + size_of(counts_);
  report.scratch_bytes = size_of(scratch_keys_) + size_of(scratch_cells_) + size_of(scratch_flags_) +
                         size_of(scratch_selected_) + size_of(scratch_elements_) + size_of(scratch_rows_);
  return report;
}

MemoryReport wait_memory_report(const TreeRef& tree) {
  tree->freeze();
  MemoryReport report;
  wait_in_order(tree->stream(), "sparse.memory_report",
                [&](InStream& s) { report = tree->memory_report(s); });
  return report;
}

uint64_t MemoryReport::total_bytes() const {
  uint64_t total = root_bytes + ambient_bytes + bookkeeping_bytes + scratch_bytes;
  for (const Row& row : nodes) {
    total += row.usage.list_bytes + row.usage.element_list_bytes;
    if (row.kind == NodeKind::kPointer || row.kind == NodeKind::kDynamic) total += row.usage.cell_bytes;
  }
  return total;
}

std::string MemoryReport::text() const {
  size_t width = 4;
  for (const Row& row : nodes) width = std::max(width, row.path.size());
  std::string text = fmt::format("{:<{}}  {:<9}  {:>14}  {:>14}  {:>16}  {:>16}\n", "node", width, "kind",
                                 "active cells", "capacity", "bytes", "bytes per active");
  for (const Row& row : nodes) {
    const NodeUsage& u = row.usage;
    text += fmt::format("{:<{}}  {:<9}  {:>14}  {:>14}  {:>16}  {:>16}\n", row.path, width,
                        node_kind_name(row.kind), u.active_cells, u.capacity_cells, u.bytes,
                        per_cell(u.bytes, u.active_cells));
  }
  uint64_t lists = 0;
  for (const Row& row : nodes) lists += row.usage.list_bytes + row.usage.element_list_bytes;
  const auto line = [&](const char* what, uint64_t bytes) {
    text += fmt::format("{:<{}}  {:>61}\n", what, width, bytes);
  };
  line("root", root_bytes), line("ambient", ambient_bytes), line("bookkeeping", bookkeeping_bytes);
  line("scratch", scratch_bytes), line("lists (in the nodes' bytes)", lists), line("total", total_bytes());
  return text;
}

}  // namespace coppice
