// Copies and launches for output (see readback.h).
#include "apps/mpm/readback.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <utility>

#include "apps/mpm/collect.h"
#include "apps/mpm/launched.h"
#include "apps/mpm/particle_rows.h"
#include "core/error.h"
#include "mpm.kernels.h"
#include "sparse/tree_storage.h"

namespace coppice::mpm {
template <int D>
void Readback<D>::compile() {
  state_.program.compile(kernels::elastic_energies<D>, range(1), state_.particles.arrays(),
                         state_.arguments.groups, static_cast<float*>(nullptr));
  state_.program.compile(kernels::copy_density<D>, over(state_.grid.leaf()), state_.grid.nodes(), 1.0f,
                         static_cast<float*>(nullptr), static_cast<int32_t*>(nullptr));
}

template <int D>
void Readback<D>::wait_sum(FrameStats& s) {
  const Vec3d shift = state_.origin(), low = state_.scene.domain.min, gravity = state_.scene.gravity;
  std::vector<int> needed{A::kGroup};
  for (int k = 0; k < D; ++k) needed.insert(needed.end(), {A::kPosition + k, A::kVelocity + k});
  for (int k = 0; k < D * D; ++k) needed.push_back(A::kAffine + k);
  const double cell2 = state_.scene.dx_m() * state_.scene.dx_m();
  state_.particles.wait_for_each(needed, [&](const auto& rows, uint64_t i) {
    const double m = state_.groups[static_cast<size_t>(rows[A::kGroup][i])].mass;
    s.mass_kg += m;
    double speed2 = 0;
    for (int k = 0; k < D; ++k) {
      const double v = rows[A::kVelocity + k][i];
      s.momentum[k] += m * v;
      speed2 += v * v;
      s.potential_J -= m * gravity[k] * (rows[A::kPosition + k][i] + shift[k] - low[k]);
    }
    s.kinetic_J += 0.5 * m * speed2;
    Vec3d x = shift, v = Vec3d::Zero();
    if (D == 2) x.z() = 0;
    for (int k = 0; k < D; ++k) x[k] += rows[A::kPosition + k][i], v[k] = rows[A::kVelocity + k][i];
    // APIC's particles turn, too: sum of m w (x_node - x) x (C (x_node - x)) over the nodes, whose second
    // moment is dx^2 / 4 along each axis.
    const auto c = [&](int row, int column) { return double{rows[A::kAffine + row * D + column][i]}; };
    Vec3d curl(0, 0, c(1, 0) - c(0, 1));
    if constexpr (D == 3) curl.x() = c(2, 1) - c(1, 2), curl.y() = c(0, 2) - c(2, 0);
    s.angular_momentum += m * (x.cross(v) + 0.25 * cell2 * curl);
  });
  s.elastic_J = wait_elastic_energy();
  if (state_.cluster) wait_add_up(s);
}

template <int D>
void Readback<D>::wait_add_up(FrameStats& s) const {
  std::array<double, 10> sums{s.mass_kg, s.kinetic_J, s.potential_J, s.elastic_J};
  for (int k = 0; k < 3; ++k) {
    sums[static_cast<size_t>(4 + k)] = s.momentum[k];
    sums[static_cast<size_t>(7 + k)] = s.angular_momentum[k];
  }
  state_.cluster->wait_sum_each(std::span<double>(sums));
  s.mass_kg = sums[0], s.kinetic_J = sums[1], s.potential_J = sums[2], s.elastic_J = sums[3];
  s.momentum = {sums[4], sums[5], sums[6]};
  s.angular_momentum = {sums[7], sums[8], sums[9]};
}

template <int D>
double Readback<D>::wait_elastic_energy() {
  constexpr uint64_t kAtOnce = uint64_t{1} << 14;  // on the host
  const uint64_t n = state_.particles.size();
  if (n == 0) return 0;
  float* const energies = state_.particles.spare_array();
  wait_done(state_.program.launch(kernels::elastic_energies<D>, range(static_cast<int64_t>(n)),
                                  state_.particles.arrays(), state_.arguments.groups, energies));
  std::vector<float> piece(std::min(n, kAtOnce));
  double sum = 0;
  for (uint64_t first = 0; first < n; first += kAtOnce) {
    const uint64_t count = std::min(n - first, kAtOnce);
    state_.device->wait_copy(piece.data(), energies + first, count * sizeof(float));
    sum = std::accumulate(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count), sum);
  }
  return sum;
}

template <int D>
ParticleSnapshot Readback<D>::wait_snapshot(const SnapshotParts& parts) const {
  const auto n_ranks = static_cast<size_t>(state_.cluster ? state_.cluster->n_ranks() : 1);
  return wait_rows(state_, parts, std::vector<uint64_t>(n_ranks, state_.particles.num_everywhere()));
}

template <int D>
DensityBlocks Readback<D>::wait_density(const GridParts& parts) {
  DensityBlocks d = wait_own_blocks(parts);
  wait_collect(state_.cluster, d.origins);
  wait_collect(state_.cluster, d.values);
  if (parts.velocity) wait_collect(state_.cluster, d.velocity);
  return d;
}

