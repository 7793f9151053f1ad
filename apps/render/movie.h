// An MP4 from a folder of numbered PNG frames, when ffmpeg is on the machine.
#pragma once

#include <string>

namespace coppice::render {

struct MovieOptions {
  std::string frames_folder;
  std::string pattern = "%04d.png";  // file names inside the folder, printf-style
  int first_frame = 0;
  double fps = 24.0;
  std::string ffmpeg = "ffmpeg";  // looked up in PATH unless it holds a slash
};

// Encodes the frames to H.264 at `path`, which appears whole or not at all; waits for ffmpeg. Returns whether
// there is a movie now; otherwise one line was logged (info: no ffmpeg; warning: it failed). Throws nothing:
// a movie is never worth a run.
bool wait_and_write_movie(const MovieOptions& options, const std::string& path) noexcept;

}  // namespace coppice::render
