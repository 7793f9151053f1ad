// Forces and torques that the material puts on colliders in a frame.
#pragma once
#include <optional>
#include <vector>

#include "apps/mpm/solver_output.h"
#include "apps/mpm/solver_types.h"
#include "gpu/device.h"
#include "sparse/ranks/cluster.h"

namespace coppice::mpm {

// Sums on the device that nodes and particles add to; none where there are no colliders. Thread-compatible.
class ColliderForces {
 public:
  // `mass_kg`: of all particles; sums are right up to that mass times 4000 km/s.
  // `with_sides` has a bit for each box whose sides are told apart.
  ColliderForces(IntrusivePtr<Device> device, size_t n_colliders, double mass_kg, uint32_t with_sides,
                 std::optional<Cluster> cluster);

  ColliderImpulse* sums() const { return buffer_ ? buffer_->as<ColliderImpulse>() : nullptr; }
  SideImpulses* sides() const { return sides_ ? sides_->as<SideImpulses>() : nullptr; }
  uint32_t with_sides() const { return with_sides_; }
  float per_impulse() const { return per_impulse_; }
  void wait_clear();
  // Returns what each collider has got since wait_clear(), per time, from all ranks.
  std::vector<ColliderForce> wait_read(double seconds) const;

 private:
  // Returns the sums of each collider over all slots and ranks.
  template <class Sum>
  std::vector<Sum> wait_sums(const Buffer& buffer) const;
  void wait_read_sides(double scale, std::vector<ColliderForce>& forces) const;

  IntrusivePtr<Device> device_;
  std::optional<Cluster> cluster_;
  size_t n_colliders_;
  uint32_t with_sides_;
  float per_impulse_ = 1;
  IntrusivePtr<Buffer> buffer_, sides_;
};

}  // namespace coppice::mpm
