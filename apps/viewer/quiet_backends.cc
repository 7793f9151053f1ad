// Back ends without a window (see quiet_backends.h).
#include "apps/viewer/quiet_backends.h"

#include <fmt/format.h>

#include <chrono>

#include "apps/render/movie.h"
#include "core/log.h"

namespace coppice::viewer {

void QuietBackend::wake() {
  {
    const std::lock_guard lock(mutex_);
    has_news_ = true;
  }
  news_.notify_one();
}

bool QuietBackend::poll(Session& session) {
  // Asked before the wait: what was shown by then has been taken since.
  const RunState state = session.status().state;
  if ((state == RunState::kEnded || state == RunState::kFailed) && !session.has_more()) return false;
  std::unique_lock lock(mutex_);
  news_.wait_for(lock, std::chrono::milliseconds(100), [&] { return has_news_; });
  has_news_ = false;
  return true;
}

FileBackend::FileBackend(const std::filesystem::path& folder, bool overwrite, int width, int height)
    : folder_(folder.string(), overwrite), width_(width), height_(height) {
  render::require_picture_size(width, height);
}

bool FileBackend::poll(Session& session) {
  session_ = &session;
  return QuietBackend::poll(session);
}

void FileBackend::show(std::shared_ptr<const Snapshot> snapshot) {
  const float aspect = static_cast<float>(width_) / static_cast<float>(height_);
  const render::Image image =
      renderer_.render(*snapshot, session_->first_camera(*snapshot, aspect), width_, height_);
  if (written_ == 0) folder_.prepare();
  last_ = snapshot->playback ? snapshot->playback->now : written_;
  if (written_++ == 0) first_ = last_;
  render::write_png(image, frame_png_path(folder_.path(), last_));
  folder_.remove_earlier();
}

void FileBackend::wait_finish(std::optional<double> fps) const {
  if (written_ > 0) folder_.require_in_place();
  log_info("{} picture{} in {}", written_, written_ == 1 ? " is" : "s are", folder_.text());
  if (!fps || written_ < 2) return;
  const std::string& folder = folder_.path();
  const std::string movie = movie_mp4_path(folder);
  if (last_ - first_ + 1 != written_)
    return log_info("no movie '{}': of the frames {} to {} some are missing", movie, first_, last_);
  render::wait_and_write_movie({folder, "frame_%04d.png", static_cast<int>(first_), *fps, "ffmpeg"}, movie);
}

}  // namespace coppice::viewer
