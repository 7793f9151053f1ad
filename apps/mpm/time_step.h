// Launches time steps and sorting: functions that are traced from the solver's code once (sparse/function.h)
// and run on the device's default stream.
//
//   @mpm.sort     rebuilds the grid around the particles and brings them into the order of (block, group)
//   @mpm.step     particles to grid, forces and walls on the grid, grid to particles, colliders and clock
//   @mpm.batch    @mpm.step, as often as a slot says: queued without a look at how the steps before went
//
// Slots have all that changes from run to run: the length of a step, where the particles are. The functions
// are traced anew when there is other memory or another number of particles. Thread-compatible. Errors: those
// of the launches.
#pragma once
#include <optional>

#include "apps/mpm/block_grid.h"
#include "apps/mpm/particle_store.h"
#include "apps/mpm/step_runner.h"
#include "sparse/function.h"
#include "sparse/program.h"

namespace coppice::mpm {

template <int D>
class TimeStep final : public StepRunner<D> {
 public:
  // All of them must live as long as this object.
  TimeStep(Program& program, BlockGrid<D>& grid, ParticleStore<D>& particles);

  // Traces the functions, which starts compiling what they launch.
  void compile(const StepArguments<D>& arguments) override;
  uint64_t wait_sort(const StepArguments<D>& arguments) override;
  void wait_batch(int steps, const StepArguments<D>& arguments) override;

  // Returns the functions as they are now. That of a step may be edited; the next batch has it then.
  const Function& sort(const StepArguments<D>& arguments);
  const Function& step() const { return step_; }
  const Function& batch() const { return batch_; }
  void set_step(const Function& step);
  uint64_t temporary_bytes() const { return temporary_bytes_; }    // that sorting takes beside the particles'
  const Slot<float>& step_length() const { return step_length_; }  // of a batch, s

 private:
  Function trace_step();
  Function trace_batch();
  Function trace_sort(const StepArguments<D>& arguments);
  Device& device() const { return program_.device(); }

  Program& program_;
  BlockGrid<D>& grid_;
  ParticleStore<D>& particles_;
  Slot<StepArguments<D>> arguments_;
  Slot<int32_t> steps_;
  Slot<float> step_length_;
  Slot<ParticleArrays> unsorted_, sorted_;
  Function step_, batch_;
  std::optional<Function> sort_;
  // These are what sort_ was traced for.
  uint64_t sorted_particles_ = 0, temporary_bytes_ = 0;
  IntrusivePtr<Buffer> keys_;
};

}  // namespace coppice::mpm
