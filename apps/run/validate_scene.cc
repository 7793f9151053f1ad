// Does what comes before the first step (see validate_scene.h).
#include "apps/run/validate_scene.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "apps/mpm/emission.h"
#include "apps/mpm/inflow_pattern.h"
#include "apps/mpm/memory_need.h"
#include "apps/mpm/scene_setup.h"
#include "apps/mpm/step_length.h"
#include "apps/output/size_text.h"
#include "core/machine_memory.h"

namespace coppice {
namespace {

// "1104: 800 snow, 304 water"
std::string particles_text(const scene::SceneConfig& scene, const mpm::EmittedParticles& particles) {
  std::map<std::string, size_t> of_material;
  for (const uint32_t e : particles.emitter) {
    const scene::MaterialKind kind = scene.emitters[e].material;
    ++of_material[std::string(scene::enum_names(kind)[static_cast<size_t>(kind)])];
  }
  std::vector<std::string> parts;
  for (const auto& [name, count] : of_material) parts.push_back(fmt::format("{} {}", count, name));
  return parts.size() == 1 ? parts[0]
                           : fmt::format("{}: {}", particles.position.size(), fmt::join(parts, ", "));
}

std::string cells_text(const scene::SceneConfig& scene) {
  const Vec3i cells = scene.cells();
  const std::string sides = scene.dim == 2 ? fmt::format("{} x {}", cells.x(), cells.y())
                                           : fmt::format("{} x {} x {}", cells.x(), cells.y(), cells.z());
  return fmt::format("{} of {:.4g} m", sides, scene.dx_m());
}

std::string steps_text(const scene::SceneConfig& scene) {
  double speed_m_s = 0, sound_m_s = 0;
  for (const scene::Emitter& e : scene.emitters) speed_m_s = std::max(speed_m_s, e.velocity.norm());
  for (const scene::MaterialParameters& m : scene.materials)
    sound_m_s = std::max(sound_m_s, scene::sound_speed_m_s(m));
  const mpm::StepLength step = mpm::choose_step_length(scene, {.frame = 0,
                                                               .time_s = 0,
                                                               .remaining_s = scene.time.frame_dt_s,
                                                               .speed_m_s = speed_m_s,
                                                               .sound_m_s = sound_m_s,
                                                               .is_start = true});
  return fmt::format("{} of {:.4g} s, at first in {:.0f} steps of {:.3g} s each", scene.time.frames,
                     scene.time.frame_dt_s, std::round(scene.time.frame_dt_s / step.dt_s), step.dt_s);
}

// "emitter[0] 12.5 kg/s of water"
std::string inflow_text(const scene::SceneConfig& scene) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < scene.emitters.size(); ++i) {
    const scene::Emitter& e = scene.emitters[i];
    if (!e.inflow) continue;
    const double density = scene::density_kg_m3(scene.materials[static_cast<size_t>(e.material_id)]);
    parts.push_back(fmt::format("emitter[{}] {:.4g} kg/s of {}", i,
                                density * mpm::InflowPattern(scene, i).volume_per_s(),
                                scene::enum_names(e.material)[static_cast<size_t>(e.material)]));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::vector<cli::InfoLine> validate_scene(const cli::ValidateOptions& options) {
  const scene::SceneConfig& scene = options.scene;
  mpm::require_few_colliders(scene);
  const uint64_t machine_bytes = machine_memory_bytes();
  const mpm::EmittedParticles particles = mpm::emit_particles(scene, {.machine_bytes = machine_bytes});
  const double later = scene.outflows.empty() ? mpm::expected_inflow(scene) : 0;
  const mpm::MemoryNeed need =
      mpm::memory_need(scene, static_cast<double>(particles.position.size()) + later);
  std::vector<cli::InfoLine> lines{
      {"particles", particles_text(scene, particles)},
      {"cells", cells_text(scene)},
      {"frames", steps_text(scene)},
      {"memory",
       fmt::format("about {} for the simulation, and {} or more for its frames, of {}",
                   size_text(need.device_bytes), size_text(need.host_bytes), size_text(machine_bytes))}};
  if (scene.has_inflow()) lines.insert(lines.begin() + 1, {"inflow", inflow_text(scene)});
  return lines;
}

}  // namespace coppice
