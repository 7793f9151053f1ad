// Volumes of a solver's grid are drawn from this: a tree of 8^3 leaves with the grid's coordinates, which
// is made at the first call. 3-D only.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "apps/mpm/body_field.h"
#include "apps/mpm/grid_values.h"
#include "sparse/program.h"
#include "sparse/tree.h"

namespace coppice::mpm {

class ShownGrid {
 public:
  // `grid_leaf` is the node whose blocks have the grid's values; work on the device's default stream
  // comes before.
  ShownGrid(IntrusivePtr<Device> device, const Node& grid_leaf);

  // Returns a value of the grid as it is now; `per_cell` is 1 / the cell's volume. Both functions wait,
  // and throw the errors of the launches.
  Field<float> wait_show(const Field<NodeValue>& grid, GridValue value, float per_cell);
  // Returns how full the grid's nodes are of `body`; `enclosed`, u8[n], gets 1 for particles of it that
  // the surface at `threshold` encloses, and 0 for all others. Cost: three launches over all particles,
  // with 27 atomic additions for each of the body.
  Field<float> wait_show_body(const ParticleArrays& particles, const Group<3>* groups, uint64_t n,
                              const BodyShare& body, float threshold, std::vector<uint8_t>& enclosed);

 private:
  Node leaf() const { return detail::node_of(shown_.tree, shown_.id.node); }

  IntrusivePtr<Device> device_;
  Node grid_leaf_;
  Program program_;
  Tree tree_;
  Field<float> shown_;
  std::optional<uint64_t>
      version_;  // of the grid's topology when the tree got its own; none: values are left in it
  IntrusivePtr<Buffer> flags_;  // u32[n]
  std::vector<uint32_t> host_flags_;
};

}  // namespace coppice::mpm
