// Launches time steps and sorting: the functions of step.graph get the solver's kernels, bound to its
// particles and grid, and run on the device's default stream.
//
// Thread-compatible. Errors: those of the launches.
#pragma once
#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/mpm/block_grid.h"
#include "apps/mpm/particle_store.h"
#include "executor/executor.h"
#include "sparse/program.h"

namespace coppice::mpm {

template <int D>
class TimeStep {
 public:
  // All of them must live as long as this object.
  TimeStep(Program& program, BlockGrid<D>& grid, ParticleStore<D>& particles);

  // Starts compiling what the functions below launch. Arguments are those of the next step in all of them.
  void compile(const StepArguments<D>& arguments);
  // Rebuilds the grid around the particles, brings them into the order of (block, group), and finds where
  // each of these begins. Returns the grid's number of blocks.
  uint64_t wait_sort(const StepArguments<D>& arguments);
  // Makes up to kStepsPerBatch steps; those behind one that sets StepControl::stop do nothing.
  void wait_batch(int steps, const StepArguments<D>& arguments);

  // Returns the kernels by the names of the arguments that step.graph has for them.
  std::map<std::string, std::string> kernels_by_argument(const StepArguments<D>& arguments);
  // Says what each launch touches (Program::explain()). Launches nothing.
  std::string explain(const StepArguments<D>& arguments);

 private:
  using Value = RCReference<AsyncValue>;  // an argument or a result of a function

  std::vector<Value> wait_run(std::string_view function, std::span<const Value> arguments);
  // Both return what `make(kernel, loop, arguments...)` makes of each launch of @mpm.step and @mpm.sort,
  // in their order.
  template <class Make>
  auto step_launches(const StepArguments<D>& arguments, const Make& make);
  template <class Make>
  auto sort_launches(const StepArguments<D>& arguments, const Make& make);
  // Both return the arguments of the functions of these names. Binding starts compiling what is launched.
  std::array<Value, 7> batch_arguments(int steps, const StepArguments<D>& arguments);
  std::array<Value, 11> sort_arguments(const StepArguments<D>& arguments);
  template <class... Parameters, class... Arguments>
  Value bound(const Kernel<void(Parameters...)>& kernel, const Loop& loop, const Arguments&... arguments);

  Program& program_;
  BlockGrid<D>& grid_;
  ParticleStore<D>& particles_;
  IntrusivePtr<executor::Request> request_;
};

}  // namespace coppice::mpm
