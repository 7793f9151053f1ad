// Room, adding, reordering and cutting (see particle_store.h).
#include "apps/mpm/particle_store.h"

#include <bit>
#include <cmath>
#include <utility>

#include "apps/geometry/philox.h"
#include "apps/mpm/launched.h"
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
  const uint64_t n = emitted.position.size(), at = n_;
  wait_reserve(at + n);
  const std::vector<uint32_t>& emitter = emitted.emitter;
  // Particles that were cut have left their values there.
  if (next_id_ > 0) {
    for (int a = 0; a < A::kCount; ++a) wait_upload(a, at, n, [](uint64_t) { return 0.0f; });
  }
  for (int k = 0; k < D; ++k) {
    wait_upload(A::kPosition + k, at, n, [&](uint64_t i) { return emitted.position[i][k] - origin[k]; });
    wait_upload(A::kVelocity + k, at, n, [&](uint64_t i) { return starts[emitter[i]].velocity[k]; });
    wait_upload(A::kDeformation + k * D + k, at, n, [](uint64_t) { return 1.0f; });
  }
  wait_upload(A::kScalar, at, n, [&](uint64_t i) { return scalar_of(starts[emitter[i]], next_id_ + i); });
  wait_upload(A::kGroup, at, n, [&](uint64_t i) { return static_cast<float>(emitter[i]); });
  wait_upload(A::kId, at, n,
              [&](uint64_t i) { return std::bit_cast<float>(static_cast<uint32_t>(next_id_ + i)); });
  n_ += n;
  next_id_ += n;
}

template <int D>
template <class F>
void ParticleStore<D>::wait_upload(int number, uint64_t begin, uint64_t count, F&& value) {
  std::vector<float> row(std::min(count, kRowParticles));
  for (uint64_t first = 0; first < count; first += kRowParticles) {
    const uint64_t n = std::min(count - first, kRowParticles);
    for (uint64_t i = 0; i < n; ++i) row[i] = value(first + i);
    device_->wait_copy(attribute(number) + begin + first, row.data(), n * sizeof(float));
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
  const BufferRef places = temporary(*device_, before * sizeof(uint32_t));
  const auto flags = keys_->as<uint32_t>(), kept = places->as<uint32_t>();
  uint64_t left = 0;
  wait_done(device_->default_stream().enqueue(
      "mpm.select", [&](InStream& s) { left = primitives::wait_select_if_flag(s, flags, kept, before); }));
  if (left == before) return 0;
  wait_done(reorder(program, static_cast<int64_t>(left), arrays_, next_arrays(), kept));
  take_next(left);
  return before - left;
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
