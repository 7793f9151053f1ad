// Lists a tree's containers as boxes on the host, level by level: where the tree is, and how full.
//
//     TreeBoxPacker packer(device);
//     TreeBoxes boxes;                                   // keeps its memory between calls
//     packer.wait_pack(leaf, placement, boxes);          // all nodes on the way from the root to the leaf
//
// Containers are listed by kernels on the device of the tree, which stays as it is. Nothing is done while
// the topology is the same as at the last call.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "apps/render/tree_box.h"
#include "apps/render/volume_style.h"
#include "core/math.h"
#include "gpu/device.h"
#include "sparse/program.h"

namespace coppice::render {

// The containers of one node.
struct TreeLevel {
  std::string name;       // "pointer 8 x 8 x 8"
  Vec3f low_m, cell_m;    // cell (0, 0, 0) of the node lies between low_m and low_m + cell_m in the world
  Vec3i extent;           // cells of a container; axes that the tree lacks: 0, so that boxes are flat there
  uint64_t capacity = 1;  // cells of a container
  uint64_t total = 0;     // containers that there are
  uint64_t live = 0;      // active cells of all `boxes`
  std::vector<TreeBox> boxes;  // [total] in the order of coordinates; none where there are too many to draw

  Aabb3f bounds_of(const TreeBox& box) const;  // m
  float fill_of(const TreeBox& box) const {    // 0 to 1
    return static_cast<float>(static_cast<double>(box.live) / static_cast<double>(capacity));
  }
};

struct TreeBoxes {
  std::vector<TreeLevel> levels;  // from the root's child down
  // The boxes are those of this tree (its serial), version of its topology, node and placement of cells.
  // Without a node nothing is known.
  uint64_t tree = 0, version = 0;
  uint32_t node = 0;
  VolumePlacement placement;
};

class TreeBoxPacker {
 public:
  // A level with more containers has none in `boxes`: they would cover each other on any screen.
  static constexpr uint64_t kMostBoxes = 50'000;
  explicit TreeBoxPacker(IntrusivePtr<Device> device, uint64_t most_boxes = kMostBoxes);

  // Replaces `boxes` with those of all nodes from the root's child down to `node`, a dense, bitmasked or
  // pointer node; `placement` is that of the node's cells. Blocks the host until all that was launched before
  // is done. Cost: a launch over each node's containers, of which a bitmasked or pointer `node` tests each
  // cell, 16 bytes each to the host, and a search of log(n) for each there; a look at the tree's version
  // where nothing has changed since `boxes` were packed. Errors: kInvalidArgument for a dynamic node or one
  // of another device; those of the launches before.
  void wait_pack(const Node& node, const VolumePlacement& placement, TreeBoxes& boxes);

 private:
  void list_containers(const Node& node, bool counts_cells, TreeLevel& level);

  IntrusivePtr<Device> device_;
  Program program_;
  const uint64_t most_boxes_;
  IntrusivePtr<Buffer> boxes_;  // scratch on the device
};

}  // namespace coppice::render
