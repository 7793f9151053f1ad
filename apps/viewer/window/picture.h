// This is the picture behind the panels, in a framebuffer of its own, so that the panels are drawn anew
// without it.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "apps/viewer/live_view.h"
#include "apps/viewer/still.h"

namespace coppice::viewer {

class Picture {
 public:
  // `gl` outlives it; its context is current in all calls and in the destructor.
  Picture(const render::GlFunctions& gl, PFNGLBLITFRAMEBUFFERPROC blit, std::unique_ptr<LiveView> view);
  ~Picture();
  Picture(const Picture&) = delete;
  Picture& operator=(const Picture&) = delete;

  // Errors: the view's; then there is nothing to draw until the next one, and the picture stays as it is.
  void show(std::shared_ptr<const Snapshot> snapshot);
  // Draws what is not drawn yet, as much as ViewOptions::most_ms allows. Returns whether there was
  // anything to draw. Errors: the view's; then the picture is left as it is.
  bool draw(const render::Camera& camera, const ViewOptions& options, int width, int height);
  // Returns a number that changes with each thing that is drawn. A still picture has the number of what
  // it shows, and is shown from then on until something else is drawn. One of another size is not shown.
  uint64_t version() const { return version_; }
  void show_still(const Still& still);
  Vec2i size() const { return {width_, height_}; }
  bool has_snapshot() const { return has_snapshot_; }
  void hide_still() { has_still_ = false; }
  bool has_still() const { return has_still_; }
  // Copies it into the window's framebuffer of the same size.
  void put_into_window() const;
  bool is_drawn() const { return framebuffer_ != 0; }
  // Returns the picture as it is shown now, rows from the bottom.
  std::vector<uint8_t> read() const;  // u8[height][width][4]
  bool is_complete() const { return is_complete_; }
  std::vector<ShownRange> ranges() const { return view_->ranges(); }
  std::vector<ShownRange> volume_ranges() const { return view_->volume_ranges(); }
  std::optional<Picked> pick(int x, int y) { return view_->pick(x, y); }
  std::optional<Vec3f> position_at(int x, int y) { return view_->position_at(x, y); }

 private:
  void resize(int width, int height);
  void free();
  GLuint shown() const { return has_still_ ? still_framebuffer_ : framebuffer_; }

  const render::GlFunctions& gl_;
  const PFNGLBLITFRAMEBUFFERPROC blit_;
  std::unique_ptr<LiveView> view_;
  GLuint framebuffer_ = 0, color_ = 0, depth_ = 0;
  GLuint still_framebuffer_ = 0, still_ = 0;  // its texture
  int width_ = 0, height_ = 0;
  uint64_t version_ = 0;
  bool has_snapshot_ = false, is_new_ = true, is_complete_ = true, has_still_ = false;
  std::vector<float> seen_from_;  // the camera of the last draw
  ViewOptions options_;           // of the last draw
};

}  // namespace coppice::viewer
