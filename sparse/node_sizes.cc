// Sizes of trees' nodes (see node_sizes.h; drawings in sparse/device/layout.h).
#include "sparse/node_sizes.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/extents.h"

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
double least_bytes(const TreeNode& n, const std::vector<TreeField>& fields, uint64_t children_bytes) {
  double of_cell = static_cast<double>(children_bytes);
  for (const uint32_t f : n.fields) of_cell += static_cast<double>(fields[f].bytes);
  return n.kind == NodeKind::kPointer ? of_cell : of_cell * static_cast<double>(n.num_cells);
}

// Places a node's own fields from byte `first` on; returns where they end.
uint64_t lay_out_fields(const TreeNode& n, std::vector<TreeField>& fields, uint64_t first, bool single_cell) {
  uint64_t at = first;
  const uint64_t cells = single_cell ? 1 : n.num_cells;
  if (n.layout == CellLayout::kArrayOfStructs || single_cell) {
    Record record;
    for (uint32_t f : n.fields) fields[f].offset = record.append(fields[f].bytes, fields[f].alignment);
    const uint64_t stride = record.stride(), alignment = record.alignment;
    at = round_up(at, array_alignment(stride * cells, alignment));
    for (uint32_t f : n.fields) {
      fields[f].offset += at;
      fields[f].stride = static_cast<uint32_t>(stride);
    }
    at += stride * cells;
  } else {
    for (uint32_t f : n.fields) {
      at = round_up(at, array_alignment(fields[f].bytes * cells, fields[f].alignment));
      fields[f].offset = at;
      fields[f].stride = static_cast<uint32_t>(fields[f].bytes);
      at += fields[f].bytes * cells;
    }
  }
  return at;
}

// The dynamic node's containers are the heads of its lists, its cells are chunks.
void lay_out_lists(TreeNode& n, std::vector<TreeField>& fields) {
  n.cell_offset = lay_out_fields(n, fields, device::kChunkHeaderBytes, false);
  n.cell_bytes = round_up(n.cell_offset, 64);
  n.container_bytes = sizeof(device::ListHeader);
  n.container_alignment = alignof(device::ListHeader);
}

void lay_out_cells(TreeNode& n, std::vector<TreeField>& fields, const Record& children) {
  const uint64_t children_bytes = children.stride();
  if (n.kind == NodeKind::kPointer) {
    const uint64_t end = lay_out_fields(n, fields, sizeof(device::CellHeader), true);
    n.cell_offset = round_up(end, children.alignment);
    // A header's atomics need 8-byte cells at least; payloads of a cache line and more keep their lines.
    n.cell_bytes = round_up(n.cell_offset + children_bytes,
                            children_bytes >= 64 ? std::max<uint64_t>(64, children.alignment) : 16);
    n.container_bytes = n.num_cells * sizeof(uint32_t);
  } else {
    const uint64_t first = n.kind == NodeKind::kBitmasked
                               ? device::kMasks * device::mask_words(n.num_cells) * sizeof(uint64_t)
                               : 0;
    const uint64_t end = lay_out_fields(n, fields, first, false);
    n.cell_offset = children_bytes > 0 ? round_up(end, children.alignment) : end;
    n.cell_bytes = children_bytes;
    n.container_bytes = n.cell_offset + children_bytes * n.num_cells;
  }
  uint64_t alignment = std::max<uint64_t>(8, n.kind == NodeKind::kPointer ? 8 : children.alignment);
  for (uint32_t f : n.fields) alignment = std::max(alignment, fields[f].alignment);
  n.container_alignment = n.container_bytes >= 64 ? std::max<uint64_t>(64, alignment) : alignment;
  n.container_bytes = round_up(std::max<uint64_t>(n.container_bytes, 8), n.container_alignment);
}

// Finds the sizes of a node, children first.
void lay_out(const TreeDescription& description, std::vector<TreeNode>& nodes, std::vector<TreeField>& fields,
             uint32_t id) {
  TreeNode& n = nodes[id];
  for (uint32_t child : n.children) lay_out(description, nodes, fields, child);
  Record children;
  for (uint32_t child : n.children) {
    TreeNode& c = nodes[child];
    c.offset_in_cell = children.append(c.container_bytes, c.container_alignment);
  }
  if (const double bytes = least_bytes(n, fields, children.stride()); bytes > kMostBytes) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("node {}: its {:.3g} bytes are more than 2^48", description.path(id), bytes));
  }
  if (n.kind == NodeKind::kDynamic)
    lay_out_lists(n, fields);
  else
    lay_out_cells(n, fields, children);
}

}  // namespace

void find_sizes(const TreeDescription& description, std::vector<TreeNode>& nodes,
                std::vector<TreeField>& fields) {
  lay_out(description, nodes, fields, 0);
}

}  // namespace coppice
