// Arguments of step.graph's functions, and running them (see time_step.h).
#include "apps/mpm/time_step.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/mpm/launched.h"
#include "apps/mpm/step_graph.h"
#include "core/error.h"
#include "mpm.kernels.h"

namespace coppice::mpm {
namespace {

// The kernels of one dimension under common names.
template <int D>
struct Kernels {
  static constexpr auto& begin = kernel_of<D>(begin_step_2d, begin_step_3d);
  static constexpr auto& finish = kernel_of<D>(finish_step_2d, finish_step_3d);
  static constexpr auto& scatter = kernel_of<D>(particles_to_grid_2d, particles_to_grid_3d);
  static constexpr auto& grid = kernel_of<D>(update_grid_2d, update_grid_3d);
  static constexpr auto& gather = kernel_of<D>(grid_to_particles_2d, grid_to_particles_3d);
  static constexpr auto& home = kernel_of<D>(activate_home_2d, activate_home_3d);
  static constexpr auto& reach = kernel_of<D>(activate_reach_2d, activate_reach_3d);
  static constexpr auto& number = kernel_of<D>(number_blocks_2d, number_blocks_3d);
  static constexpr auto& keys = kernel_of<D>(block_keys_2d, block_keys_3d);
};

template <class T>
RCReference<AsyncValue> value(T given) {
  return make_available_async_value<T>(std::move(given));
}

// The host has no queue: the functions' operations take no time but to put work on the stream, and
// whoever waits for the device does so here. Another thread could only make them slower.
IntrusivePtr<executor::Request> start_request(Device& device) {
  return make_intrusive<executor::Host>()->start_request(share(&device.default_stream()));
}

// Leaves out the error's path through the solver's functions: how much of it the error has taken depends
// on how far ahead the host was, and the user did not write step.graph.
Error for_users(const Error& error) {
  const bool is_ours = error.location().file == solver_functions().source().file;
  return Error(error.code(), error.message(), is_ours ? InputLocation{} : error.location());
}

}  // namespace

template <int D>
TimeStep<D>::TimeStep(Program& program, BlockGrid<D>& grid, ParticleStore<D>& particles)
    : program_(program), grid_(grid), particles_(particles), request_(start_request(program.device())) {}

template <int D>
std::vector<RCReference<AsyncValue>> TimeStep<D>::wait_run(std::string_view function,
                                                           std::span<const Value> arguments) {
  std::vector<Value> results = executor::execute(solver_functions().function(function), arguments, *request_);
  for (const Value& result : results) {
    wait(*result);
    if (result->is_error()) throw for_users(result->error());
  }
  return results;
}

template <int D>
template <class... Parameters, class... Arguments>
RCReference<AsyncValue> TimeStep<D>::bound(const Kernel<void(Parameters...)>& kernel, const Loop& loop,
                                           const Arguments&... arguments) {
  return value(program_.bind(kernel, loop, arguments...));
}

template <int D>
template <class Make>
auto TimeStep<D>::sort_launches(const StepArguments<D>& a, const Make& make) {
  using K = Kernels<D>;
  const auto n = static_cast<int64_t>(particles_.size());
  const Loop blocks = over(grid_.leaf());
  const auto topology = grid_.leaf().topology();
  const ParticleArrays from = particles_.arrays();
  const auto keys = particles_.keys()->template as<uint32_t>(),
             order = particles_.order()->template as<uint32_t>();
  return std::array{
      make(K::home, range(n), topology, from, a.inv_dx), make(K::reach, blocks, topology),
      make(K::number, blocks, grid_.numbers()),
      make(K::keys, range(n), grid_.numbers(), from, a.inv_dx, a.n_groups, keys, order),
      make(reorder_particles, range(n), from, particles_.spare_arrays(), order, Attribute<D>::kCount)};
}

template <int D>
std::array<RCReference<AsyncValue>, 11> TimeStep<D>::sort_arguments(const StepArguments<D>& arguments) {
  const auto n = static_cast<int64_t>(particles_.size());
  const auto [home, reach, number, keys, reorder] =
      sort_launches(arguments, [this](const auto&... launch) { return bound(launch...); });
  return {value(Chain()), value(grid_.tree().root()), value(grid_.leaf()),       home,     reach,  number,
          keys,           value(particles_.keys()),   value(particles_.order()), value(n), reorder};
}

template <int D>
uint64_t TimeStep<D>::wait_sort(const StepArguments<D>& arguments) {
  const auto n_blocks = wait_run("mpm.sort", sort_arguments(arguments))[1]->template get<int64_t>();
  particles_.take_spare(particles_.size());
  const int64_t n_bins = n_blocks * arguments.n_groups;
  particles_.reserve_starts(static_cast<uint64_t>(n_bins));
  wait_run("mpm.segments", std::array{value(Chain()), value(particles_.keys()),
                                      value(static_cast<int64_t>(particles_.size())),
                                      value(particles_.starts()), value(n_bins)});
  return static_cast<uint64_t>(n_blocks);
}

template <int D>
template <class Make>
auto TimeStep<D>::step_launches(const StepArguments<D>& a, const Make& make) {
  using K = Kernels<D>;
  const Loop blocks = over(grid_.leaf());
  return std::array{make(K::begin, range(1), a), make(K::scatter, blocks, grid_.tiles(), a),
                    make(K::grid, blocks, grid_.tiles(), grid_.nodes(), a),
                    make(K::gather, blocks, grid_.nodes(), a), make(K::finish, range(1), a)};
}

template <int D>
std::array<RCReference<AsyncValue>, 7> TimeStep<D>::batch_arguments(int steps,
                                                                    const StepArguments<D>& arguments) {
  const auto [begin, scatter, grid, gather, finish] =
      step_launches(arguments, [this](const auto&... launch) { return bound(launch...); });
  return {value(Chain()), value<int32_t>(steps), begin, scatter, grid, gather, finish};
}

template <int D>
void TimeStep<D>::wait_batch(int steps, const StepArguments<D>& arguments) {
  wait_run("mpm.batch", batch_arguments(steps, arguments));
}

template <int D>
void TimeStep<D>::compile(const StepArguments<D>& arguments) {
  sort_arguments(arguments);
  batch_arguments(1, arguments);
}

template <int D>
std::string TimeStep<D>::explain(const StepArguments<D>& arguments) {
  const auto explain = [this](const auto&... launch) { return program_.explain(launch...); };
  return fmt::format("@mpm.sort\n\n{}\n\n@mpm.step\n\n{}", fmt::join(sort_launches(arguments, explain), "\n"),
                     fmt::join(step_launches(arguments, explain), "\n"));
}

template <int D>
std::map<std::string, std::string> TimeStep<D>::kernels_by_argument(const StepArguments<D>& arguments) {
  const auto name = [](const auto& kernel, const auto&...) {
    return fmt::format("{}.{}", kernel.file->name, kernel.name);
  };
  const auto [home, reach, number, keys, reorder] = sort_launches(arguments, name);
  const auto [begin, scatter, grid, gather, finish] = step_launches(arguments, name);
  return {{"home", home},       {"reach", reach},  {"number", number},   {"find_keys", keys},
          {"reorder", reorder}, {"begin", begin},  {"scatter", scatter}, {"grid", grid},
          {"gather", gather},   {"finish", finish}};
}

template class TimeStep<2>;
template class TimeStep<3>;

}  // namespace coppice::mpm
