// What the host computes per particle before a frame: colour, and how open its surroundings are.
//
// The particles are counted in a coarse grid. From the blurred density come a smooth surface normal (which
// gives a heap of small spheres the shading of one body) and an ambient visibility (rays to the sky through
// the density), both looked up per particle. Cost: about 1.5 us of one core per particle, shared among all
// cores.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "apps/render/render_scene.h"

namespace coppice::render {

// One texel (4 x u32) of the shaders' particle array.
struct PackedParticle {
  Vec3f position;  // m
  uint32_t color;  // sRGB, 0x00bbggrr
};
static_assert(sizeof(PackedParticle) == 16);

// One texel (4 x u8) of the shaders' surface array.
struct PackedSurface {
  std::array<uint8_t, 3> normal;  // outward, times how clear it is (0 to 1), as n * 127 + 128
  uint8_t visibility;             // ambient light that arrives, 255 = all
};
static_assert(sizeof(PackedSurface) == 4);

struct ParticleShading {
  std::vector<PackedParticle> particles;  // the finite ones
  std::vector<PackedSurface> surfaces;    // [particles.size()]
  Aabb3f bounds;                          // of the centres; empty without particles
  Vec2i floor_size = Vec2i::Zero();       // texels along x and z; zero in 2-D and without particles
  Aabb3f floor_bounds;                    // what the floor texture covers (its x and z)
  std::vector<uint8_t> floor_visibility;  // u8[floor_size.y()][floor_size.x()]
};

// `scene` is valid.
ParticleShading compute_particle_shading(const RenderScene& scene);

}  // namespace coppice::render
