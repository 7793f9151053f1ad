// Writes a frame's files (see frame_writer.h).
#include "apps/run/frame_writer.h"

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "apps/output/grid_vti.h"
#include "apps/output/row_file.h"
#include "apps/render/image.h"
#include "apps/render/movie.h"
#include "apps/run/frame_view.h"
#include "apps/run/stats_columns.h"
#include "core/error.h"
#include "core/log.h"
#include "core/trace.h"

namespace coppice {
FrameWriter::FrameWriter(const scene::SceneConfig& scene, OutputFolder& folder,
                         std::optional<int64_t> last_written)
    : scene_(scene), folder_(folder), last_written_(last_written), part_(scene), pictures_(scene.output.png) {
  if (last_written_) pictures_written_ = static_cast<int>(*last_written_ + 1);
  if (pictures_) require_pictures();
}

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
  read(solver);
  // All that can fail but the disk is done for the first frame: what an earlier run has left is set aside
  // now, and removed when the frame is on disk.
  if (!log_) {
    if (pictures_) draw(s.time_s);
    begin();
  }
  try {
    write_files(solver, s.time_s);
  } catch (const Error&) {
    folder_.require_in_place();  // says why, where the folder went meanwhile
    throw;
  }
  // The row comes last: a frame that has one has all its files.
  std::vector<double> row;
  for (const StatsColumn& column : stats_columns(scene_, s, {solver.frame(), milliseconds}))
    row.push_back(column.value);
  log_->write_row(row);
  folder_.remove_earlier();
}

void FrameWriter::read(mpm::Solver& solver) {
  // Before the first step the grid has no values.
  const FrameNeeds needs{pictures_, scene_.output.vdb && scene_.dim == 3 && solver.frame() > 0,
                         scene_.output.vti && solver.frame() > 0};
  solver.wait_together(FramePart::to_read(needs), [&](mpm::SolverPart& own) { part_.wait_read(own, needs); });
  writes_vdb_ = needs.vdb && part_.writes_volumes();
  writes_vti_ = needs.vti;
  if (writes_vti_)
    require_vti_size(grid_vti_path(folder_.text(), solver.frame()), part_.box(), part_.arrays());
}

std::vector<FrameWriter::SharedFile> FrameWriter::make_files(int frame) {
  std::vector<SharedFile> files;
  const auto make = [&](FrameFileKind kind, const std::string& path) {
    UnfinishedFile unfinished(path);
    unfinished.note_made();
    AtomicFile file(path);
    if (const std::optional<RowFile> rows = part_.layout(kind, path)) file.set_size(rows->size_bytes());
    files.push_back({kind, std::move(file), std::move(unfinished)});
  };
  const std::string& folder = folder_.path();
  if (scene_.output.particles) make(FrameFileKind::kPly, particles_ply_path(folder, frame));
  if (vtu_series_) make(FrameFileKind::kVtu, particles_vtu_path(folder, frame));
  if (writes_vdb_) make(FrameFileKind::kVdb, density_vdb_path(folder, frame));
  if (writes_vti_) make(FrameFileKind::kVti, grid_vti_path(folder, frame));
  return files;
}

void FrameWriter::write_files(mpm::Solver& solver, double time_s) {
  std::vector<SharedFile> files = make_files(solver.frame());
  FrameFiles names;
  for (const SharedFile& f : files)
    names.names[static_cast<size_t>(f.kind)] = {f.file.path(), f.file.temporary_path()};
  solver.wait_together(FramePart::to_write(names), [&](mpm::SolverPart& own) {
    part_.wait_write(own, names, [&] {
      if (pictures_ && !picture_) draw(time_s);
    });
  });
  commit(files, solver.frame());
  const std::string& folder = folder_.path();
  const auto name = [](const std::string& path) { return std::filesystem::path(path).filename().string(); };
  if (vtu_series_) vtu_series_->add(name(particles_vtu_path(folder, solver.frame())), time_s);
  if (writes_vti_) vti_series_->add(name(grid_vti_path(folder, solver.frame())), time_s);
}

void FrameWriter::commit(std::vector<SharedFile>& files, int frame) {
  std::vector<std::string> done;
  UnfinishedFile unfinished;
  try {
    for (SharedFile& f : files) {
      f.file.commit();
      done.push_back(f.file.path());
    }
    // It is a frame's last file, as the row is what says that all of them are there.
    if (picture_) {
      const std::string png = frame_png_path(folder_.path(), frame);
      unfinished = UnfinishedFile(png);
      unfinished.note_made();
      render::write_png(*picture_, png);
      picture_.reset();
      ++pictures_written_;
    }
  } catch (const Error&) {
    std::error_code status;
    for (const std::string& path : done)
      if (std::filesystem::is_regular_file(path, status)) std::filesystem::remove(path, status);
    throw;
  }
  unfinished.forget();
  for (SharedFile& f : files) f.unfinished.forget();
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

void FrameWriter::draw(double time_s) {
  const TraceScope trace("frame.draw");
  if (!renderer_) renderer_.emplace(scene_.output.width, scene_.output.height);
  picture_ = renderer_->render(make_frame_view(scene_, part_.shown(), time_s));
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
