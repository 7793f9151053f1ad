// A frame shows this: a scene's particles, colliders and camera as the renderer takes them. The viewer
// shares it.
#pragma once
#include <array>
#include <vector>

#include "apps/mpm/solver.h"
#include "apps/render/render_scene.h"

namespace coppice {

// `render` points into it and into the particles that it was made of; keep both alive while that is drawn.
struct FrameView {
  std::vector<uint8_t> colors;  // index into the palette, per particle
  std::vector<render::Look> looks;
  std::vector<float> scalar;
  std::vector<render::Rgb> palette;
  render::RenderScene render;
};

// `time_s` places the moving colliders. The particles have their stress where the colour shows it.
FrameView make_frame_view(const scene::SceneConfig& scene, const mpm::ParticleSnapshot& particles,
                          double time_s);

// Its parts. How a material is drawn. Water is clear when it has its own colour, and painted when it shows
// a value or an emitter.
render::Look look_of(scene::MaterialKind kind, scene::ColorBy color);
render::ColorMap color_map_of(scene::Colormap map);
std::vector<render::RenderCollider> colliders_at(const scene::SceneConfig& scene, double time_s);
float particle_radius_m(const scene::SceneConfig& scene);
// Returns the spacings of water and jelly, where emitters give some, as RenderScene has them.
std::array<float, 2> body_spacing_m(const scene::SceneConfig& scene);
// The part of a 3-D domain where things are to be seen: around bodies and colliders at rest, from the floor
// up, where bodies fall straight down; else all of it.
Aabb3f scene_bounds(const scene::SceneConfig& scene);
// The scene's camera at a time; what it leaves open shows these bounds, or all of a 2-D domain.
render::Camera camera_of(const scene::SceneConfig& scene, float aspect, double time_s);

}  // namespace coppice
