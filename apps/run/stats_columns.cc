// Columns of stats.csv (see stats_columns.h).
#include "apps/run/stats_columns.h"

#include <fmt/format.h>

#include "apps/run/tractions.h"

namespace coppice {
namespace {

// Adds a vector's three numbers, "momentum_x_kg_m_s" and so on.
void add_vector(std::vector<StatsColumn>& to, const std::string& name, const std::string& unit,
                const Vec3d& value) {
  for (int axis = 0; axis < 3; ++axis)
    to.push_back({fmt::format("{}_{}_{}", name, "xyz"[axis], unit), value[axis]});
}

}  // namespace

std::vector<StatsColumn> stats_columns(const scene::SceneConfig& scene, const mpm::FrameStats& s,
                                       const WrittenFrame& frame) {
  std::vector<StatsColumn> all{{"frame", static_cast<double>(frame.number)},
                               {"time_s", s.time_s},
                               {"particles", static_cast<double>(s.particles)},
                               {"active_blocks", static_cast<double>(s.active_blocks)},
                               {"steps", static_cast<double>(s.steps)},
                               {"dt_s", s.dt_s},
                               {"mass_kg", s.mass_kg}};
  add_vector(all, "momentum", "kg_m_s", s.momentum);
  add_vector(all, "angular_momentum", "kg_m2_s", s.angular_momentum);
  all.insert(all.end(), {{"kinetic_J", s.kinetic_J},
                         {"potential_J", s.potential_J},
                         {"elastic_J", s.elastic_J},
                         {"max_speed_m_s", s.max_speed_m_s},
                         {"milliseconds", frame.milliseconds}});
  if (scene.has_flow()) all.insert(all.end(), {{"mass_in_kg", s.mass_in_kg}, {"mass_out_kg", s.mass_out_kg}});
  for (size_t i = 0; i < scene.colliders.size(); ++i) {
    const mpm::ColliderForce force = i < s.colliders.size() ? s.colliders[i] : mpm::ColliderForce();
    add_vector(all, fmt::format("collider{}_force", i), "N", force.force_N);
    add_vector(all, fmt::format("collider{}_torque", i), "N_m", force.torque_N_m);
    add_tractions(scene, i, force, s.time_s, all);
  }
  return all;
}

}  // namespace coppice
