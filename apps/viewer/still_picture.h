// This draws a snapshot as the headless renderer does: for screenshots, recordings and files.
#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "apps/render/renderer.h"
#include "apps/viewer/live_view.h"
#include "apps/viewer/snapshot.h"

namespace coppice::viewer {

// It owns the arrays that `scene` points into.
struct StillScene {
  std::vector<Vec3f> positions;  // of all sets
  std::vector<uint8_t> colors;   // index into the palette
  std::vector<float> scalar;
  std::vector<render::Look> looks;
  std::vector<render::Rgb> palette;
  render::RenderScene scene;
};
// Returns whether the headless renderer draws all of it: it has particles and colliders alone, in the
// simulation's colours.
bool has_still_scene(const Snapshot& snapshot, const ViewOptions& options);
// Several sets are drawn with the colours of the first.
void make_still_scene(const Snapshot& snapshot, const render::Camera& camera, const ViewOptions& options,
                      StillScene& still);

// Draws pictures of one size after another; a context is made at the first. A snapshot without a still
// scene is drawn as in a window, but whole.
class StillRenderer {
 public:
  StillRenderer();
  ~StillRenderer();
  // Errors: those of render::Renderer.
  render::Image render(const Snapshot& snapshot, const render::Camera& camera, int width, int height,
                       const ViewOptions& options = {});

 private:
  struct Live;

  std::optional<render::Renderer> renderer_;
  std::unique_ptr<Live> live_;
  int width_ = 0, height_ = 0;
  StillScene still_;
};

}  // namespace coppice::viewer
