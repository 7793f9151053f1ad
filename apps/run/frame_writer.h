// Writes a frame's files: picture, particles, volume, numbers; and the movie at the end.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/mpm/solver.h"
#include "apps/output/csv_log.h"
#include "apps/output/vdb_writer.h"
#include "apps/render/renderer.h"

namespace coppice {

class FrameWriter {
 public:
  // Prepares the folder. Errors: kUsage for pictures that are too large for the driver, before the folder is
  // touched; those of prepare_output_folder().
  FrameWriter(const scene::SceneConfig& scene, std::string folder, bool overwrite);

  // `s`: the solver's statistics of this frame; `milliseconds`: what it took to simulate.
  void write(mpm::Solver& solver, const mpm::FrameStats& s, double milliseconds);
  // The movie, when ffmpeg is there.
  void finish();

 private:
  void require_pictures();
  void write_picture(const mpm::ParticleSnapshot& particles, int frame, double time_s);
  void write_particles(const mpm::ParticleSnapshot& particles, int frame);
  void write_volume(mpm::Solver& solver, int frame);

  const scene::SceneConfig& scene_;
  std::string folder_;
  std::optional<CsvLog> log_;
  std::optional<render::Renderer> renderer_;
  std::optional<VdbWriter> vdb_;
  bool pictures_ = true;
  int pictures_written_ = 0;
};

}  // namespace coppice
