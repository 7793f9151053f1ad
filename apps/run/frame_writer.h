// Writes a frame's files: picture, particles, volume, numbers; and the movie at the end. Over ranks the first
// one does, and has the others write their parts (frame_part.h).
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/mpm/solver.h"
#include "apps/output/csv_log.h"
#include "apps/output/output_folder.h"
#include "apps/output/pvd_log.h"
#include "apps/render/renderer.h"
#include "apps/run/frame_part.h"
#include "core/atomic_file.h"
#include "core/unfinished_file.h"

namespace coppice {

class FrameWriter {
 public:
  // `folder` is touched by the first write() alone. A run that goes on behind frame `last_written` goes on
  // with the tables that are there. Errors: kUsage for pictures that are too large for the driver.
  FrameWriter(const scene::SceneConfig& scene, OutputFolder& folder,
              std::optional<int64_t> last_written = {});

  // `s`: the solver's statistics of this frame; `milliseconds`: what it took to simulate. The first one
  // prepares the folder when its picture is drawn. Errors: those of OutputFolder::prepare(), and kIo.
  void write(mpm::Solver& solver, const mpm::FrameStats& s, double milliseconds);
  // Makes the movie, when ffmpeg is there. Errors: kIo when the folder or its table is gone by now.
  void finish();

 private:
  void require_pictures();
  // A file that all ranks write, with its name, which goes where a signal ends the program before the frame
  // has its row.
  struct SharedFile {
    FrameFileKind kind;
    AtomicFile file;
    UnfinishedFile unfinished;
  };

  void begin();
  // Has all ranks read what they write. Errors: kInvalidArgument for a box that is too large for a file.
  void read(mpm::Solver& solver);
  std::vector<SharedFile> make_files(int frame);
  void write_files(mpm::Solver& solver, double time_s);
  // Puts a frame's files in place, with its picture: all of them, or none where one cannot be written.
  void commit(std::vector<SharedFile>& files, int frame);
  void draw(double time_s);

  const scene::SceneConfig& scene_;
  OutputFolder& folder_;
  std::optional<int64_t> last_written_;
  std::optional<CsvLog> log_;
  std::optional<render::Renderer> renderer_;
  FramePart part_;
  std::optional<render::Image> picture_;           // of this frame, once it is drawn
  std::optional<PvdLog> vtu_series_, vti_series_;  // from begin() on, where such files are written
  bool pictures_ = true;
  bool writes_vdb_ = false, writes_vti_ = false;  // of this frame
  int pictures_written_ = 0;
};

}  // namespace coppice
