// Reports on trees, and their histories (see tree_memory.h).
#include "apps/viewer/tree_memory.h"

#include <algorithm>
#include <utility>

namespace coppice::viewer {
namespace {

void add_value(const std::vector<float>* before, uint64_t value, std::vector<float>& now) {
  now.clear();
  if (before != nullptr) {
    const size_t kept = std::min(before->size(), kHistory - 1);
    now.assign(before->end() - static_cast<std::ptrdiff_t>(kept), before->end());
  }
  now.push_back(static_cast<float>(value));
}

}  // namespace

TreeMemory tree_memory(std::string name, const MemoryReport& report) {
  TreeMemory tree;
  tree.name = std::move(name);
  for (const MemoryReport::Row& row : report.nodes) {
    const NodeUsage& u = row.usage;
    NodeMemory node;
    node.path = row.path;
    // Parents come first, and their paths are how those of their children begin.
    for (const NodeMemory& above : tree.nodes)
      if (row.path.starts_with(above.path + '.')) node.depth = std::max(node.depth, above.depth + 1);
    node.has_cells = row.kind == device::NodeKind::kPointer || row.kind == device::NodeKind::kDynamic;
    node.active = u.active_cells, node.capacity = u.capacity_cells, node.bytes = u.bytes;
    node.free = u.free_cells, node.recycled = u.recycled_cells;
    node.collected = u.collected_cells, node.collections = u.collections;
    tree.nodes.push_back(std::move(node));
  }
  tree.bytes = report.total_bytes();
  tree.collections = report.collections, tree.collection_s = report.collection_s;
  return tree;
}

void add_to_history(const MemoryState& before, MemoryState& now) {
  for (size_t t = 0; t < now.trees.size(); ++t) {
    TreeMemory& tree = now.trees[t];
    const TreeMemory* const old = t < before.trees.size() ? &before.trees[t] : nullptr;
    const bool is_known = old != nullptr && old->name == tree.name;  // names alone need not be distinct
    add_value(is_known ? &old->history : nullptr, tree.bytes, tree.history);
    for (size_t i = 0; i < tree.nodes.size(); ++i) {
      NodeMemory& node = tree.nodes[i];
      const bool is_same = is_known && i < old->nodes.size() && old->nodes[i].path == node.path;
      add_value(is_same ? &old->nodes[i].history : nullptr, node.active, node.history);
    }
  }
}

}  // namespace coppice::viewer
