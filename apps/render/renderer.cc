// Renderer: context, target and passes of windowless frames.
#include "apps/render/renderer.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace coppice::render {
namespace {

// Samples are drawn into textures, so that n x n of them for a pixel leave less room for pixels.
void require_size(const GlFunctions& gl, int width, int height, const RenderOptions& options) {
  GLint texture = 0, renderbuffer = 0, viewport[2] = {0, 0};
  gl.GetIntegerv(GL_MAX_TEXTURE_SIZE, &texture);
  gl.GetIntegerv(GL_MAX_RENDERBUFFER_SIZE, &renderbuffer);
  gl.GetIntegerv(GL_MAX_VIEWPORT_DIMS, viewport);
  const int samples = std::min({texture, viewport[0], viewport[1]});
  const int most = std::min(renderbuffer, samples / std::max(options.samples_per_side, 1));
  if (std::min(width, height) >= 1 && std::max(width, height) <= most) return;
  throw Error(
      ErrorCode::kUsage,
      fmt::format("the OpenGL driver of this machine draws pictures of 1 to {} pixels a side, not {} x {}",
                  most, width, height));
}

}  // namespace

void require_picture_size(int width, int height, const RenderOptions& options) {
  GlContext context;
  const GlContext::Current current(context);
  require_size(context.gl(), width, height, options);
}

Renderer::Renderer(int width, int height, const RenderOptions& options) : width_(width), height_(height) {
  GlContext::Current current(context_);
  require_size(context_.gl(), width, height, options);
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

std::optional<Image> Renderer::render_while(const GoesOn& goes_on, const RenderScene& scene) {
  GlContext::Current current(context_);
  if (!particles_->draw(scene, target_->framebuffer(), width_, height_, goes_on)) return std::nullopt;
  return target_->wait_and_read();
}

}  // namespace coppice::render
