// Back ends without a window show snapshots nowhere, or write picture files.
#pragma once
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>

#include "apps/output/output_folder.h"
#include "apps/viewer/backend.h"
#include "apps/viewer/still_picture.h"

namespace coppice::viewer {

// Waits for news, and ends when the simulation has ended or failed.
class QuietBackend : public ViewerBackend {
 public:
  bool wants_snapshot() const override { return true; }
  bool poll(Session& session) override;
  void wake() override;

 private:
  std::mutex mutex_;
  std::condition_variable news_;
  bool has_news_ = false;
};

// Takes every snapshot and drops it: for tests of programs, and for measuring what the viewer itself costs.
class NullBackend final : public QuietBackend {
 public:
  void show(std::shared_ptr<const Snapshot>) override { ++shown_; }
  uint64_t shown() const { return shown_; }

 private:
  uint64_t shown_ = 0;
};

// Writes each snapshot as frame_0000.png and so on, in the quality of `coppice run`; a recorded run keeps
// the numbers of its frames. Used with SimulationThreadOptions::shows_every_frame.
class FileBackend final : public QuietBackend {
 public:
  // The folder is touched when the first picture is drawn: it is made where it is not there, and emptied
  // of an earlier run's outputs where they may be overwritten. Errors: those of require_picture_size()
  // and of OutputFolder.
  FileBackend(const std::filesystem::path& folder, bool overwrite, int width, int height);

  bool poll(Session& session) override;
  // Errors: those of the renderer, and of OutputFolder::prepare(); kIo.
  void show(std::shared_ptr<const Snapshot> snapshot) override;
  // Logs one line that says how many pictures are where. With `fps` it also makes a movie.mp4 of them,
  // where there are two, none is missing between them and ffmpeg is installed; else one line says why
  // not.
  void wait_finish(std::optional<double> fps) const;

 private:
  OutputFolder folder_;
  const int width_, height_;
  int written_ = 0;
  int64_t first_ = 0, last_ = 0;  // numbers of the frames that were written
  Session* session_ = nullptr;
  StillRenderer renderer_;
};

}  // namespace coppice::viewer
