// Moves a camera through keyframes, as a hand would lead it.
#pragma once
#include <span>

#include "apps/render/camera.h"

namespace coppice::render {

struct CameraKey {
  double time_s = 0;
  Camera camera;  // perspective, with y up
};

// Returns the camera at a time between keys whose times go up; before the first and behind the last it
// stands still. It turns about the point that it looks at, the shorter way; that point, its distance and
// its angle of view change with it: each is a cubic Hermite curve with the slopes of Catmull and Rom
// inside and none at the ends, so that the camera begins and ends at rest. Keys at one distance from one
// place stay at that distance. Errors: kInvalidArgument without keys, or when times do not go up.
Camera camera_at(std::span<const CameraKey> keys, double time_s);

}  // namespace coppice::render
