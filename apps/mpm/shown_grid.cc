// Topology, values, and the flags of enclosed particles (see shown_grid.h).
#include "apps/mpm/shown_grid.h"

#include <algorithm>

#include "apps/render/brick_layout.h"
#include "gpu/host_access.h"
#include "mpm.kernels.h"
#include "sparse/tree_storage.h"

namespace coppice::mpm {

ShownGrid::ShownGrid(IntrusivePtr<Device> device, const Node& grid_leaf)
    : device_(std::move(device)),
      grid_leaf_(grid_leaf),
      program_(device_),
      tree_(device_, TreeOptions{.name = "mpm.shown"}) {
  constexpr int b = render::kBrickCells;
  const device::NodeLayout& grid = grid_leaf_.tree()->layout().node_layout(grid_leaf_.id());
  const auto leaves = [&](int axis) { return static_cast<int32_t>((grid.domain[axis] + b - 1) / b); };
  shown_ = tree_.root().pointer({leaves(0), leaves(1), leaves(2)}).dense({b, b, b}).place<float>("shown");
}

Field<float> ShownGrid::wait_show(const Field<NodeValue>& grid, GridValue value, float per_cell) {
  const uint64_t version = grid_leaf_.wait_topology_version();
  if (version_ != version) {
    tree_.deactivate_all();
    program_.launch(kernels::activate_shown_3d, over(grid_leaf_), leaf().topology());
  }
  version_ = version;
  program_.launch(kernels::show_grid_3d, over(leaf()), grid, shown_, value, per_cell);
  program_.wait();
  return shown_;
}

Field<float> ShownGrid::wait_show_body(const ParticleArrays& particles, const Group<3>* groups, uint64_t n,
                                       const BodyShare& body, float threshold,
                                       std::vector<uint8_t>& enclosed) {
  tree_.deactivate_all();  // cells that are new are zero
  version_.reset();
  enclosed.resize(n);
  if (n == 0) return shown_;
  const size_t bytes = n * sizeof(uint32_t);
  if (!flags_ || flags_->size_bytes() < bytes) flags_ = device_->reserve(bytes, bytes);
  const Loop all = range(static_cast<int64_t>(n));
  program_.launch(kernels::activate_body_3d, all, leaf().topology(), particles, groups, body);
  program_.launch(kernels::add_body_3d, all, shown_, particles, groups, body);
  program_.launch(kernels::mark_enclosed_3d, all, shown_, particles, groups, body, threshold,
                  flags_->as<uint32_t>());
  host_flags_.resize(n);
  program_.wait();
  device_->wait_copy(host_flags_.data(), flags_->data(), bytes);
  std::ranges::transform(host_flags_, enclosed.begin(),
                         [](uint32_t flag) { return static_cast<uint8_t>(flag); });
  return shown_;
}

}  // namespace coppice::mpm
