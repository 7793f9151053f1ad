// How a tree lies in memory: fixed when the tree is frozen, and never changed again. Any thread may read it.
// The drawings are in sparse/device/layout.h.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sparse/cell_memory.h"
#include "sparse/device/layout.h"
#include "sparse/tree_description.h"

namespace coppice {

struct TreeNode : NodeDescription {
  std::array<uint32_t, device::kMaxDims> extent{1, 1, 1};  // by tree dimension
  uint32_t allocator = 0;                                  // of a pointer or dynamic node
  uint64_t container_bytes = 0;
  uint64_t container_alignment = 8;
  // Dense, bitmasked: of the child containers' cells. Pointer, dynamic: where a cell's fields end.
  uint64_t cell_offset = 0;
  uint64_t cell_bytes = 0;
  uint64_t offset_in_cell = 0;  // of this node's container in its parent's cell
  // Bytes of a container, and of a pointer or dynamic node's cell, that are zero when it is handed out:
  // temporaries may lie behind them.
  uint64_t container_zeroed = 0, cell_zeroed = 0;
  bool zeroes_temporaries = false;  // some lie among these bytes: of all but one of its cell's children
  CellMemory temporaries;
  // Where tracked: the words that say which temporaries a cell has (device::FieldBinding), as of a field.
  uint64_t marks_offset = 0;
  uint32_t marks_stride = 0;  // 0: there are none
};

struct TreeField : FieldDescription {
  uint64_t offset = 0;  // from the container (pointer: the cell) to cell 0's value
  uint32_t stride = 0;
  // These are a temporary's: its place among the node's, its bytes where these lie, and which others have
  // some of them.
  uint32_t number = 0;
  uint64_t begin = 0, end = 0;
  std::vector<uint32_t> sharers;
  bool is_temporary() const { return stages.has_value(); }
};

class TreeLayout {
 public:
  // The description outlives it, and stays as it is. Cells of nodes with temporaries have marks where these
  // are tracked. Errors: kInvalidArgument.
  explicit TreeLayout(const TreeDescription& description, bool tracks_temporaries = false);

  const TreeOptions& options() const { return description_.options(); }
  std::vector<uint32_t> path_nodes(uint32_t node) const { return description_.path_nodes(node); }
  std::string path(uint32_t node) const { return description_.path(node); }

  const std::vector<TreeNode>& nodes() const { return nodes_; }  // parents first; 0: the root
  const TreeNode& node(uint32_t id) const { return nodes_[id]; }
  const std::vector<TreeField>& fields() const { return fields_; }
  const TreeField& field(uint32_t id) const { return fields_[id]; }
  std::string field_name(uint32_t id) const;  // "'now' on root.pointer[64].dense[8]"
  // Returns the number of its coordinates; a tree of one list has one, with a single coordinate.
  uint32_t dims() const { return std::max<uint32_t>(1, static_cast<uint32_t>(axes_.size())); }
  // Pointer and dynamic nodes have an allocator each; this is by its number, parents first.
  const std::vector<uint32_t>& allocator_nodes() const { return allocator_nodes_; }
  uint32_t num_allocators() const { return static_cast<uint32_t>(allocator_nodes_.size()); }
  bool has_neighbour_table(uint32_t node) const;  // right below a pointer node
  // Returns how many values coordinate keys of the first levels of a path can have, which tells how wide they
  // must be. Saturates.
  uint64_t key_space(const std::vector<uint32_t>& path, size_t levels) const;

  // Kernels have these as constants, and lists of nodes by NodeLayout::below.
  const device::NodeLayout& node_layout(uint32_t node) const { return node_layouts_[node]; }
  std::span<const device::NodeLayout> node_layouts() const { return node_layouts_; }
  std::span<const uint32_t> below() const { return below_; }

 private:
  void assign_dimensions();
  void number_allocators();
  void find_below(uint32_t node, std::vector<uint32_t>& below) const;
  void build_below();

  const TreeDescription& description_;
  std::vector<TreeNode> nodes_;
  std::vector<TreeField> fields_;
  std::vector<Axis> axes_;  // of the tree, in axis order
  std::vector<uint32_t> allocator_nodes_;
  std::vector<device::NodeLayout> node_layouts_;
  std::vector<uint32_t> below_;
};

// Returns the most chunks of a list of a dynamic node; 1 for any other.
uint32_t max_chunks(const NodeDescription& node);

}  // namespace coppice
