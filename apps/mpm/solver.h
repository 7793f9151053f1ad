// The MLS-MPM solver: a scene's particles, advanced frame by frame on a device.
//
// Explicit time integration; snow, jelly, water and sand; a pointer.pointer.dense grid that is rebuilt as the material
// moves. Particles are sorted by block when one has drifted a cell. On the cpu device results do not depend on the
// number of threads. Thread-compatible.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "apps/scene/scene.h"
#include "core/math.h"
#include "gpu/device.h"

namespace coppice::mpm {

// Particles on the host, in the solver's order (by block). World coordinates.
struct ParticleSnapshot {
  std::vector<Vec3f> position;         // m
  std::vector<Vec3f> velocity;         // m/s
  std::vector<float> volume_ratio;     // det F; water: J
  std::vector<float> material_scalar;  // snow: plastic volume ratio; water: J; sand: volume correction
  std::vector<float> affine;           // [n][D][D], 1/s: APIC's C
  std::vector<float>
      deformation;          // [n][D][D]: elastic deformation gradient; water has none and keeps the identity
  std::vector<float> mass;  // kg
  std::vector<uint8_t> material;  // index into SceneConfig::materials
  std::vector<uint8_t> emitter;   // index into SceneConfig::emitters
};

// Mass per volume at the grid's nodes, block by block.
struct DensityBlocks {
  int block_size = 0;            // nodes per axis
  Vec3f origin = Vec3f::Zero();  // m, world position of node (0, 0, 0)
  float dx = 0;                  // m
  std::vector<int32_t> origins;  // [n_blocks][3] node coordinates
  std::vector<float> values;     // [n_blocks][block_size^D], kg/m^3 (kg/m^2 in 2-D); x slowest
};

struct FrameStats {
  double time_s = 0;
  uint64_t particles = 0, active_blocks = 0, steps = 0, sorts = 0;
  double mass_kg = 0;
  Vec3d momentum = Vec3d::Zero();         // kg m/s
  double kinetic_J = 0, potential_J = 0;  // gravity's, zero at the domain's lowest corner
  double max_speed_m_s = 0;
  double dt_s = 0;             // of the frame's last step
  bool dt_from_sound = false;  // the sound speed bounded it, not the material's own speed
};

class Solver {
 public:
  virtual ~Solver() = default;

  // Samples the emitters and uploads the particles. Errors: kInvalidArgument for particles outside the domain or an
  // emitter that yields none (with the emitter's place in the scene file), and what meshes bring.
  static std::unique_ptr<Solver> create(IntrusivePtr<Device> device, const scene::SceneConfig& scene);

  // Starts compiling every kernel of the solver; wait_ready() returns when they are there.
  virtual void wait_ready() = 0;
  // One frame further. Blocks. Errors: kNumeric when velocities stop being finite (names the frame and what to change).
  virtual void wait_advance_frame() = 0;
  virtual int frame() const = 0;
  virtual FrameStats wait_stats() = 0;
  virtual ParticleSnapshot wait_snapshot() = 0;
  virtual DensityBlocks wait_density() = 0;
  virtual uint64_t num_particles() const = 0;
  // What each launch of the solver's functions touches (Program::explain()). Launches nothing.
  virtual std::string explain_launches() = 0;
};

}  // namespace coppice::mpm
