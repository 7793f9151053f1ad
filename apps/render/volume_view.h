// This asks for a picture of a volume: which one, how it looks, from where, and into which framebuffer.
#pragma once
#include "apps/render/brick_index.h"
#include "apps/render/camera.h"
#include "apps/render/volume_style.h"

namespace coppice::render {

struct VolumeView {
  VolumeStyle style;
  VolumePlacement placement;
  Camera camera;
  ClipPlanes planes{0.1f, 100.0f};  // of the depth in the framebuffer
  GLuint framebuffer = 0;           // the window's is 0
  int width = 0, height = 0;        // pixels at its lower left corner
  // A new number says that what else is in the framebuffer has changed: the picture begins anew.
  uint64_t opaque_version = 0;

  // Errors: kInvalidArgument, with what is wrong.
  void validate() const;
};

inline constexpr int kVolumeColors = 256;  // that a range is divided into

// Returns the values of bricks that have something to show in a tree of `dim` dimensions. Bricks with
// values that are not finite are in every range that is not empty.
ValueRange drawn_range(const VolumeStyle& style, int dim);

// A box has the pixels from `low` up to, not including, `high`.
struct PixelBox {
  Vec2i low = Vec2i::Zero(), high = Vec2i::Zero();

  bool is_empty() const { return (low.array() >= high.array()).any(); }
  PixelBox within(const PixelBox& other) const {
    return {low.cwiseMax(other.low), high.cwiseMin(other.high)};
  }
  // Returns the same pixels, and perhaps some more, of a picture that is coarser by these factors.
  PixelBox coarser(const Vec2i& by) const {
    const Vec2i one = Vec2i::Ones();
    return {low.cwiseQuotient(by), (high + by - one).cwiseQuotient(by)};
  }
};

// Returns where a box of the world appears in the frame; all of it when the camera is in the box or
// beside it.
PixelBox pixels_of(const VolumeView& view, const Aabb3f& world);

// Views and atlases that give the same picture have the same key.
uint64_t key_of(const VolumeView& view, const BrickAtlas& atlas);

}  // namespace coppice::render
