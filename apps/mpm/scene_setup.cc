// Groups, geometry and colliders of both dimensions (see scene_setup.h).
#include "apps/mpm/scene_setup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/scene/collider_motion.h"
#include "core/error.h"

namespace coppice::mpm {
namespace {

template <int D>
SmallMat<float, D> small_matrix(const Mat3f& r) {
  SmallMat<float, D> m{};
  for (int i = 0; i < D; ++i) {
    for (int j = 0; j < D; ++j) m.m[i * D + j] = r(i, j);
  }
  return m;
}

// Gives a collider the pose and velocities that its motion begins with.
template <int D>
void set_motion(const scene::Collider& from, const scene::RigidMotion& motion, const Vec3d& origin,
                ColliderState<D>& to) {
  AngularVelocity<float, D> omega{};
  if constexpr (D == 3)
    omega = small<3>(motion.angular_velocity_rad_s);
  else
    omega.v[0] = static_cast<float>(motion.angular_velocity_rad_s.z());
  const SmallVec<float, D> center = small<D>(motion.center - origin), velocity = small<D>(motion.velocity);
  const SmallMat<float, D> turned = small_matrix<D>(motion.world_from_local);
  const auto radius = static_cast<float>(from.radius), half_height = static_cast<float>(from.half_height);
  to.sphere = {center, radius, velocity, omega};
  to.box = {center, small<D>(from.half_size), turned, velocity, omega};
  to.plane = {center, turned * small<D>(from.normal), velocity, omega};
  to.capsule = {center, half_height, radius, turned, velocity, omega};
}

template <int D>
ColliderState<D> make_collider(const scene::Collider& from, const Vec3d& origin) {
  ColliderState<D> to{};
  to.kind = from.shape;
  to.boundary = from.boundary;
  to.friction = static_cast<float>(from.friction);
  set_motion(from, scene::motion_at(from, 0), origin, to);
  return to;
}

template <int D, class Parameters>
Clay<float, D> make_clay(const Parameters& p) {
  return Clay<float, D>::from_young(static_cast<float>(p.youngs_modulus_Pa),
                                    static_cast<float>(p.poisson_ratio),
                                    static_cast<float>(p.yield_stress_Pa));
}

// By so much of its error J is mended while a wave crosses a cell. A pool at rest and one that sloshed keep
// their depth within 2 % for 20 s with anything from 0.02 to 1; noise of the pressure is least with 0.3.
constexpr double kRelaxedPerCell = 0.3;

// Mass at a node tells how full the space is if all there is has the same density. Else volumes are added up.
bool is_of_one_density(const scene::SceneConfig& scene) {
  const auto density = [&](const scene::Emitter& e) {
    return scene::density_kg_m3(scene.materials[static_cast<size_t>(e.material_id)]);
  };
  return std::ranges::all_of(
      scene.emitters, [&](const scene::Emitter& e) { return density(e) == density(scene.emitters.front()); });
}

}  // namespace

Vec3d grid_origin(const scene::SceneConfig& scene) {
  return scene.domain.min - Vec3d::Constant(kPad * scene.dx_m());
}

bool has_wide_nodes(const scene::SceneConfig& scene) {
  const bool has_water = std::ranges::any_of(
      scene.emitters, [](const scene::Emitter& e) { return e.material == scene::MaterialKind::kWater; });
  return scene.solver.transfer == scene::Transfer::kAflip || (has_water && !is_of_one_density(scene));
}

template <int D>
Group<D> make_group(const scene::SceneConfig& scene, const scene::Emitter& e, double volume_factor) {
  const scene::MaterialParameters& m = scene.materials[static_cast<size_t>(e.material_id)];
  Group<D> g{};
  g.kind = scene::kind_of_material(m);
  g.density = static_cast<float>(scene::density_kg_m3(m));
  g.volume = static_cast<float>(volume_factor * std::pow(scene.dx_m(), D) / e.particles_per_cell);
  g.mass = g.density * g.volume;
  g.cell_share = static_cast<float>(1.0 / e.particles_per_cell);
  g.jelly = Jelly<float, D>::from_young(static_cast<float>(e.jelly.youngs_modulus_Pa),
                                        static_cast<float>(e.jelly.poisson_ratio));
  g.snow = Snow<float, D>::from_young(static_cast<float>(e.snow.youngs_modulus_Pa),
                                      static_cast<float>(e.snow.poisson_ratio));
  g.snow.critical_compression = static_cast<float>(e.snow.theta_c);
  g.snow.critical_stretch = static_cast<float>(e.snow.theta_s);
  g.snow.hardening = static_cast<float>(e.snow.hardening);
  g.water = Water<float, D>::from_bulk_modulus(static_cast<float>(e.water.bulk_modulus_Pa));
  g.water.gamma = static_cast<float>(e.water.gamma);
  g.water.tension = static_cast<float>(e.water.tension);
  g.water.viscosity = static_cast<float>(e.water.viscosity_Pa_s);
  if (g.kind == MaterialKind::kWater) {
    // A cell that is full of these particles is at rest, whatever their masses were scaled by.
    g.per_density = static_cast<float>(1 / (volume_factor * g.density * std::pow(scene.dx_m(), D)));
    g.water.relaxation = static_cast<float>(kRelaxedPerCell * scene::sound_speed_m_s(m) / scene.dx_m());
  }
  g.sand = Sand<float, D>::from_young(static_cast<float>(e.sand.youngs_modulus_Pa),
                                      static_cast<float>(e.sand.poisson_ratio),
                                      static_cast<float>(e.sand.friction_angle_deg * M_PI / 180.0));
  if (g.kind == MaterialKind::kMud) {
    g.clay = make_clay<D>(e.mud);
    g.clay.viscosity = static_cast<float>(e.mud.viscosity_Pa_s);
  } else {
    g.clay = make_clay<D>(e.clay);
  }
  return g;
}

template <int D>
float initial_scalar(const Group<D>& g) {
  return with_material(
      g, []<class Material>(const Material&) { return static_cast<float>(Material::kInitialScalar); });
}

template <int D>
void set_geometry(const scene::SceneConfig& scene, StepArguments<D>& a) {
  a.dx = static_cast<float>(scene.dx_m());
  a.inv_dx = 1.0f / a.dx;
  const Vec3i cells = scene.cells();
  const Vec3d size_cells = scene.size_cells();
  for (int axis = 0; axis < D; ++axis) {
    a.cells[axis] = cells[axis];
    a.high_wall[axis] = static_cast<float>(kPad + size_cells[axis]);
    a.gravity[axis] = static_cast<float>(scene.gravity[axis]);
    a.walls[2 * axis] = scene.walls.sides[static_cast<size_t>(2 * axis)];
    a.walls[2 * axis + 1] = scene.walls.sides[static_cast<size_t>(2 * axis + 1)];
  }
  a.wall_friction = static_cast<float>(scene.walls.friction);
  a.flip = scene.solver.transfer == scene::Transfer::kAflip ? static_cast<float>(scene.solver.flip) : 0.0f;
}

void require_few_colliders(const scene::SceneConfig& scene) {
  if (scene.colliders.size() <= kMaxColliders) return;
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("{} colliders; at most {} are possible", scene.colliders.size(), kMaxColliders),
              scene.origin.table);
}

