// Set-up, and what the next step has to reckon with (see solver_state.h).
#include "apps/mpm/solver_state.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "apps/mpm/inflow_pattern.h"
#include "apps/mpm/placed_mesh.h"
#include "core/machine_memory.h"
#include "core/start_ranks.h"
#include "gpu/host_access.h"

namespace coppice::mpm {

template <int D>
SolverState<D>::SolverState(IntrusivePtr<Device> on, const scene::SceneConfig& from, uint64_t most_emitted,
                            std::optional<Cluster> ranks)
    : device(std::move(on)),
      cluster(std::move(ranks)),
      scene(from),
      program(device),
      grid(device, scene.cells(), has_wide_nodes(scene), cluster),
      particles(device, cluster) {
  set_geometry(scene, arguments);
  const std::string_view name = device->name();
  // Over ranks each has a part of the particles and the grid, on as many devices and machines.
  const auto n_ranks = static_cast<uint64_t>(cluster ? cluster->n_ranks() : 1);
  const auto per_machine = static_cast<uint64_t>(std::max(launched_ranks_here().value_or(1), 1));
  const uint64_t n_machines = (n_ranks + per_machine - 1) / per_machine;
  const MemoryLimits limits{.device_bytes = device->memory_bytes() * n_ranks,
                            .machine_bytes = machine_memory_bytes() * n_machines,
                            .is_shared = name == "cpu" || name == "simt"};
  const EmittedParticles emitted = emit_particles(scene, limits);
  std::vector<ParticleStart> starts;
  for (size_t e = 0; e < scene.emitters.size(); ++e) {
    groups.push_back(make_group<D>(scene, scene.emitters[e], emitted.volume_factor[e]));
    starts.push_back(start_of(e, scene.emitters[e].velocity.template cast<float>()));
  }
  group_table = wait_device_copy(*device, groups);
  control_buffer = device->reserve(sizeof control, sizeof control);
  arguments.n_groups = static_cast<uint32_t>(groups.size());
  arguments.groups = group_table->as<Group<D>>();
  arguments.control = control_buffer->as<StepControl<D>>();
  set_colliders(scene, control);
  wait_add_meshes();
  particles.wait_add(emitted, starts, origin().template cast<float>());
  for (size_t e = 0; e < groups.size(); ++e)
    expect_particles(e, std::sqrt(static_cast<float>(scene.emitters[e].velocity.squaredNorm())));
  constexpr double kMostParticles = 0x1p32;  // ids are 32 bits
  most_particles = particles.num_everywhere() + most_emitted +
                   static_cast<uint64_t>(std::min(expected_inflow(scene), kMostParticles));
  double mass_kg = 0;
  for (const uint32_t e : emitted.emitter) mass_kg += groups[e].mass;
  float heaviest_kg = 0;
  for (const Group<D>& group : groups) heaviest_kg = std::max(heaviest_kg, group.mass);
  if (scene.has_inflow()) mass_kg += heaviest_kg * std::min(expected_inflow(scene), kMostParticles);
  uint32_t with_sides = 0;
  for (size_t c = 0; c < scene.colliders.size(); ++c) {
    const scene::Collider& collider = scene.colliders[c];
    if (collider.tractions && collider.shape == scene::ColliderShape::kBox) with_sides |= 1u << c;
  }
  forces.emplace(device, scene.colliders.size(), mass_kg, with_sides, cluster);
  arguments.impulses = forces->sums();
  arguments.per_impulse = forces->per_impulse();
  arguments.sides = forces->sides();
  arguments.with_sides = forces->with_sides();
}

template <int D>
void SolverState<D>::wait_add_meshes() {
  for (size_t i = 0; i < scene.colliders.size(); ++i) {
    scene::Collider& collider = scene.colliders[i];
    if (collider.shape != scene::ColliderShape::kMesh) continue;
    meshes.push_back(load_mesh_collider(scene, collider));
    collider.radius = meshes.back()->radius_m;
    const DistanceGrid& d = meshes.back()->distance;
    distances.push_back(wait_device_copy(*device, d.values));
    const DistanceField field{distances.back()->template as<float>(),
                              {d.nodes.x(), d.nodes.y(), d.nodes.z()},
                              {d.low.x(), d.low.y(), d.low.z()},
                              d.spacing_m,
                              1 / d.spacing_m};
    control.start[i].field = control.now[i].field = control.next[i].field = field;
  }
}

template <int D>
ColliderState<D> SolverState<D>::collider_on_host(uint32_t c) const {
  ColliderState<D> collider = control.now[c];
  if (collider.kind != ColliderKind::kMesh) return collider;
  const auto is_mesh = [](const scene::Collider& other) {
    return other.shape == scene::ColliderShape::kMesh;
  };
  const auto before = std::count_if(scene.colliders.begin(), scene.colliders.begin() + c, is_mesh);
  collider.field.values = meshes[static_cast<size_t>(before)]->distance.values.data();
  return collider;
}

template <int D>
ParticleStart SolverState<D>::start_of(size_t emitter, const Vec3f& velocity) const {
  const scene::Emitter& e = scene.emitters[emitter];
  ParticleStart start{velocity, initial_scalar(groups[emitter])};
  if (e.stiffness_spread > 0) {
    start.stiffness_spread = static_cast<float>(e.stiffness_spread);
    start.hardening = static_cast<float>(e.snow.hardening);
    start.seed = static_cast<uint64_t>(*e.seed);
  }
  return start;
}

template <int D>
void SolverState<D>::expect_particles(size_t emitter, float speed_m_s) {
  const auto material = static_cast<size_t>(scene.emitters[emitter].material_id);
  const double sound = scene::sound_speed_m_s(scene.materials[material]);
  // Bits of floats that are not negative order as integers do.
  control.max_speed_bits = std::max(control.max_speed_bits, std::bit_cast<uint32_t>(speed_m_s));
  control.max_modulus_bits =
      std::max(control.max_modulus_bits, std::bit_cast<uint32_t>(static_cast<float>(sound * sound)));
  control.drifted = 1;
}

template <int D>
double SolverState<D>::max_sound_m_s() const {
  return std::sqrt(std::bit_cast<float>(control.max_modulus_bits));
}

template <int D>
double SolverState<D>::cells_per_volume() const {
  return 1.0 / std::pow(scene.dx_m(), D);
}

template <int D>
StepArguments<D> SolverState<D>::step_arguments() const {
  StepArguments<D> a = arguments;
  a.particles = particles.arrays();
  a.starts = particles.starts() ? particles.starts()->template as<uint32_t>() : nullptr;
  return a;
}

template <int D>
void SolverState<D>::set_parameters(const scene::SceneConfig& from) {
  scene.gravity = from.gravity;
  scene.walls = from.walls;
  scene.time.cfl = from.time.cfl;
  scene.time.max_dt_s = from.time.max_dt_s;
  set_geometry(scene, arguments);
}

template struct SolverState<2>;
template struct SolverState<3>;

}  // namespace coppice::mpm
