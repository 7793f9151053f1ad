// Room, free places, and adding (see arrivals.h).
#include "apps/mpm/arrivals.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <utility>

#include "apps/mpm/hand.h"
#include "apps/mpm/launched.h"
#include "mpm.kernels.h"

namespace coppice::mpm {
namespace {

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

}  // namespace

template <int D>
std::vector<Vec3f> wait_without_taken(SolverState<D>& state, size_t emitter,
                                      const std::vector<Vec3f>& places) {
  const Subcells<D> subcells = subcells_around(state, emitter, places);
  size_t count = 1;
  for (int k = 0; k < D; ++k) count *= static_cast<size_t>(subcells.extent[k]);
  std::vector<uint32_t> is_taken(count);
  const IntrusivePtr<Buffer> marks = state.device->reserve(count * 4, count * 4);
  wait_done(state.program.launch(kernels::mark_taken<D>, range(static_cast<int64_t>(state.particles.size())),
                                 state.particles.arrays(), subcells, marks->as<uint32_t>()));
  state.device->wait_copy(is_taken.data(), marks->data(), count * 4);
  if (state.cluster) state.cluster->wait_sum_each(std::span(is_taken));
  const Vec3d origin = state.origin();
  std::vector<Vec3f> free;
  std::ranges::copy_if(places, std::back_inserter(free), [&](const Vec3f& p) {
    const int64_t number = subcell_of(subcells, small<D>(p.cast<double>() - origin));
    return number < 0 || is_taken[static_cast<size_t>(number)] == 0;
  });
  return free;
}

template <int D>
void wait_arrive(SolverState<D>& state, size_t emitter, std::vector<Vec3f> places, const Vec3f& velocity) {
  ParticleStore<D>& particles = state.particles;
  wait_done(state.device->default_stream().barrier());
  // Over ranks each gets a part of them only.
  const uint64_t n = places.size(), sum = particles.size() + n;
  // There is room for more, so that not all of them are moved each time that others come.
  if (sum > particles.capacity())
    particles.wait_reserve(std::max(sum, std::min(state.most_particles, sum * 3 / 2)));
  std::vector<ParticleStart> starts;
  for (size_t e = 0; e < state.groups.size(); ++e) starts.push_back(state.start_of(e, velocity));
  particles.wait_add({std::move(places), std::vector<uint32_t>(n, static_cast<uint32_t>(emitter))}, starts,
                     state.origin().template cast<float>());
  state.expect_particles(emitter, std::sqrt(velocity.squaredNorm()));
}

template std::vector<Vec3f> wait_without_taken<2>(SolverState<2>&, size_t, const std::vector<Vec3f>&);
template std::vector<Vec3f> wait_without_taken<3>(SolverState<3>&, size_t, const std::vector<Vec3f>&);
template void wait_arrive<2>(SolverState<2>&, size_t, std::vector<Vec3f>, const Vec3f&);
template void wait_arrive<3>(SolverState<3>&, size_t, std::vector<Vec3f>, const Vec3f&);

}  // namespace coppice::mpm
