// Copies of a solver's state (see checkpoint.h).
#include "apps/mpm/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "apps/mpm/collect.h"
#include "apps/mpm/launched.h"
#include "apps/mpm/solver_state.h"
#include "core/error.h"
#include "mpm.kernels.h"
#include "sparse/buffer_operations.h"
#include "sparse/ranks/cell_owners.h"

namespace coppice::mpm {
namespace {

[[noreturn]] void refuse(const char* why) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("the checkpoint {}", why));
}

// Returns the places of this rank's blocks, in the order of its list.
template <int D>
std::vector<uint64_t> wait_own_blocks(SolverState<D>& state, uint64_t n_blocks) {
  std::vector<uint64_t> places(n_blocks);
  const size_t bytes = n_blocks * sizeof(uint64_t);
  if (n_blocks == 0) return places;
  const BufferRef buffer = temporary(*state.device, bytes);
  wait_done(state.program.launch(kernels::note_blocks<D>, over(state.grid.leaf()), state.grid.order(),
                                 buffer->template as<uint64_t>()));
  state.device->wait_copy(places.data(), buffer->data(), bytes);
  return places;
}

// Returns the order that sorts keys, equal ones as they come.
template <class Key>
std::vector<uint32_t> order_of(const std::vector<Key>& keys) {
  std::vector<uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0u);
  if (!std::ranges::is_sorted(keys)) std::ranges::stable_sort(order, {}, [&](uint32_t i) { return keys[i]; });
  return order;
}
// Returns rows of `n` values with those at `chosen` alone, in that order.
template <class T>
std::vector<T> choose(const std::vector<T>& rows, size_t n, const std::vector<uint32_t>& chosen) {
  std::vector<T> values;
  values.reserve(n == 0 ? 0 : rows.size() / n * chosen.size());
  for (size_t row = 0; n > 0 && row < rows.size(); row += n)
    for (const uint32_t i : chosen) values.push_back(rows[row + i]);
  return values;
}

}  // namespace

template <int D>
void wait_save(SolverState<D>& state, Checkpoint& to) {
  using A = Attribute<D>;
  wait_done(state.device->default_stream().barrier());
  to.dim = D;
  StepControl<D> control = state.control;
  for (int c = 0; c < kMaxColliders; ++c)  // where meshes' distances lie is another matter each time
    control.start[c].field.values = control.now[c].field.values = control.next[c].field.values = nullptr;
  to.control.resize(sizeof control);
  std::memcpy(to.control.data(), &control, sizeof control);
  const ParticleStore<D>& particles = state.particles;
  const uint64_t n = particles.size();
  to.next_id = particles.next_id();
  to.attributes.resize(n * A::kCount);
  for (int a = 0; n > 0 && a < A::kCount; ++a)
    state.device->wait_copy(to.attributes.data() + static_cast<uint64_t>(a) * n,
                            particles.arrays().base + a * particles.arrays().stride, n * sizeof(float));
  std::vector<uint32_t> keys(n);
  if (n > 0) state.device->wait_copy(keys.data(), particles.keys()->data(), n * sizeof(uint32_t));
  to.blocks = wait_own_blocks(state, state.n_blocks);
  to.places.resize(n);
  for (uint64_t i = 0; i < n; ++i) {
    const auto id = std::bit_cast<uint32_t>(to.attributes[A::kId * n + i]);
    to.places[i] =
        keys[i] == kNoParticleKey ? kPlaceOfNew | id : to.blocks[keys[i] / state.arguments.n_groups];
  }
  wait_collect(state.cluster, to.blocks);
  wait_collect(state.cluster, to.places);
  wait_collect(state.cluster, to.attributes, A::kCount);
  std::ranges::sort(to.blocks);
  const std::vector<uint32_t> order = order_of(to.places);
  to.attributes = choose(to.attributes, order.size(), order);
  to.places = choose(to.places, order.size(), order);
}

namespace {

// Makes the grid of the checkpoint's blocks, and returns the places of this rank's, in the order of its list.
template <int D>
std::vector<uint64_t> wait_rebuild(SolverState<D>& state, const std::vector<uint64_t>& blocks) {
  wait_done(state.grid.tree().deactivate_all());
  // Over ranks each begins with a share of the blocks, and tells their owners of them; before, all of them
  // see that there are none.
  uint64_t first_block = 0, end_block = blocks.size();
  if (state.cluster) {
    state.grid.leaf().wait_num_active_blocks();
    const auto n_ranks = static_cast<uint64_t>(state.cluster->n_ranks()),
               rank = static_cast<uint64_t>(state.cluster->rank());
    first_block = blocks.size() * rank / n_ranks, end_block = blocks.size() * (rank + 1) / n_ranks;
  }
  std::vector<std::array<int32_t, 3>> cells;
  for (const uint64_t place : std::span(blocks).subspan(first_block, end_block - first_block)) {
    int32_t first[3] = {};
    state.grid.order().origin(place, first);
    cells.push_back(D == 3 ? std::array{first[0], first[1], first[2]} : std::array{first[1], first[2], 0});
  }
  wait_done(state.grid.leaf().activate(std::move(cells)));
  wait_done(state.program.launch(kernels::number_blocks<D>, over(state.grid.leaf()), state.grid.numbers()));
  state.n_blocks = state.grid.leaf().wait_num_active_blocks();
  return wait_own_blocks(state, state.n_blocks);
}

// Returns which particles of the checkpoint are this rank's. Those of no block are shared out by their
// number.
std::vector<uint32_t> own_particles(const std::vector<uint64_t>& places,
                                    const std::vector<uint64_t>& own_blocks,
                                    const std::optional<Cluster>& cluster) {
  std::vector<uint32_t> own;
  if (!cluster) {
    own.resize(places.size());
    std::iota(own.begin(), own.end(), 0u);
    return own;
  }
  const auto n_ranks = static_cast<uint32_t>(cluster->n_ranks()),
             rank = static_cast<uint32_t>(cluster->rank());
  for (uint32_t i = 0; i < places.size(); ++i) {
    const bool is_own =
        places[i] >= kPlaceOfNew ? i % n_ranks == rank : std::ranges::binary_search(own_blocks, places[i]);
    if (is_own) own.push_back(i);
  }
  return own;
}

}  // namespace

