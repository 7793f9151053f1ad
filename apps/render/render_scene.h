// What a frame shows, independent of the solver: plain views of arrays on the host.
//
// Spans are read during the call only. Units are SI; y is up; in 2-D all z are 0.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/render/camera.h"
#include "apps/render/color_map.h"
#include "core/math.h"

namespace coppice::render {

enum class ColorMode { kMaterial, kScalar };
enum class RenderColliderShape { kSphere, kBox };

struct RenderCollider {
  RenderColliderShape shape = RenderColliderShape::kSphere;
  Vec3f center = Vec3f::Zero();                // m
  float radius_m = 0.0f;                       // sphere
  Vec3f half_size = Vec3f::Zero();             // m; box, before rotation; z is ignored in 2-D
  Mat3f world_from_local = Mat3f::Identity();  // rotation of the box
};

struct ScalarRange {
  float min = 0.0f;
  float max = 1.0f;
};

struct RenderScene {
  int dim = 3;  // 2 or 3
  Aabb3f domain;
  std::span<const Vec3f> positions;    // f32[n][3], m; those that are not finite are skipped
  std::span<const uint8_t> materials;  // u8[n], indices into palette (modulo its size); empty: all 0
  std::span<const float> scalar;       // f32[n]; needed by ColorMode::kScalar
  float radius_m = 0.01f;              // of every particle
  ColorMode color_mode = ColorMode::kMaterial;
  std::span<const Rgb> palette = default_palette();
  ColorMap color_map = ColorMap::kViridis;
  std::optional<ScalarRange> range;  // at the map's ends; none: the finite values' own
  std::vector<RenderCollider> colliders;
  Camera camera;

  // Throws Error(kInvalidArgument) naming what does not fit together.
  void validate() const;
};

}  // namespace coppice::render
