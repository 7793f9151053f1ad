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

// Reads what nodes' memory is spent on, as of one state of the tree.
class UsageReader {
 public:
  UsageReader(InStream& s, TreeStorage& tree)
      : s_(s),
        layout_(tree.layout()),
        memory_(tree.memory()),
        lists_(tree.lists()),
        program_(tree.programs().in_order(s)),
        now_(memory_.wait_read_state(s)) {}
  NodeUsage usage(uint32_t node);

 private:
  uint64_t count_containers(uint32_t node, bool committed);
  uint64_t count_active(uint32_t node);

  InStream& s_;
  const TreeLayout& layout_;
  TreeMemory& memory_;
  LoopLists& lists_;
  Program& program_;
  const device::TreeState now_;
};

// Counts the containers of a dense or bitmasked node: those there is memory for, or those whose ancestors
// are all active.
uint64_t UsageReader::count_containers(uint32_t node, bool committed) {
  uint64_t fan_out = 1;
  for (uint32_t n = layout_.node(node).parent; n != 0; n = layout_.node(n).parent) {
    if (layout_.node(n).kind == NodeKind::kPointer) {
      const uint64_t capacity = memory_.paid_cells(now_.allocators[layout_.node(n).allocator]) - 1;
      return fan_out * (committed ? capacity : memory_.live_cells(now_, n));
    }
    // Only a list tells which of them are active.
    if (layout_.node(n).kind == NodeKind::kBitmasked && !committed)
      return lists_.update(s_, node, false).items;
    fan_out *= layout_.node(n).num_cells;
  }
  return fan_out;
}

uint64_t UsageReader::count_active(uint32_t node) {
  const LoopList& list = lists_.update(s_, node, false);
  const uint32_t words = static_cast<uint32_t>((layout_.node(node).num_cells + 63) / 64);
  const IntrusivePtr<Buffer> total = memory_.device().reserve(sizeof(uint64_t), sizeof(uint64_t));
  const CoppiceContainers containers{memory_.state(), memory_.device_layout(node),
                                     list.elements->as<device::LoopElement>(), nullptr, words};
  run_now(s_, program_, ::count_active, list.items * words, containers, total->as<uint64_t>());
  return wait_read(s_, total->as<uint64_t>());
}

NodeUsage UsageReader::usage(uint32_t node) {
  const TreeNode& n = layout_.node(node);
  NodeUsage u;
  if (node == 0) {
    u.active_cells = u.existing_cells = u.capacity_cells = 1;
    u.cell_bytes = memory_.root().size_bytes();
  } else if (n.kind == NodeKind::kPointer || n.kind == NodeKind::kDynamic) {
    const device::AllocatorState& a = now_.allocators[n.allocator];
    const uint64_t cells = memory_.paid_cells(a);
    u.active_cells = u.existing_cells = memory_.live_cells(now_, node);
    u.capacity_cells = cells - 1;
    u.cell_bytes = cells * a.cell_bytes;
    u.list_bytes = 2 * cells * sizeof(uint32_t);
    u.free_cells = a.free_size - std::min(a.free_used, a.free_size);
    u.recycled_cells = a.recycled_size;
    u.collected_cells = a.collected, u.collections = a.collections;
  } else {
    const uint64_t committed = count_containers(node, true);
    u.existing_cells = count_containers(node, false) * n.num_cells;
    u.active_cells = n.kind == NodeKind::kBitmasked ? count_active(node) : u.existing_cells;
    u.capacity_cells = committed * n.num_cells;
    u.cell_bytes = committed * n.container_bytes;
  }
  if (const auto& list = lists_.all()[node])
    u.element_list_bytes = size_of(list->elements) + size_of(list->neighbours);
  u.bytes = u.cell_bytes + u.list_bytes + u.element_list_bytes;
  return u;
}

}  // namespace

NodeUsage detail::usage_of(InStream& s, TreeStorage& tree, uint32_t node) {
  return UsageReader(s, tree).usage(node);
}

MemoryReport detail::report_memory(InStream& s, TreeStorage& tree) {
  const TreeLayout& layout = tree.layout();
  MemoryReport report;
  UsageReader reader(s, tree);
  for (uint32_t id = 1; id < layout.nodes().size(); ++id) {
    report.nodes.push_back({layout.path(id), layout.node(id).kind, reader.usage(id)});
    const CellMemory& temporaries = layout.node(id).temporaries;
    if (!temporaries.is_empty())
      report.temporaries.push_back(fmt::format("{}: {}", layout.path(id), text_of(temporaries)));
  }
  report.collections = tree.collector().collections();
  report.collection_s = tree.collector().collection_s();
  report.root_bytes = tree.memory().root().size_bytes();
  report.ambient_bytes = tree.memory().ambient().size_bytes();
  report.bookkeeping_bytes = tree.memory().bookkeeping_bytes();
  report.scratch_bytes = tree.scratch().size_bytes();
  return report;
}

MemoryReport wait_memory_report(const TreeRef& tree) {
  tree->freeze();
  MemoryReport report;
  wait_in_order(tree->stream(), "sparse.memory_report",
                [&](InStream& s) { report = detail::report_memory(s, *tree); });
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
  for (const std::string& node : temporaries) text += node + "\n";
  return text;
}

}  // namespace coppice
