// Handles ask this of temporaries with the checks (marks.h): of a cell by its coordinate, of an element.
//
// Device-clean. Where there is no cell that could have a value, below inactive pointer cells and behind the
// end of lists, a temporary reads as zero, as any field does. The functions are no part of those that call
// them, since they are called wherever a handle is used, and only with the checks.
#pragma once
#include "sparse/device/handle_base.h"

namespace coppice::device {

COPPICE_INLINE bool is_checked_temporary(uint32_t binding) {
  return debug_checks() && coppice_fields[binding].mark != 0;
}

// Returns whether the field has a value at a coordinate, or reads as zero, since nothing is there. A list has
// its first element's.
[[gnu::noinline]] inline bool has_value_at(const LaunchBlock* block, uint32_t binding, Coord c) {
  const FieldBinding& f = coppice_fields[binding];
  const NodeLayout& node = coppice_nodes[f.node];
  const LevelLayout& last = node.level[node.depth - 1];
  const TreeState* const tree = tree_state(block, f.tree);
  const CellRef p = find(node, tree, c);
  if (!is_there(node, tree, p.container)) return true;
  if (last.kind == NodeKind::kPointer && slot_cell(p.container, p.index) == kAmbientCell) return true;
  if (last.kind == NodeKind::kDynamic && view_list(last, tree, list_at(p)).length == 0) return true;
  return is_marked(block, binding, value_at<uint64_t>(block, marks_of(f), p.container, p.index), c);
}
// Does the same for an element of a list; what is not there reads as zero.
[[gnu::noinline]] inline bool has_element_at(const LaunchBlock* block, uint32_t binding, Coord c,
                                             int64_t index) {
  const FieldBinding& f = coppice_fields[binding];
  const NodeLayout& node = coppice_nodes[f.node];
  const LevelLayout& last = node.level[node.depth - 1];
  const TreeState* const tree = tree_state(block, f.tree);
  const CellRef p = find(node, tree, c);
  const ListView list = p.active ? view_list(last, tree, list_at(p)) : ListView{kAmbientCell, 0};
  if (index < 0 || index >= list.length) return true;
  const auto at = static_cast<uint32_t>(index);
  unsigned char* const chunk = find_chunk(last, tree, list.first, at);
  return is_marked(block, binding, element_at<uint64_t>(last, marks_of(f), chunk, at), c);
}
template <int D>
COPPICE_INLINE bool has_value_for(const Entry<D>& entry, uint32_t binding) {
  const FieldBinding& f = coppice_fields[binding];
  const Coord list{entry.origin[0], entry.origin[1], entry.origin[2]};
  if (f.node == coppice_loop.node)
    return is_marked(entry.launch, binding, value_of<uint64_t>(entry, marks_of(f)), list);
  const NodeLayout& node = coppice_nodes[f.node];
  return node.level[node.depth - 1].kind == NodeKind::kDynamic
             ? has_element_at(entry.launch, binding, list, entry.index)
             : has_value_at(entry.launch, binding, list);
}

// Note that the field has a value in a cell, of an element, and in all cells of a block.
COPPICE_INLINE void mark_cell(const LaunchBlock* block, uint32_t binding, unsigned char* container,
                              uint32_t index) {
  const FieldBinding& f = coppice_fields[binding];
  mark(f, value_at<uint64_t>(block, marks_of(f), container, index));
}
template <int D>
COPPICE_INLINE void mark_element(const Entry<D>& entry, uint32_t binding) {
  const FieldBinding& f = coppice_fields[binding];
  mark(f, value_of<uint64_t>(entry, marks_of(f)));
}
template <int D>
[[gnu::noinline]] inline void mark_block(const Block<D>& block, uint32_t binding) {
  const FieldBinding& f = coppice_fields[binding];
  if ((f.access & kBlockData) == 0) return;
  unsigned char* const container = block_container(block, f);
  for (uint32_t i = 0; i < f.num_values; ++i) mark_cell(block.launch, binding, container, i);
}

}  // namespace coppice::device