template <int D>
void set_motions(const scene::SceneConfig& scene, double time_s, StepControl<D>& c) {
  for (size_t i = 0; i < scene.colliders.size(); ++i) {
    const scene::Collider& collider = scene.colliders[i];
    if (collider.keyframes.empty()) continue;
    const scene::RigidMotion motion = scene::motion_at(collider, time_s);
    if (motion.start_s == c.start_s[i]) continue;
    set_motion(collider, motion, grid_origin(scene), c.start[i]);
    c.start_s[i] = motion.start_s;
    c.now[i] = c.start[i];
  }
}

template <int D>
void set_colliders(const scene::SceneConfig& scene, StepControl<D>& c) {
  require_few_colliders(scene);
  c.n_colliders = static_cast<uint32_t>(scene.colliders.size());
  for (size_t i = 0; i < scene.colliders.size(); ++i)
    c.start[i] = c.now[i] = c.next[i] = make_collider<D>(scene.colliders[i], grid_origin(scene));
}

template Group<2> make_group<2>(const scene::SceneConfig&, const scene::Emitter&, double);
template Group<3> make_group<3>(const scene::SceneConfig&, const scene::Emitter&, double);
template float initial_scalar<2>(const Group<2>&);
template float initial_scalar<3>(const Group<3>&);
template void set_geometry<2>(const scene::SceneConfig&, StepArguments<2>&);
template void set_geometry<3>(const scene::SceneConfig&, StepArguments<3>&);
template void set_motions<2>(const scene::SceneConfig&, double, StepControl<2>&);
template void set_motions<3>(const scene::SceneConfig&, double, StepControl<3>&);
template void set_colliders<2>(const scene::SceneConfig&, StepControl<2>&);
template void set_colliders<3>(const scene::SceneConfig&, StepControl<3>&);

}  // namespace coppice::mpm
