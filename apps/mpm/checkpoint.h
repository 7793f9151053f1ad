// The whole state of a solver between two frames, on the host: a run that goes on from it gives the same bits
// on the cpu device, on one rank, and values within the rounding of sums on others.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace coppice::mpm {

template <int D>
struct SolverState;

struct Checkpoint {
  int32_t dim = 0;
  // The clock, and what the next time step is chosen by.
  int32_t frame = 0;
  uint64_t steps = 0;
  double time_s = 0, dt_s = 0, wave_margin = 0;
  uint8_t was_sorted = 0;
  std::vector<std::byte> control;  // StepControl<dim>
  // Particles of all ranks, block after block.
  uint64_t next_id = 0;
  std::vector<uint64_t>
      places;  // [n] of its block in the list of all (BlockOrder), or kPlaceOfNew and its id
  std::vector<float> attributes;  // [Attribute<dim>::kCount][n]
  std::vector<uint64_t> blocks;   // places of all blocks of the grid, ascending
  // Particles of each emitter that came by inflows and left, and what has entered of each inflow.
  std::vector<uint64_t> came, left;
  std::vector<double> inflow_done_s;
};

// The state's part of a checkpoint: particles, grid and control. Over ranks all call it together; the first
// one gets what all have. Errors: those of the launches before.
template <int D>
void wait_save(SolverState<D>& state, Checkpoint& to);
// Particles of the state are replaced, its grid is rebuilt. Over ranks all have the same checkpoint, and each
// takes its part. Errors: kInvalidArgument for a checkpoint of another dimension or size.
template <int D>
void wait_load(SolverState<D>& state, const Checkpoint& from);

// Calls write(bytes) with all of a checkpoint, in pieces; decode() reads them from one. Errors:
// kInvalidArgument where bytes are missing or left over.
void encode(const Checkpoint& checkpoint, const std::function<void(std::span<const std::byte>)>& write);
Checkpoint decode(std::span<const std::byte> bytes);

}  // namespace coppice::mpm
