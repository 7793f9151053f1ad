// Tracing and running the solver's functions (see time_step.h).
#include "apps/mpm/time_step.h"

#include "apps/mpm/launched.h"
#include "mpm.kernels.h"
#include "sparse/buffer_operations.h"
#include "sparse/function_memory.h"

namespace coppice::mpm {

template <int D>
TimeStep<D>::TimeStep(Program& program, BlockGrid<D>& grid, ParticleStore<D>& particles)
    : program_(program),
      grid_(grid),
      particles_(particles),
      arguments_(share(&program.device())),
      steps_(share(&program.device())),
      step_length_(share(&program.device())),
      unsorted_(share(&program.device())),
      sorted_(share(&program.device())),
      step_(trace_step()),
      batch_(trace_batch()) {}

template <int D>
Function TimeStep<D>::trace_step() {
  const auto step = [this] {
    launch_step(program_, grid_, arguments_);
    program_.launch(kernels::finish_step<D>, range(1), arguments_);
  };
  return trace(share(&device()), step, "mpm.step");
}

template <int D>
Function TimeStep<D>::trace_batch() {
  return trace(
      share(&device()), [this] { repeat(steps_, [this] { step_.run(); }); }, "mpm.batch");
}

template <int D>
void TimeStep<D>::set_step(const Function& step) {
  step_ = step;
  batch_ = trace_batch();
}

template <int D>
Function TimeStep<D>::trace_sort(const StepArguments<D>& a) {
  const auto n = static_cast<int64_t>(particles_.size());
  const auto sort = [&] {
    const Loop blocks = over(grid_.leaf());
    auto* const keys = particles_.keys()->template as<uint32_t>();
    const BufferRef places = temporary(device(), particles_.size() * sizeof(uint32_t));
    auto* const order = places->as<uint32_t>();
    grid_.tree().deactivate_all();
    program_.launch(kernels::activate_home<D>, range(n), grid_.leaf().topology(), unsorted_, a.inv_dx);
    program_.launch(kernels::activate_reach<D>, blocks, grid_.leaf().topology());
    program_.launch(kernels::number_blocks<D>, blocks, grid_.numbers());
    program_.launch(kernels::block_keys<D>, range(n), grid_.numbers(), unsorted_, a.inv_dx, a.n_groups, keys,
                    order);
    sort_by_key<uint32_t>(device(), particles_.keys(), places, n);
    particles_.reorder(program_, n, unsorted_, sorted_, order);
  };
  return trace(share(&device()), sort, "mpm.sort");
}

template <int D>
const Function& TimeStep<D>::sort(const StepArguments<D>& arguments) {
  if (!sort_ || sorted_particles_ != particles_.size() || keys_ != particles_.keys()) {
    sort_ = trace_sort(arguments);
    temporary_bytes_ = static_cast<uint64_t>(memory_of(sort_->loaded()).plan.bytes);
    sorted_particles_ = particles_.size();
    keys_ = particles_.keys();
  }
  return *sort_;
}

template <int D>
uint64_t TimeStep<D>::wait_sort(const StepArguments<D>& arguments) {
  unsorted_.set(particles_.arrays());
  sorted_.set(particles_.next_arrays());
  wait_done(sort(arguments).run());
  particles_.take_next(particles_.size());
  const uint64_t n_blocks = grid_.leaf().wait_num_active_blocks();
  const uint64_t n_bins = n_blocks * arguments.n_groups;
  particles_.reserve_starts(n_bins);
  wait_done(bin_starts(device(), particles_.keys(), static_cast<int64_t>(particles_.size()),
                       particles_.starts(), static_cast<int64_t>(n_bins)));
  return n_blocks;
}

template <int D>
void TimeStep<D>::wait_batch(int steps, const StepArguments<D>& arguments) {
  arguments_.set(arguments);
  steps_.set(steps);
  step_length_.set(arguments.dt);
  wait_done(batch_.run());
}

template <int D>
void TimeStep<D>::compile(const StepArguments<D>& arguments) {
  sort(arguments);
}

template class TimeStep<2>;
template class TimeStep<3>;

}  // namespace coppice::mpm
