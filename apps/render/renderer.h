// Draws frames without a window: a context, a target and a ParticleRenderer in one.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "apps/render/gl_context.h"
#include "apps/render/image.h"
#include "apps/render/offscreen_target.h"
#include "apps/render/particle_renderer.h"

namespace coppice::render {

// Asks the driver, and draws nothing: it is called before room is made for pictures of this size. Errors:
// kUsage with the most pixels a side that the driver has room for; kUnavailable, one line that says what
// to install, on a machine without OpenGL 3.3.
void require_picture_size(int width, int height, const RenderOptions& options = {});

class Renderer {
 public:
  // Errors: those of require_picture_size().
  Renderer(int width, int height, const RenderOptions& options = {});
  ~Renderer();

  // Draws and waits. One thread may call it at a time; the thread may change between calls.
  Image render(const RenderScene& scene);
  // Returns nothing as soon as `goes_on`, which is asked several times a second, returns false.
  std::optional<Image> render_while(const GoesOn& goes_on, const RenderScene& scene);

  // Returns driver and version, for `coppice info` and the log.
  const std::string& description() const { return context_.description(); }

 private:
  GlContext context_;
  int width_;
  int height_;
  std::unique_ptr<OffscreenTarget> target_;
  std::unique_ptr<ParticleRenderer> particles_;
};

}  // namespace coppice::render
