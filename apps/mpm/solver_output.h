// A solver tells these of its particles, grid and steps.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "apps/mpm/step_length.h"
#include "core/math.h"

namespace coppice::mpm {

// A snapshot has these parts beside those that it always has.
struct SnapshotParts {
  bool affine = true, deformation = true;
  bool stress = false;
};

// Particles on the host, in the order of their ids. World coordinates.
struct ParticleSnapshot {
  std::vector<Vec3f> position;         // m
  std::vector<Vec3f> velocity;         // m/s
  std::vector<float> volume_ratio;     // det F; water: J
  std::vector<float> material_scalar;  // snow: plastic volume ratio; water: J; sand: volume correction
  std::vector<float> affine;           // [n][D][D], 1/s: APIC's C; may be left out
  // [n][D][D]: elastic deformation gradient; water has none, only the identity. May be left out.
  std::vector<float> deformation;
  std::vector<float> mass;  // kg
  std::vector<float>
      stress;  // [n][D (D + 1) / 2], Pa: Kirchhoff's, xx xy xz yy yz zz; empty unless asked for
  std::vector<uint32_t> material;  // index into SceneConfig::materials
  std::vector<uint32_t> emitter;   // index into SceneConfig::emitters
};

// Blocks of nodes have these parts beside those that they always have.
struct GridParts {
  bool velocity = false;
};

// Mass per volume at the grid's nodes, block by block.
struct DensityBlocks {
  int block_size = 0;            // nodes per axis
  Vec3f origin = Vec3f::Zero();  // m, world position of node (0, 0, 0)
  float dx = 0;                  // m
  std::vector<int32_t> origins;  // [n_blocks][3] node coordinates; in 2-D the last one is 0
  std::vector<float> values;     // [n_blocks][block_size^D], kg/m^3 (kg/m^2 in 2-D); x slowest
  std::vector<float>
      velocity;  // [n_blocks][block_size^D][3], m/s, 0 where there is no mass; empty unless asked for
};

// A node of the grid after the last step.
struct GridNode {
  bool is_active = false;  // its block is there
  double mass_kg = 0;
  Vec3f velocity_m_s = Vec3f::Zero();
};

// A collider gets so much from the material, over a frame's time. In 2-D per metre of depth.
struct ColliderForce {
  Vec3d force_N = Vec3d::Zero();
  Vec3d torque_N_m = Vec3d::Zero();  // about the collider's centre
  // On each side of a box, N, along its own axes: x_min, x_max, y_min ...; zero unless Collider::tractions is
  // on. A side gets what comes at places that are nearer to it than to the others.
  std::array<Vec3d, 6> side_force_N = {Vec3d::Zero(), Vec3d::Zero(), Vec3d::Zero(),
                                       Vec3d::Zero(), Vec3d::Zero(), Vec3d::Zero()};
};

struct FrameStats {
  double time_s = 0;
  uint64_t particles = 0, active_blocks = 0, steps = 0, sorts = 0;
  double mass_kg = 0;
  double mass_in_kg = 0, mass_out_kg = 0;  // by inflows and outflows, since the beginning
  Vec3d momentum = Vec3d::Zero();          // kg m/s
  Vec3d angular_momentum = Vec3d::Zero();  // kg m^2/s, about the world's origin; in 2-D along z
  double kinetic_J = 0, potential_J = 0;   // gravity's, zero at the domain's lowest corner
  double elastic_J = 0;                    // of all particles' deformation; where they yield it is lost
  double max_speed_m_s = 0;
  double max_wave_m_s = 0;  // of the fastest sound wave
  double dt_s = 0;          // of the frame's last step
  StepBound dt_bound = StepBound::kSpeed;
  std::vector<ColliderForce> colliders;
};

}  // namespace coppice::mpm
