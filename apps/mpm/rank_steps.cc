// Steps and sorting over ranks (see rank_steps.h).
#include "apps/mpm/rank_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <tuple>

#include "apps/mpm/launched.h"
#include "core/error.h"
#include "sparse/buffer_operations.h"
#include "sparse/ranks/cell_owners.h"

namespace coppice::mpm {
namespace {

// Ranks agree on this behind a step: the largest of all ranks' numbers, which lie in a row in StepControl.
using Outcome = std::array<uint32_t, 6>;
template <int D>
constexpr size_t kOutcomeAt = offsetof(StepControl<D>, drifted);
template <int D>
constexpr bool kIsInARow = offsetof(StepControl<D>, max_modulus_bits) == kOutcomeAt<D> + sizeof(Outcome) -
                                                                             sizeof(uint32_t);

// A block costs as much as so many particles, whether or not it has any.
constexpr uint64_t kBlockWeight = 8;

}  // namespace

template <int D>
IntrusivePtr<Buffer> RankSteps<D>::reserve(uint64_t n, size_t each) const {
  const size_t bytes = std::max<uint64_t>(n, 1) * each;
  return device().reserve(bytes, bytes);
}

template <int D>
IntrusivePtr<Buffer> RankSteps<D>::wait_note_places(const StepArguments<D>& a,
                                                    const IntrusivePtr<Buffer>& order) {
  const uint64_t n = particles_.size(), n_blocks = grid_.leaf().wait_num_active_blocks();
  const IntrusivePtr<Buffer> of_blocks = reserve(n_blocks, sizeof(uint64_t)),
                             places = reserve(n, sizeof(uint64_t));
  program_.launch(kernels::note_blocks<D>, over(grid_.leaf()), grid_.order(), of_blocks->as<uint64_t>());
  wait_done(program_.launch(kernels::note_particles<D>, own_range(static_cast<int64_t>(n)),
                            particles_.arrays(), particles_.keys()->template as<const uint32_t>(), a.n_groups,
                            of_blocks->as<const uint64_t>(), places->as<uint64_t>(), order->as<uint32_t>()));
  return places;
}

template <int D>
void RankSteps<D>::wait_rebuild_grid(const StepArguments<D>& a) {
  const Loop blocks = over(grid_.leaf());
  grid_.tree().deactivate_all();
  // There are no blocks that would have to move.
  if (!weights_are_unknown_) coppice::wait_balance(grid_.leaf(), weights_);
  program_.launch(kernels::activate_home<D>, own_range(static_cast<int64_t>(particles_.size())),
                  grid_.leaf().topology(), particles_.arrays(), a.inv_dx);
  program_.launch(kernels::activate_reach<D>, blocks, grid_.leaf().topology());
  wait_done(program_.launch(kernels::number_blocks<D>, blocks, grid_.numbers()));
}

template <int D>
void RankSteps<D>::wait_migrate(const StepArguments<D>& a, IntrusivePtr<Buffer>& places) {
  const uint64_t n = particles_.size();
  const CellOwners owners(grid_.leaf());
  const IntrusivePtr<Buffer> found = reserve(n, sizeof(uint32_t));
  wait_done(program_.launch(kernels::find_owners<D>, own_range(static_cast<int64_t>(n)), particles_.arrays(),
                            a.inv_dx, owners.map(), found->as<uint32_t>()));
  std::vector<uint32_t> owner_of(n);
  if (n > 0) device().wait_copy(owner_of.data(), found->data(), n * sizeof(uint32_t));
  const auto self = static_cast<uint32_t>(cluster_.rank());
  std::vector<std::vector<uint32_t>> to(static_cast<size_t>(cluster_.n_ranks()));
  std::vector<uint32_t> kept;
  kept.reserve(n);
  for (uint32_t i = 0; i < n; ++i) (owner_of[i] == self ? kept : to[owner_of[i]]).push_back(i);
  if (cluster_.wait_sum(n - kept.size()) == 0) return;
  if (!kept.empty()) device().wait_copy(found->data(), kept.data(), kept.size() * sizeof(uint32_t));
  particles_.wait_migrate(program_, found->as<const uint32_t>(), kept.size(), to, places);
}

template <int D>
uint64_t RankSteps<D>::wait_sort(const StepArguments<D>& given) {
  StepArguments<D> a = given;
  const bool is_first = weights_are_unknown_;
  uint64_t n_blocks = wait_sort_once(a);
  if (!is_first) return n_blocks;
  // Until now nobody knew where the particles are.
  a.particles = particles_.arrays();
  return wait_sort_once(a);
}

template <int D>
void RankSteps<D>::wait_note_weights(uint64_t n_blocks, uint32_t n_groups) {
  std::vector<uint64_t> places(n_blocks);
  std::vector<uint32_t> starts(n_blocks * n_groups + 1);
  weights_.clear();
  weights_are_unknown_ = false;
  if (n_blocks == 0) return;
  const IntrusivePtr<Buffer> buffer = reserve(n_blocks, sizeof(uint64_t));
  wait_done(
      program_.launch(kernels::note_blocks<D>, over(grid_.leaf()), grid_.order(), buffer->as<uint64_t>()));
  device().wait_copy(places.data(), buffer->data(), n_blocks * sizeof(uint64_t));
  device().wait_copy(starts.data(), particles_.starts()->data(), starts.size() * sizeof(uint32_t));
  for (uint64_t b = 0; b < n_blocks; ++b) {
    int32_t first[3] = {};
    grid_.order().origin(places[b], first);
    const auto cell = D == 3 ? std::array{first[0], first[1], first[2]} : std::array{first[1], first[2], 0};
    weights_.push_back({cell, starts[(b + 1) * n_groups] - starts[b * n_groups] + kBlockWeight});
  }
}

template <int D>
uint64_t RankSteps<D>::wait_sort_once(const StepArguments<D>& a) {
  IntrusivePtr<Buffer> order = reserve(particles_.size(), sizeof(uint32_t));
  IntrusivePtr<Buffer> places = wait_note_places(a, order);
  wait_rebuild_grid(a);
  wait_migrate(a, places);
  const auto n = static_cast<int64_t>(particles_.size());
  if (order->size_bytes() < particles_.size() * sizeof(uint32_t))
    order = reserve(particles_.size(), sizeof(uint32_t));
  std::vector<uint32_t> in_order(particles_.size());
  for (uint32_t i = 0; i < in_order.size(); ++i) in_order[i] = i;
  if (n > 0) device().wait_copy(order->data(), in_order.data(), in_order.size() * sizeof(uint32_t));
  // A rank's own blocks are numbered in another order than all blocks (OwnPart), and some particles have
  // come.
  wait_done(sort_by_key<uint64_t>(device(), places, order, n));
  const IntrusivePtr<Buffer>& keys = particles_.keys();
  wait_done(program_.launch(kernels::ordered_block_keys<D>, own_range(n), grid_.numbers(),
                            particles_.arrays(), a.inv_dx, a.n_groups, order->as<const uint32_t>(),
                            keys->template as<uint32_t>()));
  wait_done(sort_by_key<uint32_t>(device(), keys, order, n));
  wait_done(particles_.reorder(program_, n, particles_.arrays(), particles_.next_arrays(),
                               order->as<const uint32_t>()));
  particles_.take_next(particles_.size());
  const uint64_t n_blocks = grid_.leaf().wait_num_active_blocks(), n_bins = n_blocks * a.n_groups;
  particles_.reserve_starts(n_bins);
  wait_done(bin_starts(device(), keys, n, particles_.starts(), static_cast<int64_t>(n_bins)));
  wait_note_weights(n_blocks, a.n_groups);
  return n_blocks;
}

template <int D>
void RankSteps<D>::wait_batch(int steps, const StepArguments<D>& arguments) {
  static_assert(kIsInARow<D>);
  std::byte* const outcome_at = reinterpret_cast<std::byte*>(arguments.control) + kOutcomeAt<D>;
  arguments_.set(arguments);
  for (int step = 0; step < steps; ++step) {
    // A launch that fails here is one of all: the last number says where.
    std::optional<Error> failed;
    std::array<uint32_t, std::tuple_size_v<Outcome> + 1> all{};
    launch_step(program_, grid_, arguments_);
    try {
      wait_done(device().default_stream().barrier());
      device().wait_copy(all.data(), outcome_at, sizeof(Outcome));
    } catch (const Error& error) {
      failed = error;
      all.back() = static_cast<uint32_t>(cluster_.rank()) + 1;
    }
    cluster_.wait_most(all);
    if (failed) cluster_.throw_agreed(*failed);
    if (all.back() > 0)
      cluster_.throw_agreed(
          Error(ErrorCode::kUnavailable, fmt::format("a step has failed on rank {}", all.back() - 1)));
    device().wait_copy(outcome_at, all.data(), sizeof(Outcome));
    wait_done(program_.launch(kernels::finish_step<D>, range(1), arguments_));
    // As finish_step() decides.
    if (std::any_of(all.begin(), all.begin() + 4, [](uint32_t flag) { return flag != 0; })) return;
  }
}

template class RankSteps<2>;
template class RankSteps<3>;

}  // namespace coppice::mpm
