// The host computes this per particle before a frame: colour, grains, and how open its surroundings are.
//
// In 3-D snow and sand become grains: several small spheres at random in the space of each particle.
// The particles are counted in a coarse grid. From the blurred density come a smooth surface normal (which
// gives a heap of small spheres the shading of one body) and an ambient visibility (rays to the sky through
// the density), both looked up per particle. Cost: about 1.5 us of one core per particle, shared among all
// cores.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "apps/render/render_scene.h"

namespace coppice::render {

// One texel (4 x u32) of the shaders' particle array.
struct PackedParticle {
  Vec3f position;  // m
  uint32_t
      color;  // sRGB, 0x00bbggrr; in the highest byte the look (3 bits), and the radius (5 bits, from 0):
              // radius_m * (radius + 1) / 32
};
static_assert(sizeof(PackedParticle) == 16);

// One texel (4 x u8) of the shaders' surface array.
struct PackedSurface {
  std::array<uint8_t, 3> normal;  // outward, times how clear it is (0 to 1), as n * 127 + 128
  uint8_t visibility;             // ambient light that arrives, 255 = all
};
static_assert(sizeof(PackedSurface) == 4);

struct ParticleShading {
  std::vector<PackedParticle> particles;  // the finite ones that no surface encloses, or their grains
  std::vector<PackedSurface> surfaces;    // [particles.size()]
  Aabb3f bounds;                          // of the centres, enclosed ones, too; empty without particles
  Vec2i floor_size = Vec2i::Zero();       // texels along x and z; zero in 2-D and without particles
  Aabb3f floor_bounds;                    // what the floor texture covers (its x and z)
  std::vector<uint8_t> floor_visibility;  // u8[floor_size.y()][floor_size.x()]
  // This says how full space is of particles other than water; a cell's value stands at its middle. Empty
  // in 2-D.
  Vec3i density_size = Vec3i::Zero();
  Vec3f density_origin = Vec3f::Zero();  // m; of the grid's lower corner
  float density_cell_m = 1.0f;
  std::vector<uint8_t> density;  // u8[z][y][x], 255 = full
};

// Returns sRGB 0x00bbggrr, [scene.positions.size()]. `scene` is valid.
std::vector<uint32_t> compute_particle_colors(const RenderScene& scene);

// `scene` is valid; `colors` are the particles'. `is_enclosed`, u8[n], marks those that are not drawn as
// spheres; empty: none of them.
ParticleShading compute_particle_shading(const RenderScene& scene, std::span<const uint32_t> colors,
                                         std::span<const uint8_t> is_enclosed = {});

}  // namespace coppice::render
