// The checks of temporaries (Node::temporary): which of them have a value in a cell.
//
// Device-clean. The host knows which temporaries have values at all (sparse/temporary_fields.h); cells know
// which have one there. A cell of a node with temporaries has a word of marks where they are tracked
// (TreeOptions::checks_temporaries), a bit for each of them. It is zero in a cell that is new. A store sets
// the field's bit and clears those of fields that share bytes with it; a read asks for it. Without the checks
// all of it is folded away.
#pragma once
#include "sparse/device/activation.h"

namespace coppice::device {

// Returns where a field's cells have their words of marks, as if these were the field's values.
COPPICE_INLINE FieldBinding marks_of(const FieldBinding& f) {
  FieldBinding marks = f;
  marks.offset = f.marks_offset, marks.stride = f.marks_stride;
  return marks;
}

// Returns whether the container of a node is one, and not the zeros that inactive cells read as.
COPPICE_INLINE bool is_there(const NodeLayout& node, const TreeState* tree, const unsigned char* container) {
  if (container == tree->ambient) return false;
  for (uint32_t l = node.depth - 1; l-- > 0;) {
    if (node.level[l].kind != NodeKind::kPointer) continue;
    const AllocatorState& a = tree->allocators[node.level[l].allocator];
    return static_cast<uint64_t>(container - a.cells) >= node.level[l].cell_bytes;
  }
  return true;
}

// Returns whether a temporary has a value in the cell at `c`. Where it has none that is an error.
COPPICE_INLINE bool is_marked(const LaunchBlock* block, uint32_t binding, const uint64_t* marks, Coord c) {
  const FieldBinding& f = coppice_fields[binding];
  const uint64_t now = relaxed_load(marks);
  if ((now & f.mark) != 0) return true;
  raise_status(block, DeviceStatus::kNotWritten, f.tree, binding, c,
               {static_cast<int32_t>(now & f.sharers), 0, 0});
  return false;
}
// Notes that a temporary has a value from now on, and those that share its bytes have none.
COPPICE_INLINE void mark(const FieldBinding& f, uint64_t* marks) {
  if (makes_room()) return;
  coppice_fetch_and_u64(marks, ~uint64_t{f.sharers});
  coppice_fetch_or_u64(marks, f.mark);
}

}  // namespace coppice::device
