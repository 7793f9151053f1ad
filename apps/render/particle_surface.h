// This makes the surface of particles that form one body, water or jelly: a field on a sparse grid, high
// inside, that a ray marcher draws where it passes a threshold.
//
// Each particle is smeared out into an ellipsoid (particle_kernels.h), the sum is smoothed and cut into
// bricks (brick_pack.h). Particles are mirrored at the walls of the domain, so that a body that rests
// against a wall goes up to it and is cut off there. Particles that the surface does not enclose, spray,
// are left for others to draw.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "apps/render/brick_pack.h"
#include "apps/render/goes_on.h"
#include "apps/render/render_scene.h"

namespace coppice::render {

// This says where one of the bodies is among the bricks of all.
struct SurfaceField {
  bool is_empty = true;
  Vec3f shift = Vec3f::Zero();  // cells; from where the body is in the world to where its values are
  Aabb3f box;                   // m; in the world; what is drawn of it
};

// Average colours around the particles, for trilinear interpolation; colours are multiplied by alpha.
struct SurfaceColors {
  Vec3i size = Vec3i::Zero();
  Vec3f origin = Vec3f::Zero();  // m; lower corner of the first cell
  float cell_m = 1.0f;
  std::vector<uint8_t> texels;  // u8[z][y][x][4]; alpha 0: there is nothing
};

struct ParticleSurfaces {
  static constexpr int kWater = 0, kJelly = 1;

  BrickVolume volume;  // of both, side by side along x; cell (i, j, k) begins at cell_m * (i, j, k) - shift
  float cell_m = 1.0f;
  std::array<SurfaceField, 2> fields;
  SurfaceColors jelly_colors;
  std::vector<uint8_t> is_enclosed;  // [n particles of the scene]: not to be drawn as a sphere

  bool is_empty() const { return fields[kWater].is_empty && fields[kJelly].is_empty; }
};

// The field has this value on the surface. Deep inside it is about 1.
inline constexpr float kSurfaceThreshold = 0.4f;

// `scene` is valid; without water and jelly, and in 2-D, the result is empty. `colors`: sRGB 0x00bbggrr,
// [scene.positions.size()]. Cost: about 5 us of one core per particle, shared among all cores; 10 bytes per
// cell near particles, of which there are four for each. When `goes_on` returned
// false the result is not specified.
ParticleSurfaces make_particle_surfaces(const RenderScene& scene, std::span<const uint32_t> colors,
                                        const GoesOn& goes_on = {});

}  // namespace coppice::render
