// What a frame shows: a scene's particles, colliders and camera as the renderer takes them. Shared with the viewer.
#pragma once
#include <vector>

#include "apps/mpm/solver.h"
#include "apps/render/render_scene.h"

namespace coppice {

// Owns what `render` points into; keep it alive while that is drawn.
struct FrameView {
  mpm::ParticleSnapshot particles;
  std::vector<uint8_t> colors;  // index into the palette, per particle
  std::vector<float> scalar;
  std::vector<render::Rgb> palette;
  render::RenderScene render;
};

// `time_s` places the moving colliders.
FrameView make_frame_view(const scene::SceneConfig& scene, mpm::ParticleSnapshot particles, double time_s);

}  // namespace coppice
