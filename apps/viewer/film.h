// A film shows what a window showed, as somebody who looks on saw it: pictures at a fixed rate, and a
// movie of them.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "apps/output/output_folder.h"

namespace coppice::viewer {

// A plugin calls these functions alone.
class Film {
 public:
  static constexpr double kFps = 24;

  virtual ~Film() = default;
  // Returns whether the picture for this time, in seconds since the film began, is still missing.
  virtual bool is_due(double time_s) const = 0;
  // Adds the picture that is seen from then on until the next one: u8[height][width][4], rows from the
  // bottom; all have one size. Waits while many are still to be written. An error, as of a disk that is
  // full, ends the film, and is logged.
  virtual void add(double time_s, std::vector<uint8_t> rgba, int width, int height) noexcept = 0;
  // No picture follows any more; the movie is made meanwhile, where ffmpeg is installed.
  virtual void end() noexcept = 0;
};

// Writes folder/frame_0000.png ..., and folder/movie.mp4 at the end, on a thread of its own.
class FilmWriter final : public Film {
 public:
  // Errors: those of OutputFolder.
  explicit FilmWriter(std::filesystem::path folder);
  ~FilmWriter() override;  // ends it, and waits until all is written

  bool is_due(double time_s) const override { return index_at(time_s) >= next_; }
  void add(double time_s, std::vector<uint8_t> rgba, int width, int height) noexcept override;
  void end() noexcept override;

 private:
  struct Picture {
    std::vector<uint8_t> rgba;
    int width, height;
    int64_t index;
  };
  static constexpr size_t kMostWaiting = 8;

  static int64_t index_at(double time_s) { return static_cast<int64_t>(time_s * kFps); }
  void run();
  // Frames that have passed since the last picture, which was number `written` - 1, show that one again.
  void write(const Picture& picture, int64_t written) const;

  const std::filesystem::path folder_;
  OutputFolder claim_;
  int64_t next_ = 0;  // of whoever adds
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<Picture> waiting_;
  bool is_ended_ = false, has_failed_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace coppice::viewer
