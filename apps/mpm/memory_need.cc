// Estimates and refuses (see memory_need.h).
#include "apps/mpm/memory_need.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/mpm/scene_setup.h"
#include "apps/mpm/snapshot_parts.h"
#include "apps/mpm/solver_types.h"
#include "apps/output/size_text.h"
#include "core/error.h"
#include "core/log.h"

namespace coppice::mpm {
namespace {

constexpr double kLargeNeed_bytes = 1 << 30;  // is told before particles are sampled, which takes a while
constexpr double kMostBytes = 1e18;           // more is so much, too
constexpr double kPixelBytes = 48;            // of targets, what is read back, and the file; measured

template <int D>
double device_need(const scene::SceneConfig& scene, double particles) {
  // The attributes and the spare array, the keys, and the places, keys and counts of the sorting.
  const double particle_bytes = 4.0 * (Attribute<D>::kCount + 1 + 1 + 3);
  const double block_nodes = std::pow(kBlockSize<D>, D), tile_nodes = std::pow(kTileSize<D>, D);
  double cells = 0;
  for (const scene::Emitter& e : scene.emitters)
    cells += particles / static_cast<double>(scene.emitters.size()) / e.particles_per_cell;
  // A cube of the same volume reaches one and a half blocks further along each axis.
  const double side_blocks = std::pow(cells, 1.0 / D) / kBlockSize<D> + 1.5;
  const double values = has_wide_nodes(scene) ? 2 : 1;
  const double block_bytes = values * (block_nodes + tile_nodes) * sizeof(NodeValue) + 64;
  return particles * particle_bytes + std::pow(side_blocks, D) * block_bytes;
}

uint64_t bytes_of(double need) { return static_cast<uint64_t>(std::clamp(need, 0.0, kMostBytes)); }

[[noreturn]] void refuse(const std::string& what, uint64_t need, const char* whose, uint64_t limit,
                         const char* instead) {
  throw Error(ErrorCode::kOutOfMemory,
              fmt::format("the scene has {}, which need about {} of memory; {} has {}: take {}", what,
                          size_text(need), whose, size_text(limit), instead));
}

}  // namespace

MemoryNeed memory_need(const scene::SceneConfig& scene, double particles) {
  const bool has_pictures = scene.output.png && scene.time.frames > 0;
  const std::optional<SnapshotParts> parts = parts_to_write(scene.output, has_pictures);
  double snapshot_bytes = 0, drawn_bytes = has_pictures ? 60 : 0;
  if (parts) {
    const double matrices = (parts->affine ? 1 : 0) + (parts->deformation ? 1 : 0);
    const bool has_fields = parts->stress || scene.output.fields.strain;
    // It always has these, the places by id, and bytes of material and emitter; fields are computed from it.
    snapshot_bytes = 4.0 * 12 + 2 + 4.0 * matrices * scene.dim * scene.dim +
                     (has_fields ? 4.0 * scene.dim * (scene.dim + 1) : 0);
  }
  const double device = scene.dim == 2 ? device_need<2>(scene, particles) : device_need<3>(scene, particles);
  const double host = scene.time.frames == 0 ? 0 : particles * (snapshot_bytes + drawn_bytes);
  const double pictures = has_pictures ? kPixelBytes * scene.output.width * scene.output.height : 0;
  return {bytes_of(device), bytes_of(host + pictures), bytes_of(pictures)};
}

void require_memory(const scene::SceneConfig& scene, double particles, const MemoryLimits& limits) {
  const MemoryNeed need = memory_need(scene, particles);
  const std::string what = fmt::format("about {:.2g} particles", particles);
  constexpr const char* kFewer = "a coarser grid, fewer particles_per_cell, or smaller emitters";
  const uint64_t here = need.host_bytes + (limits.is_shared ? need.device_bytes : 0);
  if (here > limits.machine_bytes && need.picture_bytes > here / 2)
    refuse(fmt::format("{} and pictures of {} x {} pixels", what, scene.output.width, scene.output.height),
           here, "this machine", limits.machine_bytes, "smaller pictures, output.width and output.height");
  if (here > limits.machine_bytes) refuse(what, here, "this machine", limits.machine_bytes, kFewer);
  if (need.device_bytes > limits.device_bytes)
    refuse(what, need.device_bytes, "the device", limits.device_bytes, kFewer);
  if (static_cast<double>(std::max(need.device_bytes, need.picture_bytes)) < kLargeNeed_bytes) return;
  log_info("{}, which need about {} of memory{}", what, size_text(need.device_bytes),
           need.host_bytes > 0 ? fmt::format(", and {} for their frames", size_text(need.host_bytes)) : "");
}

}  // namespace coppice::mpm
