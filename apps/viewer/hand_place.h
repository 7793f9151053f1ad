// Finds where a hand is in the world, by where the mouse is on the screen, and how large it is there.
//
// Lengths on the screen are in pixels of the viewport, x to the right, y down.
#pragma once
#include <optional>

#include "apps/render/camera.h"

namespace coppice::viewer {

// Returns the point that is seen at `at`, on the plane through `through` that faces the camera.
Vec3f place_as_deep_as(const render::Camera& camera, const Vec2f& viewport, const Vec2f& at,
                       const Vec3f& through);

// Returns the radius on the screen of a ball at `place`, pixels; 0 behind the camera.
float radius_on_screen(const render::Camera& camera, const Vec2f& viewport, const Vec3f& place,
                       float radius_m);

// Returns the nearest place in the domain, if that is no farther than `reach_m`. A flat domain is z = 0.
std::optional<Vec3f> place_in_domain(const Vec3f& place, const Aabb3f& domain, int dim, float reach_m);

// Returns the velocity that a push gives to particles on its axis. Moved by its radius, a hand gives its
// speed, however often the way is cut into pushes; a single push gives at most twice its speed.
Vec3f push_velocity(const Vec3f& moved, float radius_m, float speed_m_s);

}  // namespace coppice::viewer
