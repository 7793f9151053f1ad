// A scene's particles as a set of points that the viewer shows: what their values are, and how they are
// drawn.
#pragma once
#include <string>

#include "apps/mpm/solver.h"
#include "apps/scene/scene.h"
#include "apps/viewer/snapshot.h"

namespace coppice {

// Fills all of `points` but the points themselves and their looks, as the scene's output says; returns
// which value of a particle is its value there.
mpm::PointValue describe_points(const scene::SceneConfig& scene, viewer::PointSet& points);

// Files of its particles carry this text, so that no other scene shows them: "3-D snow, water on a grid
// of 0.02 m".
std::string describe_particles(const scene::SceneConfig& scene);

}  // namespace coppice
