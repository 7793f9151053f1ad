// Says which slot of the atlas a brick has, and how far it is to the next one; rays step through this
// index.
//
// It is a texture R32UI with one texel per brick of the bounds of all bricks, the last axis of the tree
// first. A full brick's texel holds kFullBrick and the slot, 8 bits for each axis of the atlas; an empty
// one's holds the Chebyshev distance in bricks to the nearest full one, 1 to 255, so that a ray may skip
// all that is nearer at once.
#pragma once
#include "apps/render/brick_atlas.h"

namespace coppice::render {

// Bricks with values in [low, high] are drawn.
struct ValueRange {
  float low, high;
  friend bool operator==(const ValueRange&, const ValueRange&) = default;
};

class BrickIndex {
 public:
  explicit BrickIndex(const GlFunctions& gl) : gl_(gl), texture_(gl) {}

  // Rebuilds the index for the atlas and the range, unless it is that already. Cost: a few passes over
  // the bounds on the host, 4 bytes a brick to the graphics device. Leaves no 3-D texture bound to unit
  // 0. Errors: kUnavailable for bounds that the driver's textures cannot have, kOutOfMemory.
  void update(const BrickAtlas& atlas, const ValueRange& range);

  GLuint texture() const { return texture_.id(); }
  const Vec3i& origin() const { return origin_; }  // cells; of the first brick of the bounds
  const Vec3i& size() const { return size_; }      // bricks, by axis of the tree
  bool is_empty() const { return num_full_ == 0; }
  size_t num_full() const { return num_full_; }
  const std::vector<uint32_t>& entries() const { return entries_; }  // u32[x][y][z]

 private:
  void find_bounds(const BrickAtlas& atlas);
  void measure_distances();

  const GlFunctions& gl_;
  GlTexture texture_;
  Vec3i origin_ = Vec3i::Zero(), size_ = Vec3i::Ones();
  size_t num_full_ = 0;
  uint64_t version_ = ~uint64_t{0};
  ValueRange range_{0, 0};
  std::vector<uint32_t> entries_;
  std::vector<uint8_t> distance_, scratch_, spread_;
};

}  // namespace coppice::render