template <int D>
void wait_load(SolverState<D>& state, const Checkpoint& from) {
  using A = Attribute<D>;
  const size_t n = from.places.size();
  if (from.dim != D) refuse("is of a scene of another dimension");
  if (from.control.size() != sizeof state.control || from.attributes.size() != n * A::kCount)
    refuse("does not have the state's size");
  const std::vector<uint64_t> own_blocks = wait_rebuild(state, from.blocks);
  std::vector<uint64_t> sorted = own_blocks;
  std::vector<uint32_t> number(sorted.size());  // in the list, of the blocks in `sorted`
  std::iota(number.begin(), number.end(), 0u);
  std::ranges::sort(number, {}, [&](uint32_t b) { return own_blocks[b]; });
  std::ranges::sort(sorted);
  const std::vector<uint32_t> own = own_particles(from.places, sorted, state.cluster);
  std::vector<float> rows = choose(from.attributes, n, own);
  std::vector<uint32_t> keys(own.size(), kNoParticleKey);
  const uint32_t n_groups = state.arguments.n_groups;
  for (size_t i = 0; i < own.size(); ++i) {
    const uint64_t place = from.places[own[i]];
    if (place >= kPlaceOfNew) continue;
    const auto at = std::ranges::lower_bound(sorted, place);
    if (at == sorted.end() || *at != place) refuse("has particles in blocks that it does not have");
    keys[i] = number[static_cast<size_t>(at - sorted.begin())] * n_groups +
              static_cast<uint32_t>(rows[A::kGroup * own.size() + i]);
  }
  const std::vector<uint32_t> order = order_of(keys);
  rows = choose(rows, own.size(), order);
  keys = choose(keys, own.size(), order);
  state.particles.wait_set(rows, keys, n, from.next_id);
  const uint64_t n_bins = state.n_blocks * n_groups;
  state.particles.reserve_starts(n_bins);
  wait_done(bin_starts(*state.device, state.particles.keys(), static_cast<int64_t>(own.size()),
                       state.particles.starts(), static_cast<int64_t>(n_bins)));
  StepControl<D> control;
  std::memcpy(static_cast<void*>(&control), from.control.data(), sizeof control);
  // Meshes' distances lie elsewhere than they did.
  for (int c = 0; c < kMaxColliders; ++c) {
    control.start[c].field = state.control.start[c].field;
    control.now[c].field = state.control.now[c].field;
    control.next[c].field = state.control.next[c].field;
  }
  state.control = control;
}

template void wait_save<2>(SolverState<2>&, Checkpoint&);
template void wait_save<3>(SolverState<3>&, Checkpoint&);
template void wait_load<2>(SolverState<2>&, const Checkpoint&);
template void wait_load<3>(SolverState<3>&, const Checkpoint&);

namespace {

// Calls each(value) for all that a checkpoint has.
template <class C, class F>
void for_each_member(C& c, F each) {
  each(c.dim), each(c.frame), each(c.steps), each(c.time_s), each(c.dt_s), each(c.wave_margin);
  each(c.was_sorted), each(c.next_id);
  each(c.control), each(c.places), each(c.attributes), each(c.blocks), each(c.came), each(c.left);
  each(c.inflow_done_s);
}

}  // namespace

void encode(const Checkpoint& checkpoint, const std::function<void(std::span<const std::byte>)>& write) {
  for_each_member(checkpoint, [&](const auto& member) {
    if constexpr (requires { member.size(); }) {
      const uint64_t n = member.size();
      write(std::as_bytes(std::span(&n, 1)));
      write(std::as_bytes(std::span(member)));
    } else {
      write(std::as_bytes(std::span(&member, 1)));
    }
  });
}

Checkpoint decode(std::span<const std::byte> bytes) {
  Checkpoint checkpoint;
  const auto take = [&](void* to, uint64_t n) {
    if (n > bytes.size()) refuse("ends too early");
    if (n > 0) std::memcpy(to, bytes.data(), n);
    bytes = bytes.subspan(n);
  };
  for_each_member(checkpoint, [&](auto& member) {
    if constexpr (requires { member.size(); }) {
      uint64_t n = 0;
      take(&n, sizeof n);
      if (n > bytes.size() / sizeof(member[0])) refuse("ends too early");
      member.resize(n);
      take(member.data(), n * sizeof(member[0]));
    } else {
      take(&member, sizeof member);
    }
  });
  if (!bytes.empty()) refuse("has bytes beyond its end");
  return checkpoint;
}

}  // namespace coppice::mpm
