// A solver's particles and grid, as copies on the host or as fields to draw, and sums over them.
// Over ranks all of them call these together. The first rank gets all particles and blocks, the others get
// none, but for wait_own_blocks(); sums are of all.
//
// Thread-compatible. Errors: those of the launches before.
#pragma once
#include <optional>
#include <vector>

#include "apps/mpm/grid_values.h"
#include "apps/mpm/point_packing.h"
#include "apps/mpm/shown_grid.h"
#include "apps/mpm/solver_output.h"
#include "apps/mpm/solver_state.h"
#include "apps/render/packed_points.h"
#include "apps/render/volume_style.h"

namespace coppice::mpm {

template <int D>
class Readback {
 public:
  // `state` must live as long as this object.
  explicit Readback(SolverState<D>& state) : state_(state) {}

  // These are functions of a Solver (solver.h); compile() starts compiling what wait_density() launches
  // without further parts.
  void compile();
  ParticleSnapshot wait_snapshot(const SnapshotParts& parts) const;
  DensityBlocks wait_density(const GridParts& parts);
  DensityBlocks wait_own_blocks(const GridParts& parts);
  void wait_pack(PointValue value, std::vector<render::PackedPoint>& points);
  render::VolumePlacement grid_placement() const;
  Field<float> wait_grid_field(GridValue value);
  Field<float> wait_body_field(MaterialKind kind, float threshold, std::vector<uint8_t>& enclosed);
  GridNode wait_grid_node(const Vec3i& node) const;
  // Fills in what is a sum over particles: mass, momenta and energies.
  void wait_sum(FrameStats& stats);

  uint64_t buffer_bytes() const;  // that output has taken

 private:
  using A = Attribute<D>;

  ShownGrid& wait_shown_grid();
  double wait_elastic_energy();  // J, of this rank's particles
  // Adds what the other ranks have summed up.
  void wait_add_up(FrameStats& stats) const;
  SolverState<D>& state_;
  std::optional<ShownGrid> shown_;                              // from the first wait_shown_grid() on
  IntrusivePtr<Buffer> density_, origins_, velocity_, packed_;  // from their first use on
};

}  // namespace coppice::mpm
