// Pictures one after another, in a context of the thread's own (see still_thread.h).
#include "apps/viewer/still_thread.h"

#include <utility>

#include "apps/viewer/simulation_thread.h"

namespace coppice::viewer {

StillThread::StillThread(std::function<void()> on_done)
    : on_done_(std::move(on_done)), thread_([this] { run(); }) {}

StillThread::~StillThread() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    is_wanted_ = false;
  }
  asked_.notify_all();
  thread_.join();
}

void StillThread::ask(uint64_t number, std::shared_ptr<const Snapshot> snapshot, const render::Camera& camera,
                      const ViewOptions& options, int width, int height) {
  std::optional<Request> request(std::in_place,
                                 Request{number, std::move(snapshot), camera, options, width, height});
  const std::lock_guard lock(mutex_);
  next_.swap(request);  // the old one is destroyed behind the lock, and its simulation gets the snapshot
  done_.reset();
  is_wanted_ = false;
  asked_.notify_all();
}

void StillThread::forget() {
  std::optional<Request> request;
  const std::lock_guard lock(mutex_);
  next_.swap(request);
  done_.reset();
  is_wanted_ = false;
}

std::optional<Still> StillThread::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(done_, std::nullopt);
}

void StillThread::run() {
  // The threads that a software driver makes for the context are as nice as this one.
  be_nicer(kNiceBesideWindow);
  for (;;) {
    std::unique_lock lock(mutex_);
    asked_.wait(lock, [&] { return next_ || is_ending_; });
    if (is_ending_) break;
    Request request = *std::exchange(next_, std::nullopt);
    is_wanted_ = true;
    lock.unlock();
    std::optional<Still> still = draw(std::move(request));
    lock.lock();
    if (!is_wanted_) continue;
    done_ = std::move(still);
    lock.unlock();
    on_done_();
  }
  renderer_.reset();
}

std::optional<Still> StillThread::draw(Request request) {
  Still still{.number = request.number, .width = request.width, .height = request.height};
  try {
    make_still_scene(*request.snapshot, request.camera, request.options, scene_);
    request.snapshot.reset();
    if (!renderer_ || width_ != request.width || height_ != request.height) {
      renderer_.reset();
      width_ = request.width, height_ = request.height;
      renderer_.emplace(width_, height_);
    }
    std::optional<render::Image> image =
        renderer_->render_while([this] { return is_wanted_.load(); }, scene_.scene);
    if (!image) return std::nullopt;
    image->flip_rows();
    still.rgba.assign(image->bytes().begin(), image->bytes().end());
  } catch (const std::exception& e) {
    renderer_.reset();
    still.error = e.what();
  }
  return still;
}

}  // namespace coppice::viewer
