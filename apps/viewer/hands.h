// A hand may do this to a simulation: emit, push and cut.
#pragma once
#include <string>
#include <vector>

#include "apps/geometry/stroke.h"

namespace coppice::viewer {

// Adds a ball of material, where there is room for it.
struct Emit {
  Vec3f center = Vec3f::Zero();  // m
  float radius_m = 0;
  Vec3f velocity_m_s = Vec3f::Zero();
  std::string material;  // one of Hands::materials
};
// Particles in the stroke get the velocity in addition to their own: those on its axis all of it, those
// at its edge none.
struct Push {
  Stroke stroke;
  Vec3f velocity_m_s = Vec3f::Zero();
};
// Particles in the stroke are taken out.
struct Cut {
  Stroke stroke;
};

// These are the acts that a simulation offers, and values to begin with.
struct Hands {
  std::vector<std::string> materials;  // that it emits; none: it does not. Words without blanks
  bool pushes = false, cuts = false;
  float radius_m = 0, speed_m_s = 0;  // that suit its size; 0: nobody knows
  bool has_any() const { return !materials.empty() || pushes || cuts; }
};

}  // namespace coppice::viewer
