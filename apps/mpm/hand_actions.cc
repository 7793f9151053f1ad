// Emitting, pushing and cutting (see hand_actions.h).
#include "apps/mpm/hand_actions.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/mpm/arrivals.h"
#include "apps/mpm/hand.h"
#include "apps/mpm/hand_check.h"
#include "apps/mpm/launched.h"
#include "core/error.h"
#include "mpm.kernels.h"

namespace coppice::mpm {
namespace {

template <int D>
Capsule<D> capsule_of(const Stroke& stroke, const Vec3d& origin) {
  return {small<D>(stroke.from.template cast<double>() - origin),
          small<D>((stroke.to - stroke.from).template cast<double>()), stroke.radius_m};
}

}  // namespace

template <int D>
uint64_t wait_emit(SolverState<D>& state, size_t emitter, const Vec3f& center, float radius_m,
                   const Vec3f& velocity, uint64_t steps) {
  check_stroke(state.scene, "emit", {center, center, radius_m});
  check_velocity("emit", velocity);
  const Vec3f at(center.x(), center.y(), D == 3 ? center.z() : 0.0f);
  const uint64_t n = state.particles.num_everywhere();
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
  if (come > 0) wait_arrive(state, emitter, std::move(places), velocity);
  return come;
}

template <int D>
void wait_push(SolverState<D>& state, const Stroke& stroke, const Vec3f& velocity) {
  check_stroke(state.scene, "push", stroke);
  check_velocity("push", velocity);
  state.wait_upload_control();
  wait_done(
      state.program.launch(kernels::push_particles<D>, range(static_cast<int64_t>(state.particles.size())),
                           state.particles.arrays(), capsule_of<D>(stroke, state.origin()),
                           small<D>(velocity.cast<double>()), &state.arguments.control->max_speed_bits));
  state.wait_download_control();
  if (state.cluster) state.control.max_speed_bits = state.cluster->wait_max(state.control.max_speed_bits);
}

template <int D>
uint64_t wait_cut(SolverState<D>& state, const Stroke& stroke) {
  check_stroke(state.scene, "cut", stroke);
  ParticleStore<D>& particles = state.particles;
  if (particles.num_everywhere() == 0) return 0;
  wait_done(state.program.launch(kernels::mark_kept<D>, range(static_cast<int64_t>(state.particles.size())),
                                 particles.arrays(), capsule_of<D>(stroke, state.origin()),
                                 particles.flags()));
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
