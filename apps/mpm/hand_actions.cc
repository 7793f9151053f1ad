// Emitting, pushing and cutting (see hand_actions.h).
#include "apps/mpm/hand_actions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "apps/mpm/hand.h"
#include "apps/mpm/hand_check.h"
#include "apps/mpm/launched.h"
#include "core/error.h"
#include "mpm.kernels.h"

namespace coppice::mpm {
namespace {

template <int D>
Loop all_particles(const SolverState<D>& state) {
  return range(static_cast<int64_t>(state.particles.size()));
}

template <int D>
Capsule<D> capsule_of(const Stroke& stroke, const Vec3d& origin) {
  return {small<D>(stroke.from.template cast<double>() - origin),
          small<D>((stroke.to - stroke.from).template cast<double>()), stroke.radius_m};
}

// Returns the sub-cells around places. Their lattice is that of the samples, whose cells start at whole
// multiples of dx in the world.
template <int D>
Subcells<D> subcells_around(const SolverState<D>& state, size_t emitter, const std::vector<Vec3f>& places) {
  Aabb3f bounds;
  for (const Vec3f& p : places) bounds.extend(p);
  const Vec3d origin = state.origin();
  Subcells<D> subcells;
  const double per_m = subcells_per_axis(state.scene, emitter) / state.scene.dx_m();
  subcells.per_m = static_cast<float>(per_m);
  for (int k = 0; k < D; ++k) {
    const double first = std::floor(bounds.min[k] * per_m);
    subcells.first.v[k] = static_cast<float>(first - origin[k] * per_m);
    subcells.extent[k] = static_cast<int32_t>(std::floor(bounds.max[k] * per_m) - first) + 1;
  }
  return subcells;
}

// Returns the places whose sub-cell has no particle.
template <int D>
std::vector<Vec3f> wait_without_taken(SolverState<D>& state, size_t emitter,
                                      const std::vector<Vec3f>& places) {
  const Subcells<D> subcells = subcells_around(state, emitter, places);
  size_t count = 1;
  for (int k = 0; k < D; ++k) count *= static_cast<size_t>(subcells.extent[k]);
  std::vector<uint32_t> is_taken(count);
  const IntrusivePtr<Buffer> marks = state.device->reserve(count * 4, count * 4);
  wait_done(state.program.launch(kernels::mark_taken<D>, all_particles(state), state.particles.arrays(),
                                 subcells, marks->as<uint32_t>()));
  state.device->wait_copy(is_taken.data(), marks->data(), count * 4);
  const Vec3d origin = state.origin();
  std::vector<Vec3f> free;
  std::ranges::copy_if(places, std::back_inserter(free), [&](const Vec3f& p) {
    const int64_t number = subcell_of(subcells, small<D>(p.cast<double>() - origin));
    return number < 0 || is_taken[static_cast<size_t>(number)] == 0;
  });
  return free;
}

// Adds particles of one emitter with one velocity.
template <int D>
void wait_add(SolverState<D>& state, size_t emitter, std::vector<Vec3f> places, const Vec3f& velocity) {
  ParticleStore<D>& particles = state.particles;
  wait_done(state.device->default_stream().barrier());
  const uint64_t n = places.size(), sum = particles.size() + n;
  // There is room for more, so that a hand that goes on does not have all of them moved each time.
  if (sum > particles.capacity()) particles.wait_reserve(std::min(state.most_particles, sum * 3 / 2));
  std::vector<ParticleStart> starts;
  for (const Group<D>& group : state.groups) starts.push_back({velocity, initial_scalar(group)});
  particles.wait_add({std::move(places), std::vector<uint32_t>(n, static_cast<uint32_t>(emitter))}, starts,
                     state.origin().template cast<float>());
  state.expect_particles(emitter, std::sqrt(velocity.squaredNorm()));
}

}  // namespace

template <int D>
uint64_t wait_emit(SolverState<D>& state, size_t emitter, const Vec3f& center, float radius_m,
                   const Vec3f& velocity, uint64_t steps) {
  check_stroke(state.scene, "emit", {center, center, radius_m});
  check_velocity("emit", velocity);
  const Vec3f at(center.x(), center.y(), D == 3 ? center.z() : 0.0f);
  const uint64_t n = state.particles.size();
  // Ids are 32 bits.
  const uint64_t most = std::min(state.most_particles - std::min(n, state.most_particles),
                                 (uint64_t{1} << 32) - state.particles.next_id());
  std::vector<Vec3f> places = sample_ball(state.scene, emitter, at, radius_m, steps, most);
  check_not_empty(state.scene, radius_m, places.size());
  places = wait_without_taken(state, emitter, places);
  if (places.size() > most)
    throw Error(ErrorCode::kUsage,
                fmt::format("emit: {} particles; there is room for {} more", places.size(), most));
  const uint64_t come = places.size();
  if (come > 0) wait_add(state, emitter, std::move(places), velocity);
  return come;
}

template <int D>
void wait_push(SolverState<D>& state, const Stroke& stroke, const Vec3f& velocity) {
  check_stroke(state.scene, "push", stroke);
  check_velocity("push", velocity);
  state.wait_upload_control();
  wait_done(state.program.launch(kernels::push_particles<D>, all_particles(state), state.particles.arrays(),
                                 capsule_of<D>(stroke, state.origin()), small<D>(velocity.cast<double>()),
                                 &state.arguments.control->max_speed_bits));
  state.wait_download_control();
}

template <int D>
uint64_t wait_cut(SolverState<D>& state, const Stroke& stroke) {
  check_stroke(state.scene, "cut", stroke);
  ParticleStore<D>& particles = state.particles;
  if (particles.size() == 0) return 0;
  wait_done(state.program.launch(kernels::mark_kept<D>, all_particles(state), particles.arrays(),
                                 capsule_of<D>(stroke, state.origin()),
                                 particles.keys()->template as<uint32_t>()));
  const uint64_t gone = particles.wait_keep_flagged(state.program);
  if (gone > 0) state.control.drifted = 1;  // where blocks' particles begin is to be found again
  return gone;
}

template uint64_t wait_emit<2>(SolverState<2>&, size_t, const Vec3f&, float, const Vec3f&, uint64_t);
template uint64_t wait_emit<3>(SolverState<3>&, size_t, const Vec3f&, float, const Vec3f&, uint64_t);
template void wait_push<2>(SolverState<2>&, const Stroke&, const Vec3f&);
template void wait_push<3>(SolverState<3>&, const Stroke&, const Vec3f&);
template uint64_t wait_cut<2>(SolverState<2>&, const Stroke&);
template uint64_t wait_cut<3>(SolverState<3>&, const Stroke&);

}  // namespace coppice::mpm
