// Makes a solver's steps: by functions on one device (time_step.h), or by launches over ranks (rank_steps.h).
#pragma once
#include <cstdint>

#include "apps/mpm/block_grid.h"
#include "apps/mpm/solver_types.h"
#include "mpm.kernels.h"
#include "sparse/program.h"
#include "sparse/slot.h"

namespace coppice::mpm {

// Errors: those of the launches. Thread-compatible.
template <int D>
class StepRunner {
 public:
  virtual ~StepRunner() = default;
  // Starts compiling what is launched.
  virtual void compile(const StepArguments<D>& arguments) = 0;
  // Rebuilds the grid around the particles, brings them into the order of (block, group), and finds where
  // each of these begins. Returns the grid's number of blocks; over ranks, of this rank's.
  virtual uint64_t wait_sort(const StepArguments<D>& arguments) = 0;
  // Makes up to `steps` steps; those behind one that sets StepControl::stop do nothing.
  virtual void wait_batch(int steps, const StepArguments<D>& arguments) = 0;
};

// Launches a step but for its end, which finish_step() is.
template <int D>
void launch_step(Program& program, const BlockGrid<D>& grid, const Slot<StepArguments<D>>& arguments) {
  const Loop blocks = over(grid.leaf());
  program.launch(kernels::begin_step<D>, range(1), arguments);
  if (grid.is_wide()) {
    program.launch(kernels::particles_to_grid_wide<D>, blocks, grid.tiles(), grid.tiles_before(), arguments);
    program.launch(kernels::update_grid_wide<D>, blocks, grid.tiles(), grid.tiles_before(), grid.nodes(),
                   grid.nodes_before(), arguments);
    program.launch(kernels::grid_to_particles_wide<D>, blocks, grid.nodes(), grid.nodes_before(), arguments);
  } else {
    program.launch(kernels::particles_to_grid<D>, blocks, grid.tiles(), arguments);
    program.launch(kernels::update_grid<D>, blocks, grid.tiles(), grid.nodes(), arguments);
    program.launch(kernels::grid_to_particles<D>, blocks, grid.nodes(), arguments);
  }
}

}  // namespace coppice::mpm
