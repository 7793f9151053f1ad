// Back ends without a window: nowhere, and picture files.
#pragma once
#include <condition_variable>
#include <filesystem>
#include <memory>
#include <mutex>

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

// Writes each snapshot as frame_0000.png and so on, in the quality of `coppice run`. Used with
// SimulationThreadOptions::shows_every_frame.
class FileBackend final : public QuietBackend {
 public:
  // The folder is made where it is not there. Errors: kIo; kUsage where an earlier run's outputs are in it, unless they may
  // be overwritten: they are removed then; those of the renderer, at the first picture.
  FileBackend(std::filesystem::path folder, bool overwrite, int width, int height);

  bool poll(Session& session) override;
  void show(std::shared_ptr<const Snapshot> snapshot) override;
  int written() const { return written_; }
  // A movie.mp4 of them, where there are two and ffmpeg is installed; else one line says so.
  void wait_make_movie(double fps) const;

 private:
  const std::filesystem::path folder_;
  const int width_, height_;
  int written_ = 0;
  Session* session_ = nullptr;
  StillRenderer renderer_;
};

}  // namespace coppice::viewer
