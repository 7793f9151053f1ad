// A frame shows this: a scene's particles, colliders and camera as the renderer takes them. The viewer
// shares it.
#pragma once
#include <array>
#include <span>
#include <vector>

#include "apps/mpm/solver.h"
#include "apps/render/render_scene.h"

namespace coppice {

// A picture shows this of particles: 18 bytes of each, or 14 where it shows no value.
struct ShownParticles {
  std::span<const Vec3f> positions;
  std::vector<uint8_t> colors;  // index into render::default_palette()
  std::vector<render::Look> looks;
  std::vector<float> scalar;  // empty where colours stand for materials or emitters
};

// The particles have their stress where the colour shows it; they live as long as what is returned.
ShownParticles show_particles(const scene::SceneConfig& scene, const mpm::ParticleSnapshot& particles);
// `time_s` places the moving colliders. What is returned points to the particles.
render::RenderScene make_frame_view(const scene::SceneConfig& scene, const ShownParticles& particles,
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
