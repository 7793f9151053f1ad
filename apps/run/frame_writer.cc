// Writes a frame's files (see frame_writer.h).
#include "apps/run/frame_writer.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "apps/mpm/snapshot_parts.h"
#include "apps/output/grid_vti.h"
#include "apps/output/particle_ply.h"
#include "apps/output/particle_vtu.h"
#include "apps/render/image.h"
#include "apps/render/movie.h"
#include "apps/run/frame_view.h"
#include "apps/run/scene_points.h"
#include "apps/run/stats_columns.h"
#include "apps/run/written_grid.h"
#include "apps/run/written_particles.h"
#include "core/error.h"
#include "core/log.h"
#include "core/trace.h"
#include "core/unfinished_file.h"

namespace coppice {
FrameWriter::FrameWriter(const scene::SceneConfig& scene, OutputFolder& folder,
                         std::optional<int64_t> last_written)
    : scene_(scene), folder_(folder), last_written_(last_written), pictures_(scene.output.png) {
  if (last_written_) pictures_written_ = static_cast<int>(*last_written_ + 1);
  if (pictures_) require_pictures();
}

// A frame, with what is read and computed for its files.
struct FrameWriter::Frame {
  int number;
  double time_s;
  const mpm::ParticleSnapshot& particles;
  WrittenParticles attributes;
  std::optional<WrittenGrid> grid = {};
  PointBox box = {};
  std::vector<GridArray> arrays = {};  // of `grid`, in the box
  std::optional<render::Image> picture = {};
};

void FrameWriter::begin() {
  folder_.prepare();
  std::vector<std::string> names;
  for (const StatsColumn& column : stats_columns(scene_, {}, {})) names.push_back(column.name);
  const std::string& folder = folder_.path();
  if (!last_written_) {
    log_.emplace(stats_csv_path(folder), std::move(names));
    if (scene_.output.vtu) vtu_series_.emplace(particles_pvd_path(folder));
    if (scene_.output.vti) vti_series_.emplace(grid_pvd_path(folder));
    return;
  }
  // Frame 0 has no grid.
  log_.emplace(stats_csv_path(folder), std::move(names), *last_written_ + 1);
  if (scene_.output.vtu) vtu_series_.emplace(particles_pvd_path(folder), *last_written_ + 1);
  if (scene_.output.vti) vti_series_.emplace(grid_pvd_path(folder), *last_written_);
}

void FrameWriter::write(mpm::Solver& solver, const mpm::FrameStats& s, double milliseconds) {
  const TraceScope trace("frame.write");
  const std::optional<mpm::SnapshotParts> parts = mpm::parts_to_write(scene_.output, pictures_);
  const mpm::ParticleSnapshot particles = parts ? solver.wait_snapshot_with(*parts) : mpm::ParticleSnapshot();
  Frame frame{solver.frame(), s.time_s, particles, {scene_, particles}};
  read_grid(solver, frame);
  if (pictures_) frame.picture = draw(particles, s.time_s);
  // All that can fail but the disk is done for the first frame: what an earlier run has left is set aside
  // now, and removed when the frame is on disk.
  if (!log_) begin();
  try {
    write_files(frame);
  } catch (const Error&) {
    folder_.require_in_place();  // says why, where the folder went meanwhile
    throw;
  }
  // The row comes last: a frame that has one has all its files.
  std::vector<double> row;
  for (const StatsColumn& column : stats_columns(scene_, s, {frame.number, milliseconds}))
    row.push_back(column.value);
  log_->write_row(row);
  folder_.remove_earlier();
}

void FrameWriter::read_grid(mpm::Solver& solver, Frame& frame) {
  // Before the first step the grid has no values.
  writes_vdb_ = scene_.output.vdb && scene_.dim == 3 && frame.number > 0;
  writes_vti_ = scene_.output.vti && frame.number > 0;
  if (!writes_vdb_ && !writes_vti_) return;
  frame.grid = wait_read_grid(solver, scene_.dim, {.velocity = writes_vti_ || scene_.output.fields.velocity},
                              frame.particles, frame.attributes);
  if (!writes_vti_) return;
  frame.box = frame.grid->box();
  frame.arrays = frame.grid->arrays(frame.box);
  require_vti_size(grid_vti_path(folder_.text(), frame.number), frame.box, frame.arrays);
}

void FrameWriter::write_files(const Frame& frame) {
  const std::string& folder = folder_.path();
  const int number = frame.number;
  // A frame without a row is none: when a signal ends the program before, the frame's files go.
  std::vector<UnfinishedFile> unfinished;
  const auto begin_file = [&](const std::string& path) {
    unfinished.emplace_back(path).note_made();
    return path;
  };
  if (scene_.output.particles) {
    write_particles_ply(begin_file(particles_ply_path(folder, number)), frame.attributes.all(),
                        frame.attributes.count(), describe_particles(scene_));
  }
  if (vtu_series_) {
    write_particles_vtu(begin_file(particles_vtu_path(folder, number)), frame.attributes.shown(),
                        frame.attributes.count(), {frame.time_s, frame.attributes.component_names()});
  }
  if (writes_vdb_) write_volume(*frame.grid, begin_file(density_vdb_path(folder, number)));
  if (writes_vti_) {
    Vec3f origin = frame.grid->blocks.origin;
    if (scene_.dim == 2) origin.z() = 0;  // where particles are
    write_grid_vti(begin_file(grid_vti_path(folder, number)),
                   {frame.box, origin, frame.grid->blocks.dx, frame.time_s}, frame.arrays);
  }
  if (frame.picture) {
    render::write_png(*frame.picture, begin_file(frame_png_path(folder, number)));
    ++pictures_written_;
  }
  unfinished.clear();
  const auto name = [](const std::string& path) { return std::filesystem::path(path).filename().string(); };
  if (vtu_series_) vtu_series_->add(name(particles_vtu_path(folder, number)), frame.time_s);
  if (writes_vti_) vti_series_->add(name(grid_vti_path(folder, number)), frame.time_s);
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
  const FrameView view = make_frame_view(scene_, particles, time_s);
  return renderer_->render(view.render);
}

void FrameWriter::write_volume(const WrittenGrid& grid, const std::string& path) {
  if (!vdb_) vdb_.emplace();
  const mpm::DensityBlocks& d = grid.blocks;
  std::vector<Vec3i> blocks(d.origins.size() / 3);
  for (size_t b = 0; b < blocks.size(); ++b)
    blocks[b] = Vec3i(d.origins[3 * b], d.origins[3 * b + 1], d.origins[3 * b + 2]);
  const VdbGrids more(grid);
  vdb_->write(path, {"density", d.dx, d.origin, 2, blocks, d.values, more.grids()});
}

void FrameWriter::finish() {
  if (pictures_ && scene_.output.mp4 && pictures_written_ >= 2) {
    render::wait_and_write_movie(
        {folder_.path(), "frame_%04d.png", 0, 1.0 / scene_.time.frame_dt_s, "ffmpeg"},
        movie_mp4_path(folder_.path()));
  }
  folder_.require_in_place();
  if (log_) log_->require_in_place();
  if (vtu_series_) vtu_series_->require_in_place();
  if (vti_series_) vti_series_->require_in_place();
}

}  // namespace coppice
