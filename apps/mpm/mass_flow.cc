// Arrivals and departures (see mass_flow.h).
#include "apps/mpm/mass_flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "apps/mpm/arrivals.h"
#include "apps/mpm/launched.h"
#include "core/error.h"
#include "gpu/host_access.h"
#include "mpm.kernels.h"

namespace coppice::mpm {

template <int D>
MassFlow<D>::MassFlow(SolverState<D>& state)
    : state_(state), came_(state.groups.size()), left_(state.groups.size()) {
  const scene::SceneConfig& scene = state.scene;
  for (size_t e = 0; e < scene.emitters.size(); ++e) {
    if (!scene.emitters[e].inflow) continue;
    const scene::Inflow& inflow = *scene.emitters[e].inflow;
    streams_.push_back({e, InflowPattern(scene, e), inflow.from_s,
                        inflow.until_s.value_or(std::numeric_limits<double>::infinity()),
                        inflow.from_s > 0 ? -1.0 : 0.0});
  }
  std::vector<OutflowBox<D>> boxes;
  for (const scene::Outflow& o : scene.outflows)
    boxes.push_back({small<D>(o.center - state.origin()), small<D>(o.half_size)});
  n_boxes_ = static_cast<uint32_t>(boxes.size());
  if (n_boxes_ == 0) return;
  boxes_ = wait_device_copy(*state.device, boxes);
  counts_ = state.device->reserve(state.groups.size() * 4, state.groups.size() * 4);
}

template <int D>
int MassFlow<D>::most_steps(double time_s, double dt_s) const {
  const double dx = state_.scene.dx_m();
  double most_s = std::numeric_limits<double>::max();
  for (const Stream& s : streams_) {
    const double speed = state_.scene.emitters[s.emitter].velocity.norm();
    if (time_s < s.from_s)
      most_s = std::min(most_s, s.from_s - time_s);
    else if (time_s < s.until_s)
      most_s = std::min(most_s, 0.5 * dx / speed);
  }
  if (n_boxes_ > 0) most_s = std::min(most_s, dx / std::max(state_.max_speed_m_s(), 1e-9));
  return static_cast<int>(std::clamp(std::ceil(most_s / dt_s * (1 - 1e-6)), 1.0, 1e6));
}

template <int D>
void MassFlow<D>::wait_update(double time_s) {
  if (n_boxes_ > 0) wait_take_out();
  for (size_t s = 0; s < streams_.size(); ++s) wait_bring_in(s, time_s);
}

template <int D>
double MassFlow<D>::mass_of(const std::vector<uint64_t>& counts) const {
  double sum = 0;
  for (size_t e = 0; e < counts.size(); ++e)
    sum += static_cast<double>(counts[e]) * static_cast<double>(state_.groups[e].mass);
  return sum;
}

template <int D>
void MassFlow<D>::wait_take_out() {
  ParticleStore<D>& particles = state_.particles;
  if (particles.num_everywhere() == 0) return;
  std::vector<uint32_t> counts(left_.size(), 0);
  const size_t bytes = counts.size() * sizeof(uint32_t);
  state_.device->wait_copy(counts_->data(), counts.data(), bytes);
  wait_done(state_.program.launch(kernels::mark_outflow<D>, range(static_cast<int64_t>(particles.size())),
                                  particles.arrays(), boxes_->as<OutflowBox<D>>(), n_boxes_,
                                  particles.flags(), counts_->as<uint32_t>()));
  state_.device->wait_copy(counts.data(), counts_->data(), bytes);
  if (state_.cluster) state_.cluster->wait_sum_each(std::span(counts));
  if (std::ranges::all_of(counts, [](uint32_t count) { return count == 0; })) return;
  particles.wait_keep_flagged(state_.program);
  for (size_t e = 0; e < counts.size(); ++e) left_[e] += counts[e];
  state_.control.drifted = 1;  // where blocks' particles begin is to be found again
}

template <int D>
std::vector<Vec3f> MassFlow<D>::open_places(size_t stream, double time_s, std::vector<Vec3f> places) const {
  const Vec3d origin = state_.origin();
  std::vector<ColliderState<D>> colliders;
  for (uint32_t c = 0; c < state_.control.n_colliders; ++c) colliders.push_back(state_.collider_on_host(c));
  std::erase_if(places, [&](const Vec3f& p) {
    for (size_t s = 0; s < stream; ++s) {
      const Stream& other = streams_[s];
      if (time_s >= other.from_s && time_s < other.until_s && other.pattern.contains(p)) return true;
    }
    const SmallVec<float, D> x = small<D>(p.template cast<double>() - origin);
    return std::ranges::any_of(colliders, [&](const ColliderState<D>& c) { return distance_to(c, x) < 0; });
  });
  return places;
}

template <int D>
void MassFlow<D>::wait_bring_in(size_t stream, double time_s) {
  Stream& s = streams_[stream];
  const double now_s = time_s - s.from_s, until_s = std::min(time_s, s.until_s) - s.from_s;
  if (until_s < 0 || until_s <= s.done_s) return;
  std::vector<Vec3f> places = s.pattern.enter(std::max(s.done_s, 0.0), until_s, now_s);
  if (s.done_s < 0) {
    // Samples that are in the shape when it begins come where there is room.
    std::vector<Vec3f> first = s.pattern.enter(-1, 0, now_s);
    if (state_.particles.num_everywhere() > 0 && !first.empty())
      first = wait_without_taken(state_, s.emitter, first);
    places.insert(places.end(), first.begin(), first.end());
  }
  s.done_s = until_s;
  places = open_places(stream, time_s, std::move(places));
  if (places.empty()) return;
  // Steps also leave particles in this box.
  const Vec3f margin = Vec3f::Constant(static_cast<float>(0.01 * state_.scene.dx_m()));
  const Vec3f low = state_.scene.domain.min.template cast<float>() + margin,
              high = state_.scene.domain.max.template cast<float>() - margin;
  for (Vec3f& p : places)
    for (int k = 0; k < D; ++k) p[k] = std::clamp(p[k], low[k], high[k]);
  const uint64_t n = places.size(), sum = state_.particles.num_everywhere() + n;
  if (state_.particles.next_id() + n > uint64_t{1} << 32) {
    throw Error(ErrorCode::kOutOfMemory,
                fmt::format("the inflow of emitter[{}]: 2^32 particles have come, more than there are ids",
                            s.emitter));
  }
  if (sum > state_.most_particles) state_.most_particles = sum + sum / 4;
  const Vec3f velocity = state_.scene.emitters[s.emitter].velocity.template cast<float>();
  wait_arrive(state_, s.emitter, std::move(places), velocity);
  came_[s.emitter] += n;
}

template <int D>
void MassFlow<D>::save(Checkpoint& to) const {
  to.came = came_, to.left = left_;
  to.inflow_done_s.clear();
  for (const Stream& s : streams_) to.inflow_done_s.push_back(s.done_s);
}

template <int D>
void MassFlow<D>::load(const Checkpoint& from) {
  if (from.came.size() != came_.size() || from.left.size() != left_.size() ||
      from.inflow_done_s.size() != streams_.size())
    throw Error(ErrorCode::kInvalidArgument, "the checkpoint has other emitters than the scene");
  came_ = from.came, left_ = from.left;
  for (size_t s = 0; s < streams_.size(); ++s) streams_[s].done_s = from.inflow_done_s[s];
}

template class MassFlow<2>;
template class MassFlow<3>;

}  // namespace coppice::mpm
