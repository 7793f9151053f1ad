// Refuses what a hand cannot do, in one line: what, where, what was expected. Errors of all: kUsage.
#pragma once
#include <cstdint>
#include <string_view>

#include "apps/geometry/stroke.h"
#include "apps/scene/scene.h"

namespace coppice::mpm {

// `what` is the first word of the line. A radius must be positive and finite, both ends lie in the domain.
void check_stroke(const scene::SceneConfig& scene, std::string_view what, const Stroke& stroke);
void check_velocity(std::string_view what, const Vec3f& velocity);
// A ball that is to be emitted must have particles.
void check_not_empty(const scene::SceneConfig& scene, float radius_m, uint64_t particles);

}  // namespace coppice::mpm
