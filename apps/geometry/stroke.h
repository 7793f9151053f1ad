// A hand acts in a stroke: on all points that are no farther than a radius from a segment.
#pragma once
#include "core/math.h"

namespace coppice {

struct Stroke {
  Vec3f from = Vec3f::Zero(), to = Vec3f::Zero();  // m; equal ends: a ball
  float radius_m = 0;
};

}  // namespace coppice
