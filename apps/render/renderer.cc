// Renderer: context, target and passes of windowless frames.
#include "apps/render/renderer.h"

#include <fmt/format.h>

#include "core/error.h"

namespace coppice::render {
namespace {

int checked_side(int pixels) {
  if (pixels < 1 || pixels > 16384) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a frame has 1 to 16384 pixels a side, not {}", pixels));
  }
  return pixels;
}

}  // namespace

Renderer::Renderer(int width, int height, const RenderOptions& options)
    : width_(checked_side(width)), height_(checked_side(height)) {
  GlContext::Current current(context_);
  target_ = std::make_unique<OffscreenTarget>(context_.gl(), width, height);
  try {
    particles_ = std::make_unique<ParticleRenderer>(context_.gl(), options);
  } catch (...) {
    target_.reset();  // while the context is current
    throw;
  }
}

Renderer::~Renderer() {
  try {
    GlContext::Current current(context_);
    particles_.reset();
    target_.reset();
  } catch (const Error&) {
    // The context is lost or held by another thread, and with it goes what it owned; the deleters must not
    // run.
    static_cast<void>(particles_.release());
    static_cast<void>(target_.release());
  }
}

Image Renderer::render(const RenderScene& scene) {
  GlContext::Current current(context_);
  particles_->draw(scene, target_->framebuffer(), width_, height_);
  return target_->wait_and_read();
}

}  // namespace coppice::render
