// A frame's grid as files have it: its nodes' density and velocity, and what output.fields names of the
// particles, averaged at the nodes.
//
// A node's average is that of the particles around it, weighted by their mass and by the node's share of
// each, as the solver spreads mass: sum of w m f / sum of w m. It is that of the particles where they are at
// the frame's end; density and velocity are the grid's after the last step, in whose course the
// particles have moved on by less than a cell.
#pragma once
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "apps/mpm/solver_part.h"
#include "apps/output/grid_vti.h"
#include "apps/output/vdb_writer.h"
#include "apps/run/written_particles.h"

namespace coppice {

// Values at the nodes of blocks, packed: [n_blocks][block_size^D][components].
struct NodeValues {
  std::string name;
  int components = 1;
  std::vector<std::string> component_names = {};  // none, or one for each
  std::vector<float> values;
};

struct WrittenGrid {
  int dim = 3;
  mpm::DensityBlocks blocks;
  bool has_velocity = false;
  std::vector<NodeValues> averages;

  // Returns the box around all nodes that have mass.
  PointBox box() const;
  // Returns density, velocity where the blocks have it, and the averages. They refer to this object.
  std::vector<GridArray> arrays() const;
};

// A frame's grids beside the density, as a volume file has them: symmetric matrices are a grid for each of
// their components, "stress_xx" and so on.
class VdbGrids {
 public:
  // `grid` must live as long as this object.
  explicit VdbGrids(const WrittenGrid& grid);
  std::span<const VdbGrid> grids() const { return grids_; }

 private:
  std::deque<std::vector<float>> components_;  // of matrices, packed
  std::vector<VdbGrid> grids_;
};

// Reads the blocks that are a rank's own, as they are after the last step; `particles` are the rank's share
// of all, and `fields` of the same. A rank averages at its own nodes: the particles around them come to it,
// in the order of ids, so that the averages' bits depend neither on the ranks nor on the threads. The cost is
// a pass over the particles on the host. All ranks call these together.
WrittenGrid wait_read_own_grid(mpm::SolverPart& own, int dim, const mpm::GridParts& parts,
                               const mpm::ParticleSnapshot& particles, const WrittenParticles& fields);
// Returns the box around all nodes of all ranks that have mass.
PointBox wait_join_boxes(const Cluster& cluster, const PointBox& own);
// Sends blocks to the ranks of which is_for(rank, nodes) is true, `nodes` being the block's; returns those
// that have come here.
WrittenGrid wait_send_blocks(const Cluster& cluster, const WrittenGrid& own,
                             const std::function<bool(int rank, const PointBox& nodes)>& is_for);

}  // namespace coppice
