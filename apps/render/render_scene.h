// A frame shows this, independent of the solver: plain views of arrays on the host.
//
// Spans are read during the call only. Units are SI; y is up; in 2-D all z are 0.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/render/camera.h"
#include "apps/render/color_map.h"
#include "apps/scene/collider_shape.h"
#include "core/math.h"

namespace coppice::render {

enum class ColorMode { kMaterial, kScalar };
// This says how particles are drawn in 3-D. Water and jelly are surfaces, but their spray, the particles
// far from others, stays spheres; snow and sand are drawn as grains, several for a particle. In 2-D all
// are discs.
enum class Look : uint8_t { kSpheres, kWater, kJelly, kSnow, kSand };
using RenderColliderShape = scene::ColliderShape;

// Particles of a 3-D scene are drawn with this radius, as a part of the side of a cube of their volume.
inline constexpr float kRadiusPerSpacing = 0.6f;

// A signed distance on the nodes of a grid, of which the surface is drawn.
struct RenderDistances {
  Vec3i nodes = Vec3i::Zero();
  Vec3f low = Vec3f::Zero();  // m, of node (0, 0, 0), from the collider's centre
  float spacing_m = 0.0f;
  std::shared_ptr<const std::vector<float>> values;  // f32[nodes.x][nodes.y][nodes.z], m
};

struct RenderCollider {
  RenderColliderShape shape = RenderColliderShape::kSphere;
  Vec3f center = Vec3f::Zero();  // m
  float radius_m = 0.0f;         // sphere, capsule
  // m; before rotation, around the centre: the box, the box around a capsule, whose axis is y, or a mesh, or
  // the domain that a plane is drawn in; z is ignored in 2-D.
  Vec3f half_size = Vec3f::Zero();
  Mat3f world_from_local = Mat3f::Identity();  // rotation; a plane has none
  Vec3f normal = Vec3f::UnitY();               // plane, out of the solid, and where it is: n . (x - center)
  float offset_m = 0.0f;
  RenderDistances distances;  // mesh
};

struct RenderScene {
  int dim = 3;  // 2 or 3
  Aabb3f domain;
  std::span<const Vec3f> positions;    // f32[n][3], m; those that are not finite are skipped
  std::span<const uint8_t> materials;  // u8[n], indices into palette (modulo its size); empty: all 0
  std::span<const float> scalar;       // f32[n]; needed by ColorMode::kScalar
  std::span<const Look> looks;         // [n]; empty: all kSpheres
  float radius_m = 0.01f;              // of every particle
  // For their surfaces: the sides of cubes of the volumes of water's and of jelly's particles, the
  // widest, m. 0: radius_m's.
  std::array<float, 2> body_spacing_m{};
  ColorMode color_mode = ColorMode::kMaterial;
  std::span<const Rgb> palette = default_palette();
  ColorMap color_map = ColorMap::kViridis;
  std::optional<ScalarRange> range;  // at the map's ends; none: the finite values' own
  std::vector<RenderCollider> colliders;
  Camera camera;

  // Throws Error(kInvalidArgument) naming what does not fit together.
  void validate() const;
};

// Returns how much of red, green and blue a metre of water takes away in pictures: as if each domain were
// a pool, clear at a tenth of its longest side and blue at a third.
Vec3f water_absorption(const Aabb3f& domain);

}  // namespace coppice::render
