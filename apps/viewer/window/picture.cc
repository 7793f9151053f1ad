// Keeps the picture and knows when it is out of date.
#include "apps/viewer/window/picture.h"

#include <stdexcept>
#include <utility>

namespace coppice::viewer {
namespace {

std::vector<float> numbers_of(const render::Camera& c) {
  return {static_cast<float>(c.projection),
          c.position.x(),
          c.position.y(),
          c.position.z(),
          c.look_at.x(),
          c.look_at.y(),
          c.look_at.z(),
          c.up.x(),
          c.up.y(),
          c.up.z(),
          c.fov_deg,
          c.height_m};
}

}  // namespace

Picture::Picture(const render::GlFunctions& gl, PFNGLBLITFRAMEBUFFERPROC blit, std::unique_ptr<LiveView> view)
    : gl_(gl), blit_(blit), view_(std::move(view)) {}

Picture::~Picture() { free(); }

void Picture::free() {
  if (framebuffer_ != 0) gl_.DeleteFramebuffers(1, &framebuffer_);
  if (color_ != 0) gl_.DeleteRenderbuffers(1, &color_);
  if (depth_ != 0) gl_.DeleteRenderbuffers(1, &depth_);
  if (still_framebuffer_ != 0) gl_.DeleteFramebuffers(1, &still_framebuffer_);
  if (still_ != 0) gl_.DeleteTextures(1, &still_);
  framebuffer_ = color_ = depth_ = still_framebuffer_ = still_ = 0;
  has_still_ = false;
  width_ = height_ = 0;
}

void Picture::resize(int width, int height) {
  if (width == width_ && height == height_) return;
  free();
  gl_.GenRenderbuffers(1, &color_);
  gl_.BindRenderbuffer(GL_RENDERBUFFER, color_);
  gl_.RenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, width, height);
  gl_.GenRenderbuffers(1, &depth_);
  gl_.BindRenderbuffer(GL_RENDERBUFFER, depth_);
  gl_.RenderbufferStorage(GL_RENDERBUFFER, GL_DEPTH_COMPONENT24, width, height);
  gl_.GenFramebuffers(1, &framebuffer_);
  gl_.BindFramebuffer(GL_FRAMEBUFFER, framebuffer_);
  gl_.FramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, color_);
  gl_.FramebufferRenderbuffer(GL_FRAMEBUFFER, GL_DEPTH_ATTACHMENT, GL_RENDERBUFFER, depth_);
  if (gl_.CheckFramebufferStatus(GL_FRAMEBUFFER) != GL_FRAMEBUFFER_COMPLETE) {
    free();
    throw std::runtime_error("OpenGL refuses a picture of the window's size");
  }
  width_ = width;
  height_ = height;
  is_new_ = true;
}

void Picture::show(std::shared_ptr<const Snapshot> snapshot) {
  has_snapshot_ = false, is_complete_ = true;
  view_->show(std::move(snapshot));
  has_snapshot_ = true;
  is_new_ = true;
}

bool Picture::draw(const render::Camera& camera, const ViewOptions& options, int width, int height) {
  if (!has_snapshot_) return false;
  resize(width, height);
  std::vector<float> seen_from = numbers_of(camera);
  if (!is_new_ && is_complete_ && seen_from == seen_from_ && options == options_) return false;
  seen_from_ = std::move(seen_from);
  options_ = options;
  is_new_ = false;
  has_still_ = false;
  ++version_;
  is_complete_ = true;  // when drawing fails: it would fail again
  is_complete_ = view_->draw(camera, options, framebuffer_, width, height);
  return true;
}

void Picture::show_still(const Still& still) {
  if (still.width != width_ || still.height != height_) return;
  if (still_ == 0) gl_.GenTextures(1, &still_);
  gl_.ActiveTexture(GL_TEXTURE0);
  gl_.BindTexture(GL_TEXTURE_2D, still_);
  gl_.TexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, width_, height_, 0, GL_RGBA, GL_UNSIGNED_BYTE,
                 still.rgba.data());
  gl_.BindTexture(GL_TEXTURE_2D, 0);
  if (still_framebuffer_ == 0) gl_.GenFramebuffers(1, &still_framebuffer_);
  gl_.BindFramebuffer(GL_FRAMEBUFFER, still_framebuffer_);
  gl_.FramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D, still_, 0);
  has_still_ = gl_.CheckFramebufferStatus(GL_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE;
  gl_.BindFramebuffer(GL_FRAMEBUFFER, 0);
  if (!has_still_) throw std::runtime_error("OpenGL refuses a still picture of the window's size");
}

std::vector<uint8_t> Picture::read() const {
  std::vector<uint8_t> rgba(static_cast<size_t>(width_) * static_cast<size_t>(height_) * 4);
  gl_.BindFramebuffer(GL_READ_FRAMEBUFFER, shown());
  gl_.ReadPixels(0, 0, width_, height_, GL_RGBA, GL_UNSIGNED_BYTE, rgba.data());
  gl_.BindFramebuffer(GL_FRAMEBUFFER, 0);
  return rgba;
}

void Picture::put_into_window() const {
  if (framebuffer_ == 0) return;
  gl_.BindFramebuffer(GL_READ_FRAMEBUFFER, shown());
  gl_.BindFramebuffer(GL_DRAW_FRAMEBUFFER, 0);
  blit_(0, 0, width_, height_, 0, 0, width_, height_, GL_COLOR_BUFFER_BIT, GL_NEAREST);
  gl_.BindFramebuffer(GL_FRAMEBUFFER, 0);
}

}  // namespace coppice::viewer