template <int D>
DensityBlocks Readback<D>::wait_own_blocks(const GridParts& parts) {
  DensityBlocks d;
  d.block_size = kBlockSize<D>;
  d.dx = state_.arguments.dx;
  d.origin = state_.origin().template cast<float>();
  constexpr size_t nodes = 64;  // of a block, in 2-D and in 3-D
  if (state_.n_blocks == 0) return d;
  d.values.resize(state_.n_blocks * nodes);
  d.origins.resize(state_.n_blocks * 3);
  const size_t value_bytes = d.values.size() * sizeof(float),
               origin_bytes = d.origins.size() * sizeof(int32_t);
  Device& device = *state_.device;
  if (!density_ || density_->size_bytes() < value_bytes) {
    density_ = device.reserve(2 * value_bytes, 2 * value_bytes);
    origins_ = device.reserve(2 * origin_bytes, 2 * origin_bytes);
  }
  wait_done(state_.program.launch(kernels::copy_density<D>, over(state_.grid.leaf()), state_.grid.nodes(),
                                  static_cast<float>(state_.cells_per_volume()), density_->as<float>(),
                                  origins_->as<int32_t>()));
  device.wait_copy(d.values.data(), density_->data(), value_bytes);
  device.wait_copy(d.origins.data(), origins_->data(), origin_bytes);
  // In 2-D a block's first coordinate is that of an axis which is not there.
  for (size_t b = 0; D == 2 && b < state_.n_blocks; ++b)
    std::rotate(&d.origins[3 * b], &d.origins[3 * b + 1], &d.origins[3 * b] + 3);
  if (!parts.velocity) return d;
  d.velocity.resize(3 * d.values.size());
  const size_t velocity_bytes = d.velocity.size() * sizeof(float);
  if (!velocity_ || velocity_->size_bytes() < velocity_bytes)
    velocity_ = device.reserve(2 * velocity_bytes, 2 * velocity_bytes);
  wait_done(state_.program.launch(kernels::copy_velocity<D>, over(state_.grid.leaf()), state_.grid.nodes(),
                                  velocity_->as<float>()));
  device.wait_copy(d.velocity.data(), velocity_->data(), velocity_bytes);
  return d;
}

template <int D>
void Readback<D>::wait_pack(PointValue value, std::vector<render::PackedPoint>& points) {
  const uint64_t n = state_.particles.size();
  points.resize(n);
  if (n > 0) {
    const size_t bytes = n * sizeof(render::PackedPoint);
    if (!packed_ || packed_->size_bytes() < bytes) packed_ = state_.device->reserve(bytes, bytes);
    wait_done(state_.program.launch(kernels::pack_points<D>, range(static_cast<int64_t>(n)),
                                    state_.particles.arrays(), state_.arguments.groups, value,
                                    small<3>(state_.origin()), packed_->as<float>()));
    state_.device->wait_copy(points.data(), packed_->data(), bytes);
  }
  wait_collect(state_.cluster, points);
}

template <int D>
uint64_t Readback<D>::buffer_bytes() const {
  uint64_t sum = 0;
  for (const IntrusivePtr<Buffer>& buffer : {packed_, density_, origins_, velocity_})
    sum += buffer ? buffer->size_bytes() : 0;
  return sum;
}

template <int D>
render::VolumePlacement Readback<D>::grid_placement() const {
  Vec3d low = state_.origin() - Vec3d::Constant(0.5 * state_.scene.dx_m());
  if (D == 2) low.z() = 0;  // where particles are
  return {low.template cast<float>(), state_.arguments.dx};
}

template <int D>
ShownGrid& Readback<D>::wait_shown_grid() {
  if (D != 3) throw Error(ErrorCode::kInvalidArgument, "the grid is shown as a volume in 3-D only");
  if (state_.cluster)
    throw Error(ErrorCode::kInvalidArgument, "the grid is shown as a volume on one rank only");
  wait_done(state_.device->default_stream().barrier());
  if (!shown_) shown_.emplace(state_.device, state_.grid.leaf());
  return *shown_;
}

template <int D>
Field<float> Readback<D>::wait_grid_field(GridValue value) {
  return wait_shown_grid().wait_show(state_.grid.nodes(), value,
                                     static_cast<float>(state_.cells_per_volume()));
}

template <int D>
Field<float> Readback<D>::wait_body_field(MaterialKind kind, float threshold,
                                          std::vector<uint8_t>& enclosed) {
  ShownGrid& shown = wait_shown_grid();
  if constexpr (D == 3) {
    const StepArguments<3>& a = state_.arguments;
    const BodyShare body = {kind,
                            a.inv_dx,
                            a.inv_dx * a.inv_dx * a.inv_dx,
                            {a.cells[0], a.cells[1], a.cells[2]},
                            {a.high_wall[0], a.high_wall[1], a.high_wall[2]}};
    return shown.wait_show_body(state_.particles.arrays(), a.groups, state_.particles.size(), body, threshold,
                                enclosed);
  } else {
    return {};
  }
}

template <int D>
GridNode Readback<D>::wait_grid_node(const Vec3i& node) const {
  const detail::HostCoord at{node[0], node[1], node[2]};
  const NodeValue value = wait_read(state_.grid.nodes(), at);
  return {state_.grid.leaf().wait_is_active(at), value.v[3], {value.v[0], value.v[1], value.v[2]}};
}

template class Readback<2>;
template class Readback<3>;

}  // namespace coppice::mpm
