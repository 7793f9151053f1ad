// Clearing and reading the sums (see collider_forces.h).
#include "apps/mpm/collider_forces.h"

#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "gpu/host_access.h"

namespace coppice::mpm {
namespace {

constexpr size_t kSums = size_t{kImpulseSlots} * kMaxColliders;
// The units of a mass times a metre per second. Sums have 63 bits.
constexpr int kBitsPerSpeed = 41;

}  // namespace

ColliderForces::ColliderForces(IntrusivePtr<Device> device, size_t n_colliders, double mass_kg,
                               uint32_t with_sides, std::optional<Cluster> cluster)
    : device_(std::move(device)),
      cluster_(std::move(cluster)),
      n_colliders_(n_colliders),
      with_sides_(with_sides) {
  if (n_colliders_ == 0) return;
  per_impulse_ = static_cast<float>(std::ldexp(1.0, kBitsPerSpeed - std::ilogb(mass_kg) - 1));
  buffer_ = wait_device_copy(*device_, std::vector<ColliderImpulse>(kSums));
  if (with_sides_ != 0) sides_ = wait_device_copy(*device_, std::vector<SideImpulses>(kSums));
}

void ColliderForces::wait_clear() {
  if (!buffer_) return;
  const std::vector<ColliderImpulse> zero(kSums);
  device_->wait_copy(buffer_->data(), zero.data(), kSums * sizeof(ColliderImpulse));
  if (!sides_) return;
  const std::vector<SideImpulses> none(kSums);
  device_->wait_copy(sides_->data(), none.data(), kSums * sizeof(SideImpulses));
}

template <class Sum>
std::vector<Sum> ColliderForces::wait_sums(const Buffer& buffer) const {
  std::vector<Sum> sums(kSums);
  const size_t bytes = kSums * sizeof(Sum);
  device_->wait_copy(sums.data(), buffer.data(), bytes);
  // Sums are whole numbers all through, of 64 bits: the first slot takes all of them, and other ranks' then.
  constexpr size_t kWords = sizeof(Sum) / sizeof(uint64_t);
  std::vector<uint64_t> words(kMaxColliders * kWords);
  for (size_t i = 0; i < kSums; ++i) {
    std::array<uint64_t, kWords> of_slot;
    std::memcpy(of_slot.data(), &sums[i], sizeof(Sum));
    for (size_t w = 0; w < kWords; ++w) words[i % kMaxColliders * kWords + w] += of_slot[w];
  }
  if (cluster_) cluster_->wait_sum_each(std::span(words));
  sums.resize(kMaxColliders);
  std::memcpy(sums.data(), words.data(), kMaxColliders * sizeof(Sum));
  return sums;
}

std::vector<ColliderForce> ColliderForces::wait_read(double seconds) const {
  std::vector<ColliderForce> forces(n_colliders_);
  if (!buffer_) return forces;
  const auto sums = wait_sums<ColliderImpulse>(*buffer_);
  const double scale = 1 / (double{per_impulse_} * seconds);
  for (size_t c = 0; c < n_colliders_; ++c) {
    const ColliderImpulse& sum = sums[c];
    for (int k = 0; k < 3; ++k) {
      forces[c].force_N[k] = scale * static_cast<double>(static_cast<int64_t>(sum.momentum[k]));
      forces[c].torque_N_m[k] = scale * static_cast<double>(static_cast<int64_t>(sum.angular[k]));
    }
  }
  if (sides_) wait_read_sides(scale, forces);
  return forces;
}

void ColliderForces::wait_read_sides(double scale, std::vector<ColliderForce>& forces) const {
  const auto sums = wait_sums<SideImpulses>(*sides_);
  for (size_t c = 0; c < n_colliders_; ++c) {
    for (size_t side = 0; side < 6; ++side) {
      for (int k = 0; k < 3; ++k) {
        const uint64_t sum = sums[c].momentum[side][k];
        forces[c].side_force_N[side][k] = scale * static_cast<double>(static_cast<int64_t>(sum));
      }
    }
  }
}

}  // namespace coppice::mpm
