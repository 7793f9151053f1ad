// Sizes of a tree's nodes in memory: where fields and children lie in a cell, and how large containers are
// (see tree_storage.h; drawings in sparse/device/layout.h).
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/extents.h"
#include "sparse/tree_storage.h"

namespace coppice {

using device::NodeKind;

namespace {

// No address space has so many bytes. Sizes of nodes stay below a few times that, so that they are
// multiplied in 64 bits.
constexpr uint64_t kMostBytes = uint64_t{1} << 48;

// Arrays of a cache line and more start on a line of their own, so that rows are aligned for vector loads.
uint64_t array_alignment(uint64_t bytes, uint64_t element_alignment) {
  return bytes >= 64 ? std::max<uint64_t>(64, element_alignment) : std::max<uint64_t>(element_alignment, 1);
}

// Lays out members one behind another, each at its alignment, as in a struct.
struct Record {
  uint64_t bytes = 0, alignment = 1;
  // Returns the new member's offset.
  uint64_t append(uint64_t member_bytes, uint64_t member_alignment) {
    const uint64_t offset = round_up(bytes, member_alignment);
    bytes = offset + member_bytes;
    alignment = std::max(alignment, member_alignment);
    return offset;
  }
  uint64_t stride() const { return round_up(bytes, alignment); }
};

// Returns the least bytes of a container of a node, or of a cell of a pointer node. A double does not
// overflow.
double least_bytes(const NodeDescription& n, const std::vector<FieldDescription>& fields,
                   uint64_t children_bytes) {
  double of_cell = static_cast<double>(children_bytes);
  for (const uint32_t f : n.fields) of_cell += static_cast<double>(fields[f].bytes);
  return n.kind == NodeKind::kPointer ? of_cell : of_cell * static_cast<double>(n.num_cells);
}

}  // namespace

// Places a node's own fields from byte `first` on; `end` is where they end.
void TreeStorage::lay_out_fields(NodeDescription& n, uint64_t first, bool single_cell, uint64_t& end) {
  uint64_t at = first;
  const uint64_t cells = single_cell ? 1 : n.num_cells;
  if (n.layout == CellLayout::kArrayOfStructs || single_cell) {
    Record record;
    for (uint32_t f : n.fields) fields_[f].offset = record.append(fields_[f].bytes, fields_[f].alignment);
    const uint64_t stride = record.stride(), alignment = record.alignment;
    at = round_up(at, array_alignment(stride * cells, alignment));
    for (uint32_t f : n.fields) {
      fields_[f].offset += at;
      fields_[f].stride = static_cast<uint32_t>(stride);
    }
    at += stride * cells;
  } else {
    for (uint32_t f : n.fields) {
      at = round_up(at, array_alignment(fields_[f].bytes * cells, fields_[f].alignment));
      fields_[f].offset = at;
      fields_[f].stride = static_cast<uint32_t>(fields_[f].bytes);
      at += fields_[f].bytes * cells;
    }
  }
  end = at;
}

// Finds the sizes of a node, children first.
void TreeStorage::lay_out(uint32_t id) {
  for (uint32_t child : nodes_[id].children) lay_out(child);
  NodeDescription& n = nodes_[id];
  Record children;
  for (uint32_t child : n.children) {
    NodeDescription& c = nodes_[child];
    c.offset_in_cell = children.append(c.container_bytes, c.container_alignment);
  }
  const uint64_t children_bytes = children.stride(), children_alignment = children.alignment;
  if (const double bytes = least_bytes(n, fields_, children_bytes); bytes > kMostBytes) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("node {}: its {:.3g} bytes are more than 2^48", path(id), bytes));
  }
  if (n.kind == NodeKind::kDynamic) {
    lay_out_fields(n, device::kChunkHeaderBytes, false, n.cell_offset);
    n.cell_bytes = round_up(n.cell_offset, 64);
    n.container_bytes = sizeof(device::ListHeader);
    n.container_alignment = alignof(device::ListHeader);
    return;
  }
  if (n.kind == NodeKind::kPointer) {
    uint64_t end = sizeof(device::CellHeader);
    lay_out_fields(n, end, true, end);
    n.cell_offset = round_up(end, children_alignment);
    // A header's atomics need 8-byte cells at least; payloads of a cache line and more keep their lines.
    n.cell_bytes = round_up(n.cell_offset + children_bytes,
                            children_bytes >= 64 ? std::max<uint64_t>(64, children_alignment) : 16);
    n.container_bytes = n.num_cells * sizeof(uint32_t);
  } else {
    uint64_t end = n.kind == NodeKind::kBitmasked
                       ? device::kMasks * device::mask_words(n.num_cells) * sizeof(uint64_t)
                       : 0;
    lay_out_fields(n, end, false, end);
    n.cell_offset = children_bytes > 0 ? round_up(end, children_alignment) : end;
    n.cell_bytes = children_bytes;
    n.container_bytes = n.cell_offset + children_bytes * n.num_cells;
  }
  uint64_t alignment = std::max<uint64_t>(8, n.kind == NodeKind::kPointer ? 8 : children_alignment);
  for (uint32_t f : n.fields) alignment = std::max(alignment, fields_[f].alignment);
  n.container_alignment = n.container_bytes >= 64 ? std::max<uint64_t>(64, alignment) : alignment;
  n.container_bytes = round_up(std::max<uint64_t>(n.container_bytes, 8), n.container_alignment);
}

}  // namespace coppice
