// Back ends without a window (see quiet_backends.h).
#include "apps/viewer/quiet_backends.h"

#include <fmt/format.h>

#include <chrono>

#include "apps/output/output_folder.h"
#include "apps/render/movie.h"

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

FileBackend::FileBackend(std::filesystem::path folder, bool overwrite, int width, int height)
    : folder_(std::move(folder)), width_(width), height_(height) {
  prepare_output_folder(folder_.string(), overwrite);
}

bool FileBackend::poll(Session& session) {
  session_ = &session;
  return QuietBackend::poll(session);
}

void FileBackend::show(std::shared_ptr<const Snapshot> snapshot) {
  const float aspect = static_cast<float>(width_) / static_cast<float>(height_);
  const render::Image image =
      renderer_.render(*snapshot, session_->first_camera(*snapshot, aspect), width_, height_);
  render::write_png(image, (folder_ / fmt::format("frame_{:04d}.png", written_)).string());
  ++written_;
}

void FileBackend::wait_make_movie(double fps) const {
  if (written_ > 1)
    render::wait_and_write_movie({folder_.string(), "frame_%04d.png", 0, fps, "ffmpeg"},
                                 movie_mp4_path(folder_.string()));
}

}  // namespace coppice::viewer
