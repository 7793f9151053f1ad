// Pictures of a window, written while it goes on (see film.h).
#include "apps/viewer/film.h"

#include <fmt/format.h>

#include <algorithm>

#include "apps/render/image.h"
#include "apps/render/movie.h"
#include "core/log.h"

namespace coppice::viewer {

FilmWriter::FilmWriter(std::filesystem::path folder)
    : folder_(std::move(folder)), claim_(folder_.string(), false) {
  claim_.prepare();
  thread_ = std::thread([this] { run(); });
}

FilmWriter::~FilmWriter() {
  end();
  thread_.join();
}

void FilmWriter::add(double time_s, std::vector<uint8_t> rgba, int width, int height) noexcept {
  if (!is_due(time_s)) return;
  next_ = index_at(time_s) + 1;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.size() < kMostWaiting || has_failed_; });
  if (!is_ended_ && !has_failed_) waiting_.push_back({std::move(rgba), width, height, next_ - 1});
  changed_.notify_all();
}

void FilmWriter::end() noexcept {
  const std::lock_guard lock(mutex_);
  is_ended_ = true;
  changed_.notify_all();
}

void FilmWriter::write(const Picture& picture, int64_t written) const {
  const auto file = [&](int64_t i) { return frame_png_path(claim_.path(), i); };
  for (int64_t i = written; written > 0 && i < picture.index; ++i)
    std::filesystem::copy_file(file(written - 1), file(i));
  render::Image image(picture.width, picture.height);
  std::ranges::copy(picture.rgba, image.bytes().begin());
  for (size_t i = 3; i < image.bytes().size(); i += 4) image.bytes()[i] = 255;
  image.flip_rows();
  // The first one is seen from the beginning.
  for (int64_t i = written == 0 ? 0 : picture.index; i <= picture.index; ++i)
    render::write_png(image, file(i));
}

void FilmWriter::run() {
  int64_t written = 0;
  try {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !waiting_.empty() || is_ended_; });
      if (waiting_.empty()) break;
      Picture next = std::move(waiting_.front());
      waiting_.pop_front();
      changed_.notify_all();
      lock.unlock();
      write(next, written);
      written = next.index + 1;
    }
    claim_.require_in_place();
    log_info("{} picture{} in {}", written, written == 1 ? " of the window is" : "s of the window are",
             claim_.text());
    if (written > 1)
      render::wait_and_write_movie({claim_.path(), "frame_%04d.png", 0, kFps, "ffmpeg"},
                                   movie_mp4_path(claim_.path()));
  } catch (const std::exception& e) {
    log_warning("the film in {} ends here: {}", folder_.string(), e.what());
    const std::lock_guard lock(mutex_);
    has_failed_ = true;
    changed_.notify_all();
  }
}

}  // namespace coppice::viewer
