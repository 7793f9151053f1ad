// Particles as a device packs them for drawing: 16 bytes each.
#pragma once
#include "core/math.h"

namespace coppice::render {

// Points come in block order, so that neighbours in memory are neighbours in space.
struct PackedPoint {
  Vec3f position;  // m; y is up; in 2-D z is 0
  float value;     // what is coloured: a number, or an index into a palette
};
static_assert(sizeof(PackedPoint) == 16);

}  // namespace coppice::render
