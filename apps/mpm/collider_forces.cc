// Clearing and reading the sums (see collider_forces.h).
#include "apps/mpm/collider_forces.h"

#include <cmath>

#include "gpu/host_access.h"

namespace coppice::mpm {
namespace {

constexpr size_t kSums = size_t{kImpulseSlots} * kMaxColliders;
// The units of a mass times a metre per second. Sums have 63 bits.
constexpr int kBitsPerSpeed = 41;

}  // namespace

ColliderForces::ColliderForces(IntrusivePtr<Device> device, size_t n_colliders, double mass_kg)
    : device_(std::move(device)), n_colliders_(n_colliders) {
  if (n_colliders_ == 0) return;
  per_impulse_ = static_cast<float>(std::ldexp(1.0, kBitsPerSpeed - std::ilogb(mass_kg) - 1));
  buffer_ = wait_device_copy(*device_, std::vector<ColliderImpulse>(kSums));
}

void ColliderForces::wait_clear() {
  if (!buffer_) return;
  const std::vector<ColliderImpulse> zero(kSums);
  device_->wait_copy(buffer_->data(), zero.data(), kSums * sizeof(ColliderImpulse));
}

std::vector<ColliderForce> ColliderForces::wait_read(double seconds) const {
  std::vector<ColliderForce> forces(n_colliders_);
  if (!buffer_) return forces;
  std::vector<ColliderImpulse> sums(kSums);
  device_->wait_copy(sums.data(), buffer_->data(), kSums * sizeof(ColliderImpulse));
  const double scale = 1 / (double{per_impulse_} * seconds);
  for (size_t c = 0; c < n_colliders_; ++c) {
    ColliderImpulse sum{};
    for (size_t slot = 0; slot < kImpulseSlots; ++slot) {
      for (int k = 0; k < 3; ++k) {
        sum.momentum[k] += sums[slot * kMaxColliders + c].momentum[k];
        sum.angular[k] += sums[slot * kMaxColliders + c].angular[k];
      }
    }
    for (int k = 0; k < 3; ++k) {
      forces[c].force_N[k] = scale * static_cast<double>(static_cast<int64_t>(sum.momentum[k]));
      forces[c].torque_N_m[k] = scale * static_cast<double>(static_cast<int64_t>(sum.angular[k]));
    }
  }
  return forces;
}

}  // namespace coppice::mpm
