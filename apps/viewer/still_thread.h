// This draws still pictures of what a window shows at rest, beside it on a thread of their own.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "apps/viewer/still.h"
#include "apps/viewer/still_picture.h"

namespace coppice::viewer {

class StillThread {
 public:
  // `on_done` is called on the thread when there is something to take.
  explicit StillThread(std::function<void()> on_done);
  ~StillThread();  // ends as forget() says; it waits for the part of a picture that is being drawn

  // Forgets earlier requests, and draws this picture. The snapshot is let go of before it is drawn.
  // Errors come with take().
  void ask(uint64_t number, std::shared_ptr<const Snapshot> snapshot, const render::Camera& camera,
           const ViewOptions& options, int width, int height);
  // Nobody wants the requested picture any more, and take() does not have it. If it has not begun, its
  // snapshot is let go of; else it ends within a part of a pass (render::GoesOn).
  void forget();
  // Returns the last picture that was finished, once.
  std::optional<Still> take();

 private:
  struct Request {
    uint64_t number;
    std::shared_ptr<const Snapshot> snapshot;
    render::Camera camera;
    ViewOptions options;
    int width, height;
  };
  void run();
  std::optional<Still> draw(Request request);  // nothing: nobody wanted it any more

  const std::function<void()> on_done_;
  std::mutex mutex_;  // of what follows
  std::condition_variable asked_;
  std::optional<Request> next_;
  std::optional<Still> done_;
  bool is_ending_ = false;
  std::atomic<bool> is_wanted_ =
      false;  // what is being drawn; written under the lock, read while it is drawn
  // These belong to the thread alone.
  std::optional<render::Renderer> renderer_;
  int width_ = 0, height_ = 0;
  StillScene scene_;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace coppice::viewer
