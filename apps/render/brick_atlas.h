// Holds the bricks of a volume in a 3-D texture that keeps what does not change from one update to the
// next.
//
// A slot is 9 x 9 x 9 texels, one brick's values with their apron, so that the texture unit interpolates.
// Texels lie as the tree's cells do: the last axis of the tree is the texture's first, s. Slots are the
// bricks', by origin: an update frees those of bricks that are gone, takes free ones for new bricks, and
// uploads the bricks that are new or whose hash changed.
#pragma once
#include <optional>

#include "apps/render/brick_pack.h"
#include "apps/render/gl_objects.h"

namespace coppice::render {

inline constexpr uint32_t kFullBrick = 0x80000000u;  // of an index entry; then the slot, 8 bits for each axis

class BrickAtlas {
 public:
  struct Brick {
    CellCoord origin;
    BrickStats stats;
    uint32_t slot;
  };
  // They tell what the last update did.
  struct Counters {
    size_t uploaded = 0, kept = 0, freed = 0;
    bool has_grown = false;  // all bricks were uploaded then
  };

  // `gl` outlives the atlas; its context is current here, in update() and in the destructor.
  explicit BrickAtlas(const GlFunctions& gl);

  // Makes the atlas show `volume`. Cost: one pass over both lists of bricks, and the uploads; bricks in slots
  // side by side go together. Leaves no 3-D texture bound to unit 0. Errors: kUnavailable for more bricks
  // than the driver's largest 3-D texture holds, kOutOfMemory; the atlas is empty then.
  void update(const BrickVolume& volume);

  const std::vector<Brick>& bricks() const { return bricks_; }  // ascending by origin
  const Counters& last_update() const { return counters_; }
  uint64_t version() const { return version_; }  // another after each update that changed anything
  int dim() const { return dim_; }
  GLuint texture() const { return texture_->id(); }
  const Vec3i& slots() const { return slots_; }  // along the texture's s, t and r
  // Returns where a slot is among these.
  Vec3i place_of(uint32_t slot) const {
    const auto i = static_cast<int>(slot);
    return {i % slots_.x(), i / slots_.x() % slots_.y(), i / slots_.x() / slots_.y()};
  }

 private:
  void clear();
  void reserve(size_t bricks);
  void upload(const BrickVolume& volume, std::vector<std::pair<uint32_t, size_t>>& changed);

  const GlFunctions& gl_;
  int max_slots_ = 0;  // along an axis
  std::optional<GlTexture> texture_;
  Vec3i slots_ = Vec3i::Zero();
  BrickFormat format_ = BrickFormat::kHalf;
  int dim_ = 3;
  std::vector<Brick> bricks_, next_;
  std::vector<uint32_t> free_;  // slots
  std::vector<std::byte> staging_;
  Counters counters_;
  uint64_t version_ = 0;
};

}  // namespace coppice::render
