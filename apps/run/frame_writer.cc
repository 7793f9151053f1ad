// Writes a frame's files (see frame_writer.h).
#include "apps/run/frame_writer.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "apps/output/particle_ply.h"
#include "apps/render/image.h"
#include "apps/render/movie.h"
#include "apps/run/frame_view.h"
#include "apps/run/scene_points.h"
#include "core/error.h"
#include "core/log.h"
#include "core/trace.h"
#include "core/unfinished_file.h"

namespace coppice {
namespace {

// Indices are bytes in files where all there may be are.
constexpr size_t kMostOfBytes = 256;
PlyAttribute indices(std::string name, const std::vector<uint32_t>& values, size_t end,
                     std::vector<uint8_t>& bytes) {
  if (end > kMostOfBytes) return {std::move(name), PlyType::kInt32, 1, values.data()};
  bytes.assign(values.begin(), values.end());
  return {std::move(name), PlyType::kUint8, 1, bytes.data()};
}

}  // namespace

FrameWriter::FrameWriter(const scene::SceneConfig& scene, OutputFolder& folder)
    : scene_(scene), folder_(folder), pictures_(scene.output.png) {
  if (pictures_) require_pictures();
}

void FrameWriter::begin() {
  folder_.prepare();
  std::vector<std::string> columns{
      "frame",     "time_s",      "particles",         "active_blocks",     "steps",
      "dt_s",      "mass_kg",     "momentum_x_kg_m_s", "momentum_y_kg_m_s", "momentum_z_kg_m_s",
      "kinetic_J", "potential_J", "max_speed_m_s",     "milliseconds"};
  for (size_t i = 0; i < scene_.colliders.size(); ++i) {
    for (const char axis : {'x', 'y', 'z'}) columns.push_back(fmt::format("collider{}_force_{}_N", i, axis));
    for (const char axis : {'x', 'y', 'z'})
      columns.push_back(fmt::format("collider{}_torque_{}_N_m", i, axis));
  }
  log_.emplace(stats_csv_path(folder_.path()), std::move(columns));
}

void FrameWriter::write(mpm::Solver& solver, const mpm::FrameStats& s, double milliseconds) {
  const TraceScope trace("frame.write");
  const int frame = solver.frame();
  const mpm::ParticleSnapshot particles = solver.wait_snapshot();
  std::optional<render::Image> picture;
  if (pictures_) picture = draw(particles, s.time_s);
  // All that can fail but the disk is done for the first frame: what an earlier run has left is set aside
  // now, and removed when the frame is on disk.
  if (!log_) begin();
  // A frame without a row is none: when a signal ends the program before, the frame's files go.
  std::vector<UnfinishedFile> unfinished;
  const auto begin_file = [&](const std::string& path) { unfinished.emplace_back(path).note_made(); };
  if (scene_.output.particles) {
    begin_file(particles_ply_path(folder_.path(), frame));
    write_particles(particles, frame);
  }
  if (scene_.output.vdb && scene_.dim == 3 && frame > 0) {
    begin_file(density_vdb_path(folder_.path(), frame));
    write_volume(solver, frame);
  }
  if (picture) {
    begin_file(frame_png_path(folder_.path(), frame));
    render::write_png(*picture, frame_png_path(folder_.path(), frame));
    ++pictures_written_;
  }
  // The row comes last: a frame that has one has all its files.
  unfinished.clear();
  std::vector<double> row{static_cast<double>(frame),
                          s.time_s,
                          static_cast<double>(s.particles),
                          static_cast<double>(s.active_blocks),
                          static_cast<double>(s.steps),
                          s.dt_s,
                          s.mass_kg,
                          s.momentum.x(),
                          s.momentum.y(),
                          s.momentum.z(),
                          s.kinetic_J,
                          s.potential_J,
                          s.max_speed_m_s,
                          milliseconds};
  for (const mpm::ColliderForce& c : s.colliders) {
    row.insert(row.end(), c.force_N.begin(), c.force_N.end());
    row.insert(row.end(), c.torque_N_m.begin(), c.torque_N_m.end());
  }
  log_->write_row(row);
  folder_.remove_earlier();
}

void FrameWriter::require_pictures() {
  try {
    render::require_picture_size(scene_.output.width, scene_.output.height);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable) throw;
    // A machine without OpenGL still simulates; particles and volumes are written all the same.
    log_warning("no pictures: {}", error.what());
    pictures_ = false;
  }
}

render::Image FrameWriter::draw(const mpm::ParticleSnapshot& particles, double time_s) {
  if (!renderer_) renderer_.emplace(scene_.output.width, scene_.output.height);
  return renderer_->render(make_frame_view(scene_, particles, time_s).render);
}

void FrameWriter::write_particles(const mpm::ParticleSnapshot& p, int frame) {
  const int matrix = scene_.dim * scene_.dim;
  std::vector<uint8_t> materials, emitters;
  const std::array<PlyAttribute, 9> attributes{{
      {"position", PlyType::kFloat32, 3, p.position.data()},
      {"velocity", PlyType::kFloat32, 3, p.velocity.data()},
      {"volume_ratio", PlyType::kFloat32, 1, p.volume_ratio.data()},
      {"material_scalar", PlyType::kFloat32, 1, p.material_scalar.data()},
      {"affine", PlyType::kFloat32, matrix, p.affine.data()},
      {"deformation", PlyType::kFloat32, matrix, p.deformation.data()},
      {"mass", PlyType::kFloat32, 1, p.mass.data()},
      indices("material", p.material, scene_.materials.size(), materials),
      indices("emitter", p.emitter, scene_.emitters.size(), emitters),
  }};
  write_particles_ply(particles_ply_path(folder_.path(), frame), attributes,
                      static_cast<int64_t>(p.position.size()), describe_particles(scene_));
}

void FrameWriter::write_volume(mpm::Solver& solver, int frame) {
  if (!vdb_) vdb_.emplace();
  const mpm::DensityBlocks d = solver.wait_density();
  std::vector<Vec3i> blocks(d.origins.size() / 3);
  for (size_t b = 0; b < blocks.size(); ++b)
    blocks[b] = Vec3i(d.origins[3 * b], d.origins[3 * b + 1], d.origins[3 * b + 2]);
  vdb_->write(density_vdb_path(folder_.path(), frame), {"density", d.dx, d.origin, 2, blocks, d.values});
}

void FrameWriter::finish() {
  if (pictures_ && scene_.output.mp4 && pictures_written_ >= 2) {
    render::wait_and_write_movie(
        {folder_.path(), "frame_%04d.png", 0, 1.0 / scene_.time.frame_dt_s, "ffmpeg"},
        movie_mp4_path(folder_.path()));
  }
  folder_.require_in_place();
  if (log_) log_->require_in_place();
}

}  // namespace coppice
