// Sizes of trees' nodes (see node_sizes.h; drawings in sparse/device/layout.h).
#include "sparse/node_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/extents.h"

namespace coppice {

using device::NodeKind;

namespace {

// No address space has so many bytes. Sizes of nodes stay below a few times that, so that they are
// multiplied in 64 bits.
constexpr uint64_t kMostBytes = uint64_t{1} << 48;

// Arrays of a cache line and more start on a line of their own, so that rows are aligned for vector loads.
uint64_t alignment_of_array(uint64_t bytes, uint64_t element_alignment) {
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

// Places fields that have arrays, or structs of theirs, from byte `first` on.
class FieldPlacer {
 public:
  FieldPlacer(TreeNode& n, std::vector<TreeField>& fields)
      : n_(n),
        fields_(fields),
        has_structs_(n.layout == CellLayout::kArrayOfStructs || n.kind == NodeKind::kPointer),
        cells_(n.kind == NodeKind::kPointer ? 1 : n.num_cells) {
    for (uint32_t f : n.fields) (fields[f].is_temporary() ? temporaries_ : own_).push_back(f);
  }

  // Each of these returns where what it has placed ends.
  uint64_t place_own(uint64_t first, bool with_marks);
  uint64_t place_temporaries(uint64_t first);

  uint64_t alignment() const { return alignment_; }  // that a container needs for what it has placed

 private:
  void take_places(uint64_t first, uint64_t stride);

  TreeNode& n_;
  std::vector<TreeField>& fields_;
  const bool has_structs_;
  const uint64_t cells_;
  std::vector<uint32_t> own_, temporaries_;
  uint64_t alignment_ = 8;
};

uint64_t FieldPlacer::place_own(uint64_t first, bool with_marks) {
  uint64_t at = first;
  const auto place_array = [&](uint64_t bytes, uint64_t alignment) {
    at = round_up(at, alignment_of_array(bytes * cells_, alignment));
    alignment_ = std::max(alignment_, alignment);
    return std::exchange(at, at + bytes * cells_);
  };
  if (has_structs_) {
    Record record;
    for (uint32_t f : own_) fields_[f].offset = record.append(fields_[f].bytes, fields_[f].alignment);
    const uint64_t stride = record.stride(), begin = place_array(stride, record.alignment);
    for (uint32_t f : own_) {
      fields_[f].offset += begin;
      fields_[f].stride = static_cast<uint32_t>(stride);
    }
  } else {
    for (uint32_t f : own_) {
      fields_[f].offset = place_array(fields_[f].bytes, fields_[f].alignment);
      fields_[f].stride = static_cast<uint32_t>(fields_[f].bytes);
    }
  }
  if (with_marks && !temporaries_.empty()) {
    n_.marks_offset = place_array(sizeof(uint64_t), alignof(uint64_t));
    n_.marks_stride = sizeof(uint64_t);
  }
  return at;
}

uint64_t FieldPlacer::place_temporaries(uint64_t first) {
  if (temporaries_.empty()) return first;
  std::vector<const FieldDescription*> descriptions;
  for (uint32_t f : temporaries_) descriptions.push_back(&fields_[f]);
  n_.temporaries = plan_cell_memory(descriptions, has_structs_ ? 1 : cells_);
  const auto alignment = static_cast<uint64_t>(n_.temporaries.alignment);
  const auto bytes = static_cast<uint64_t>(n_.temporaries.plan.bytes);
  const uint64_t stride = has_structs_ ? round_up(bytes, alignment) : bytes;
  // All that lies before them is zeroed by words of 8 bytes.
  const uint64_t begin = round_up(
      first,
      std::max<uint64_t>(8, has_structs_ ? alignment_of_array(stride * cells_, alignment) : alignment));
  for (uint32_t f : temporaries_) alignment_ = std::max(alignment_, fields_[f].alignment);
  take_places(begin, stride);
  return begin + (has_structs_ ? stride * cells_ : stride);
}

void FieldPlacer::take_places(uint64_t first, uint64_t stride) {
  for (uint32_t i = 0; i < temporaries_.size(); ++i) {
    TreeField& f = fields_[temporaries_[i]];
    f.number = i;
    f.begin = static_cast<uint64_t>(n_.temporaries.plan.offsets[i]);
    f.end = f.begin + static_cast<uint64_t>(n_.temporaries.problem.buffers[i].bytes);
    f.offset = first + f.begin;
    f.stride = static_cast<uint32_t>(has_structs_ ? stride : f.bytes);
  }
  for (uint32_t f : temporaries_) {
    for (uint32_t g : temporaries_)
      if (f != g && fields_[f].begin < fields_[g].end && fields_[g].begin < fields_[f].end)
        fields_[f].sharers.push_back(g);
  }
}

// The dynamic node's containers are the heads of its lists, its cells are chunks.
void lay_out_lists(TreeNode& n, FieldPlacer& placer, bool with_marks) {
  const uint64_t end = placer.place_own(device::kChunkHeaderBytes, with_marks);
  n.cell_offset = placer.place_temporaries(end);
  n.cell_bytes = round_up(n.cell_offset, 64);
  n.cell_zeroed = n.temporaries.is_empty() ? n.cell_bytes : round_up(end, 8);
  n.container_bytes = n.container_zeroed = sizeof(device::ListHeader);
  n.container_alignment = alignof(device::ListHeader);
}

// Places a pointer node's temporaries behind all that must be zero in a cell.
void lay_out_pointer(TreeNode& n, FieldPlacer& placer, const Record& children, uint64_t children_zeroed,
                     bool with_marks) {
  const uint64_t children_bytes = children.stride();
  const uint64_t end = placer.place_own(sizeof(device::CellHeader), with_marks);
  n.cell_offset = round_up(end, children.alignment);
  const uint64_t last = placer.place_temporaries(n.cell_offset + children_bytes);
  // A header's atomics need 8-byte cells at least; payloads of a cache line and more keep their lines.
  const uint64_t lines = children_bytes >= 64 ? std::max<uint64_t>(64, children.alignment) : 16;
  n.cell_bytes = round_up(last, std::max(lines, static_cast<uint64_t>(n.temporaries.alignment)));
  const bool ends_with_zeros = n.temporaries.is_empty() && children_zeroed == children.bytes;
  n.cell_zeroed = ends_with_zeros ? n.cell_bytes : round_up(n.cell_offset + children_zeroed, 8);
  n.container_bytes = n.num_cells * sizeof(uint32_t);
}

void lay_out_cells(TreeNode& n, FieldPlacer& placer, const Record& children, bool with_marks) {
  const uint64_t children_bytes = children.stride();
  const uint64_t first = n.kind == NodeKind::kBitmasked
                             ? device::kMasks * device::mask_words(n.num_cells) * sizeof(uint64_t)
                             : 0;
  const uint64_t zeroed = placer.place_own(first, with_marks), end = placer.place_temporaries(zeroed);
  n.cell_offset = children_bytes > 0 ? round_up(end, children.alignment) : end;
  n.cell_bytes = children_bytes;
  n.container_bytes = n.cell_offset + children_bytes * n.num_cells;
  if (children_bytes == 0 && !n.temporaries.is_empty()) n.container_zeroed = round_up(zeroed, 8);
}

void lay_out_container(TreeNode& n, FieldPlacer& placer, const Record& children, uint64_t children_zeroed,
                       bool with_marks) {
  if (n.kind == NodeKind::kPointer)
    lay_out_pointer(n, placer, children, children_zeroed, with_marks);
  else
    lay_out_cells(n, placer, children, with_marks);
  const uint64_t alignment =
      std::max(placer.alignment(), n.kind == NodeKind::kPointer ? 8 : children.alignment);
  n.container_alignment = n.container_bytes >= 64 ? std::max<uint64_t>(64, alignment) : alignment;
  n.container_bytes = round_up(std::max<uint64_t>(n.container_bytes, 8), n.container_alignment);
  if (n.container_zeroed == 0) n.container_zeroed = n.container_bytes;
}

// Returns a node's children, in the order in which their containers lie in a cell: last comes the one with
// most bytes of temporaries at its end.
std::vector<uint32_t> order_of_children(const TreeNode& n, const std::vector<TreeNode>& nodes) {
  const auto tail = [&](uint32_t c) { return nodes[c].container_bytes - nodes[c].container_zeroed; };
  std::vector<uint32_t> order = n.children;
  const auto largest =
      std::max_element(order.begin(), order.end(), [&](auto a, auto b) { return tail(a) < tail(b); });
  if (largest != order.end() && tail(*largest) > 0) std::rotate(largest, largest + 1, order.end());
  return order;
}

// Returns whether temporaries lie in a node's containers: those of slots' cells are elsewhere.
bool holds_temporaries(const TreeNode& n) {
  const bool is_array = n.kind == NodeKind::kDense || n.kind == NodeKind::kBitmasked;
  return is_array && (!n.temporaries.is_empty() || n.zeroes_temporaries);
}

// Finds the sizes of a node, children first.
void lay_out(const TreeDescription& description, std::vector<TreeNode>& nodes, std::vector<TreeField>& fields,
             uint32_t id, bool with_marks) {
  TreeNode& n = nodes[id];
  for (uint32_t child : n.children) lay_out(description, nodes, fields, child, with_marks);
  Record children;
  uint64_t children_zeroed = 0;
  const std::vector<uint32_t> order = order_of_children(n, nodes);
  for (uint32_t child : order) {
    TreeNode& c = nodes[child];
    const bool is_at_end = n.kind == NodeKind::kPointer && child == order.back() && !c.zeroes_temporaries;
    n.zeroes_temporaries |= holds_temporaries(c) && !is_at_end;
    c.offset_in_cell = children.append(c.container_bytes, c.container_alignment);
    children_zeroed = c.offset_in_cell + c.container_zeroed;
  }
  if (const double bytes = least_bytes(n, fields, children.stride()); bytes > kMostBytes) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("node {}: its {:.3g} bytes are more than 2^48", description.path(id), bytes));
  }
  FieldPlacer placer(n, fields);
  if (n.kind == NodeKind::kDynamic)
    lay_out_lists(n, placer, with_marks);
  else
    lay_out_container(n, placer, children, children_zeroed, with_marks);
  const bool is_inner = n.kind == NodeKind::kDense || n.kind == NodeKind::kBitmasked;
  n.zeroes_temporaries |= is_inner && !n.children.empty() && !n.temporaries.is_empty();
}

}  // namespace

void find_sizes(const TreeDescription& description, std::vector<TreeNode>& nodes,
                std::vector<TreeField>& fields, bool tracks_temporaries) {
  lay_out(description, nodes, fields, 0, tracks_temporaries);
}

uint64_t array_alignment(uint64_t bytes, uint64_t element_alignment, uint64_t cells) {
  return cells == 1 ? element_alignment : alignment_of_array(bytes, element_alignment);
}

}  // namespace coppice
