// The parts of a solver work on this together: its scene, particles and grid, and what kernels and host tell
// each other about the steps.
//
// Thread-compatible.
#pragma once
#include <bit>
#include <memory>
#include <optional>
#include <vector>

#include "apps/mpm/block_grid.h"
#include "apps/mpm/collider_forces.h"
#include "apps/mpm/particle_store.h"
#include "apps/mpm/placed_mesh.h"
#include "apps/mpm/scene_setup.h"
#include "apps/scene/scene.h"
#include "sparse/program.h"

namespace coppice::mpm {

template <int D>
struct SolverState {
  // Samples the emitters and uploads the particles; waits for both. Over ranks each samples all of them and
  // keeps its share.
  SolverState(IntrusivePtr<Device> device, const scene::SceneConfig& scene, uint64_t most_emitted,
              std::optional<Cluster> cluster);

  Vec3d origin() const { return grid_origin(scene); }
  double max_speed_m_s() const { return std::bit_cast<float>(control.max_speed_bits); }  // of the last step
  double max_sound_m_s() const;
  double cells_per_volume() const;  // 1/m^D
  // Returns the arguments with the particles and bins as they are.
  StepArguments<D> step_arguments() const;

  // Takes gravity, walls, time.cfl and time.max_dt_s of another scene.
  void set_parameters(const scene::SceneConfig& from);
  // Returns what new particles of an emitter begin with.
  ParticleStart start_of(size_t emitter, const Vec3f& velocity) const;
  // Lets the next step reckon with new particles of an emitter that move so fast, and with their waves, and
  // the particles be sorted before it.
  void expect_particles(size_t emitter, float speed_m_s);
  void wait_upload_control() { device->wait_copy(control_buffer->data(), &control, sizeof control); }
  void wait_download_control() { device->wait_copy(&control, control_buffer->data(), sizeof control); }
  // Collider `c` as it is now, for the host to ask: in `control` a mesh's distances are device memory.
  ColliderState<D> collider_on_host(uint32_t c) const;

  IntrusivePtr<Device> device;
  const std::optional<Cluster> cluster;  // where there are ranks
  scene::SceneConfig scene;
  Program program;
  BlockGrid<D> grid;
  ParticleStore<D> particles;
  uint64_t n_blocks = 0;        // of the grid, since the last sorting
  uint64_t most_particles = 0;  // that hands and inflows may bring the solver to
  std::vector<Group<D>> groups;
  StepControl<D> control{};  // as on the device, but for what is written here before the next batch
  StepArguments<D> arguments{};
  IntrusivePtr<Buffer> group_table, control_buffer;
  std::vector<std::shared_ptr<const MeshColliderShape>> meshes;  // of colliders
  std::vector<IntrusivePtr<Buffer>> distances;                   // theirs, on the device
  std::optional<ColliderForces> forces;                          // from construction on

 private:
  void wait_add_meshes();
};

}  // namespace coppice::mpm
