// Copies the parts of the curve to the device (see cell_owners.h).
#include "sparse/ranks/cell_owners.h"

#include "gpu/host_access.h"
#include "sparse/ranks/tree_cut.h"
#include "sparse/tree_storage.h"

namespace coppice {

CellOwners::CellOwners(const Node& node) {
  const TreeRef shared = cut_tree_of(node, "CellOwners");
  TreeStorage& tree = *shared;
  tree.wait_sync_over_ranks();
  const TreeCut& cut = tree.cut();
  host_ends_ = cut.ends();
  ends_ = wait_device_copy(tree.device(), host_ends_);
  const device::NodeLayout& layout = tree.layout().node_layout(node.id());
  map_ = {ends_->as<uint64_t>(), static_cast<uint32_t>(cut.ends().size()), {}, {}};
  for (uint32_t d = 0; d < device::kMaxDims; ++d) {
    const bool is_axis = d >= device::kMaxDims - tree.layout().dims();
    map_.origin[d] = is_axis ? layout.origin[d] : 0;
    map_.extent[d] = is_axis && node.id() != cut.node() ? tree.layout().node(node.id()).extent[d] : 1;
  }
}

}  // namespace coppice
