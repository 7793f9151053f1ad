// Says what a tree is to be: its nodes and fields, as they are given before its first use.
//
// One thread adds to it, and nothing is added once the tree is frozen (TreeStorage::describe()). Errors of
// what is added: kInvalidArgument.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sparse/tree.h"

namespace coppice {

inline constexpr uint32_t kNoField = ~0u;  // of a Topology handle: a node without a value

const char* node_kind_name(device::NodeKind kind);  // "pointer"

struct NodeDescription {
  device::NodeKind kind = device::NodeKind::kDense;
  uint32_t parent = 0;
  std::vector<uint32_t> children;
  std::vector<Axis> axes;
  bool names_axes = false;       // by its author; else they are all of the tree's
  std::vector<int32_t> extents;  // as given, for messages
  CellLayout layout = CellLayout::kStructOfArrays;
  std::vector<uint32_t> fields;
  uint64_t num_cells = 1;   // of a container; dynamic: of a chunk
  uint32_t max_length = 0;  // dynamic: of a list
};

struct FieldDescription {
  std::string name;
  uint32_t node = 0;
  uint64_t bytes = 0, alignment = 1;
  std::optional<Stages> stages;  // of a temporary
};

class TreeDescription {
 public:
  explicit TreeDescription(TreeOptions options);

  uint32_t add_node(uint32_t parent, device::NodeKind kind, std::vector<Axis> axes,
                    std::vector<int32_t> extents);
  // Adds a dynamic node; `axis` must be none that an ancestor has.
  uint32_t add_lists(uint32_t parent, std::optional<Axis> axis, int32_t max_length, int32_t chunk_cells);
  // Adds a field, with stages a temporary.
  uint32_t add_field(uint32_t node, std::string name, size_t bytes, size_t alignment,
                     std::optional<Stages> stages = {});
  void set_layout(uint32_t node, CellLayout layout) { nodes_[node].layout = layout; }

  const TreeOptions& options() const { return options_; }
  const std::vector<NodeDescription>& nodes() const { return nodes_; }  // parents first; 0: the root
  const NodeDescription& node(uint32_t id) const { return nodes_[id]; }
  const std::vector<FieldDescription>& fields() const { return fields_; }
  std::vector<uint32_t> path_nodes(uint32_t node) const;  // from the root's child on
  std::string path(uint32_t node) const;                  // "root.pointer[64,64,64].dense[8,8,8]"

 private:
  void require_place_below(uint32_t parent, const std::string& what) const;
  void require_axes_of_others(uint32_t parent, const std::vector<Axis>& axes, const std::string& what) const;
  std::vector<Axis> axes_above(uint32_t node) const;
  uint32_t attach(NodeDescription n);

  TreeOptions options_;
  std::vector<NodeDescription> nodes_;
  std::vector<FieldDescription> fields_;
};

}  // namespace coppice
