// Room, adding, reordering and cutting (see particle_store.h).
#include "apps/mpm/particle_store.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "apps/geometry/philox.h"
#include "apps/mpm/launched.h"
#include "core/check.h"
#include "gpu/host_access.h"
#include "gpu/stream_primitives.h"
#include "mpm.kernels.h"
#include "sparse/buffer_operations.h"

namespace coppice::mpm {
namespace {

// Snow of a plastic volume ratio J is exp(hardening (1 - J)) times as stiff.
float scalar_of(const ParticleStart& start, uint64_t id) {
  if (start.stiffness_spread == 0) return start.scalar;
  const auto low = [](uint64_t w) { return static_cast<uint32_t>(w); };
  const auto high = [](uint64_t w) { return static_cast<uint32_t>(w >> 32); };
  const auto random = philox4x32({low(id), high(id), 0, 0}, {low(start.seed), high(start.seed)});
  const float stiffness = 1 + start.stiffness_spread * (2 * uniform_float(random[0]) - 1);
  return start.scalar - std::log(stiffness) / start.hardening;
}

}  // namespace

template <int D>
void ParticleStore<D>::wait_reserve(uint64_t n) {
  // Rows start on cache lines, and an odd number of lines apart: a power-of-two distance would make all
  // attributes of a particle compete for the same cache set (measured: 1.6 times slower updates).
  const int64_t stride = static_cast<int64_t>(((n + 15) / 16) | 1) * 16;
  if (stride <= arrays_.stride) return;
  const size_t word_bytes = static_cast<size_t>(stride) * 4, bytes = word_bytes * (A::kCount + 1);
  const IntrusivePtr<Buffer> memory = device_->reserve(bytes, bytes),
                             keys = device_->reserve(word_bytes, word_bytes);
  for (int a = 0; n_ > 0 && a < A::kCount; ++a)
    device_->wait_copy(memory->as<float>() + a * stride, attribute(a), n_ * sizeof(float));
  if (n_ > 0) device_->wait_copy(keys->data(), keys_->data(), n_ * sizeof(uint32_t));
  memory_ = memory;
  keys_ = keys;
  arrays_ = {memory_->as<float>(), stride};
}

template <int D>
void ParticleStore<D>::reserve_starts(uint64_t n_bins) {
  const size_t bytes = (n_bins + 1) * sizeof(uint32_t);
  if (!starts_ || starts_->size_bytes() < bytes) starts_ = device_->reserve(2 * bytes, 2 * bytes);
}

template <int D>
void ParticleStore<D>::wait_add(const EmittedParticles& emitted, std::span<const ParticleStart> starts,
                                const Vec3f& origin) {
  const uint64_t n_all = emitted.position.size();
  // This rank has [first, end) of those that are added.
  uint64_t first = 0, end = n_all;
  if (cluster_) {
    const auto rank = static_cast<uint64_t>(cluster_->rank()),
               n_ranks = static_cast<uint64_t>(cluster_->n_ranks());
    first = n_all * rank / n_ranks, end = n_all * (rank + 1) / n_ranks;
  }
  const uint64_t n = end - first, at = n_;
  wait_reserve(at + n);
  const std::vector<uint32_t>& emitter = emitted.emitter;
  // Particles that were there before have left their values there.
  if (next_id_ > 0) {
    for (int a = 0; a < A::kCount; ++a) wait_upload(a, at, n, [](uint64_t) { return 0.0f; });
  }
  for (int k = 0; k < D; ++k) {
    wait_upload(A::kPosition + k, at, n,
                [&](uint64_t i) { return emitted.position[first + i][k] - origin[k]; });
    wait_upload(A::kVelocity + k, at, n, [&](uint64_t i) { return starts[emitter[first + i]].velocity[k]; });
    wait_upload(A::kDeformation + k * D + k, at, n, [](uint64_t) { return 1.0f; });
  }
  const uint64_t next_id = next_id_ + first;
  wait_upload(A::kScalar, at, n,
              [&](uint64_t i) { return scalar_of(starts[emitter[first + i]], next_id + i); });
  wait_upload(A::kGroup, at, n, [&](uint64_t i) { return static_cast<float>(emitter[first + i]); });
  wait_upload(A::kId, at, n,
              [&](uint64_t i) { return std::bit_cast<float>(static_cast<uint32_t>(next_id + i)); });
  wait_upload(keys_->as<float>() + at, n, [](uint64_t) { return std::bit_cast<float>(kNoParticleKey); });
  n_ += n;
  n_everywhere_ += n_all;
  next_id_ += n_all;
}

template <int D>
template <class F>
void ParticleStore<D>::wait_upload(int number, uint64_t begin, uint64_t count, F&& value) {
  wait_upload(attribute(number) + begin, count, std::forward<F>(value));
}

template <int D>
template <class F>
void ParticleStore<D>::wait_upload(float* to, uint64_t count, F&& value) {
  std::vector<float> row(std::min(count, kRowParticles));
  for (uint64_t first = 0; first < count; first += kRowParticles) {
    const uint64_t n = std::min(count - first, kRowParticles);
    for (uint64_t i = 0; i < n; ++i) row[i] = value(first + i);
    device_->wait_copy(to + first, row.data(), n * sizeof(float));
  }
}

template <int D>
void ParticleStore<D>::take_next(uint64_t n) {
  arrays_ = next_arrays();
  n_ = n;
}

template <int D>
uint64_t ParticleStore<D>::wait_keep_flagged(Program& program) {
  const uint64_t before = n_;
  uint64_t left = 0;
  if (before > 0) {
    const BufferRef places = temporary(*device_, before * sizeof(uint32_t));
    uint32_t *const is_kept = flags(), *const kept = places->as<uint32_t>();
    wait_done(device_->default_stream().enqueue("mpm.select", [&](InStream& s) {
      left = primitives::wait_select_if_flag(s, is_kept, kept, before);
    }));
    if (left < before) wait_keep(program, kept, left);
  }
  const uint64_t gone = before - left, gone_everywhere = cluster_ ? cluster_->wait_sum(gone) : gone;
  n_everywhere_ -= gone_everywhere;
  return gone_everywhere;
}

template <int D>
void ParticleStore<D>::wait_keep(Program& program, const uint32_t* kept, uint64_t n) {
  const auto count = static_cast<int64_t>(n);
  wait_done(reorder(program, count, arrays_, next_arrays(), kept));
  take_next(n);
  if (n == 0) return;
  const auto bytes = static_cast<int64_t>(n * sizeof(uint32_t));
  const BufferRef keys = temporary(*device_, static_cast<size_t>(bytes));
  program.launch(kernels::reorder_particles, range(count), ParticleArrays{keys_->as<float>(), 0},
                 ParticleArrays{keys->as<float>(), 0}, kept, 0, 1);
  wait_done(copy(*device_, keys_, 0, keys, 0, bytes));
}

template <int D>
std::vector<float> ParticleStore<D>::wait_gather_rows(Program& program, const uint32_t* chosen,
                                                      uint64_t n) const {
  std::vector<float> rows(n * A::kCount);
  if (n == 0) return rows;
  const BufferRef out = temporary(*device_, rows.size() * sizeof(float));
  wait_done(program.launch(kernels::gather_particles, range(static_cast<int64_t>(rows.size())), arrays_,
                           chosen, static_cast<int64_t>(n), out->as<float>()));
  device_->wait_copy(rows.data(), out->data(), rows.size() * sizeof(float));
  return rows;
}

template <int D>
void ParticleStore<D>::wait_migrate(Program& program, const uint32_t* order, uint64_t n_kept,
                                    const std::vector<std::vector<uint32_t>>& to,
                                    IntrusivePtr<Buffer>& places) {
  // A part has the particles' places, and then their attributes, one after the other.
  std::vector<RankLink::Bytes> parts(to.size());
  for (size_t r = 0; r < to.size(); ++r) {
    const uint64_t n = to[r].size();
    if (n == 0) continue;
    const IntrusivePtr<Buffer> chosen = wait_device_copy(*device_, to[r]);
    const BufferRef out = temporary(*device_, n * sizeof(uint64_t));
    wait_done(program.launch(kernels::gather_places, range(static_cast<int64_t>(n)),
                             places->as<const uint64_t>(), chosen->as<const uint32_t>(),
                             out->as<uint64_t>()));
    const std::vector<float> rows = wait_gather_rows(program, chosen->as<const uint32_t>(), n);
    parts[r].resize(n * sizeof(uint64_t) + rows.size() * sizeof(float));
    device_->wait_copy(parts[r].data(), out->data(), n * sizeof(uint64_t));
    std::memcpy(parts[r].data() + n * sizeof(uint64_t), rows.data(), rows.size() * sizeof(float));
  }
  const std::vector<RankLink::Bytes> come = cluster_->wait_exchange(std::move(parts));
  constexpr uint64_t kBytes = sizeof(uint64_t) + A::kCount * sizeof(float);
  uint64_t n = n_kept;
  for (const RankLink::Bytes& part : come) n += part.size() / kBytes;
  if (n_kept < n_) wait_keep(program, order, n_kept);
  if (n > capacity()) wait_reserve(n + n / 8);
  const IntrusivePtr<Buffer> all = device_->reserve(std::max<uint64_t>(n, 1) * sizeof(uint64_t),
                                                    std::max<uint64_t>(n, 1) * sizeof(uint64_t));
  if (n_kept > 0)
    wait_done(program.launch(kernels::gather_places, range(static_cast<int64_t>(n_kept)),
                             places->as<const uint64_t>(), order, all->as<uint64_t>()));
  for (const RankLink::Bytes& part : come) {
    const uint64_t count = part.size() / kBytes;
    if (count == 0) continue;
    const std::byte* from = part.data();
    device_->wait_copy(all->as<uint64_t>() + n_, from, count * sizeof(uint64_t));
    from += count * sizeof(uint64_t);
    for (int a = 0; a < A::kCount; ++a, from += count * sizeof(float))
      device_->wait_copy(attribute(a) + n_, from, count * sizeof(float));
    n_ += count;
  }
  places = all;
}

template <int D>
void ParticleStore<D>::wait_set(const std::vector<float>& rows, const std::vector<uint32_t>& keys,
                                uint64_t n_everywhere, uint64_t next_id) {
  const uint64_t n = keys.size();
  COPPICE_CHECK(rows.size() == n * A::kCount, "{} particles", n);
  n_ = 0;
  wait_reserve(n);
  for (int a = 0; n > 0 && a < A::kCount; ++a)
    device_->wait_copy(attribute(a), rows.data() + static_cast<uint64_t>(a) * n, n * sizeof(float));
  if (n > 0) device_->wait_copy(keys_->data(), keys.data(), n * sizeof(uint32_t));
  n_ = n, n_everywhere_ = n_everywhere, next_id_ = next_id;
}

template <int D>
uint64_t ParticleStore<D>::array_bytes() const {
  return memory_ ? static_cast<uint64_t>(arrays_.stride) * A::kCount * sizeof(float) : 0;
}

template <int D>
uint64_t ParticleStore<D>::sorting_bytes() const {
  uint64_t sum = memory_ ? memory_->size_bytes() - array_bytes() : 0;
  for (const IntrusivePtr<Buffer>& buffer : {keys_, starts_}) sum += buffer ? buffer->size_bytes() : 0;
  return sum;
}

template class ParticleStore<2>;
template class ParticleStore<3>;

}  // namespace coppice::mpm
