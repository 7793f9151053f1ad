// The renderer derives this from a scene on the host, apart from its particles.
#pragma once

#include <array>
#include <vector>

#include "apps/render/camera.h"
#include "apps/render/render_scene.h"
#include "core/math.h"

namespace coppice::render {

// Returns f32[n_colliders][6][4]: six texels each, as shaders/common.glsl's load_collider() reads them; then
// the distances of meshes.
std::vector<float> pack_colliders(const RenderScene& scene);

// Returns the bounds of what is drawn, cut to the neighbourhood of the domain: one stray particle must not
// spoil the depth range. `particles` bounds their centres.
Aabb3f drawn_bounds(const RenderScene& scene, const Aabb3f& particles);

// Returns the rectangle of the world, across x and y, that colliders are shown in: flat scenes end at their
// domain, others nowhere.
std::array<Vec2f, 2> shown_rectangle(const Aabb3f& domain, int dim);

// Returns a unit vector in the world: from the upper left, in front.
Vec3f to_key_light();
// Returns a camera that sees all of `bounds` from where the key light comes.
Camera light_camera(const Aabb3f& bounds);

// Returns the bounds of what is drawn and of its shadow on the floor.
Aabb3f shadow_bounds(const RenderScene& scene, const Aabb3f& drawn);

// Returns the part of the floor that shadows from inside the domain fall on: min x, min z, max x, max z,
// m.
Vec4f floor_sun_bounds(const RenderScene& scene);

// Returns the spacing of the lines on the floor, m: 1, 2 or 5 times a power of ten, near a tenth of the
// domain.
float grid_spacing(const Aabb3f& domain);

// Returns the edges of the domain's faces that the camera sees from inside, but for the floor's: (x, y,
// x, y) in pixels from the lower left corner. They lie behind all that is in the domain. There are at
// most 9, and none that reaches behind the camera.
std::vector<Vec4f> back_edges(const RenderScene& scene, int width, int height);

}  // namespace coppice::render
