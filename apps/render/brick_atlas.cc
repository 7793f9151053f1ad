// Slots of the atlas, and what is uploaded into them.
#include "apps/render/brick_atlas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"

namespace coppice::render {
namespace {

constexpr int kMostSlots = 227;  // along an axis: 2048 texels; 8 bits of an index entry have room for 256

// The texture has at least so many slots, and is nearly a cube.
Vec3i slots_for(size_t bricks) {
  const auto n = static_cast<double>(bricks);
  const int x = std::max(1, static_cast<int>(std::ceil(std::cbrt(n))));
  const int y = std::max(1, static_cast<int>(std::ceil(std::sqrt(n / x))));
  return {x, y, std::max(1, static_cast<int>(std::ceil(n / (double(x) * y))))};
}

size_t count(const Vec3i& slots) { return size_t(slots.x()) * size_t(slots.y()) * size_t(slots.z()); }

bool is_equal(const BrickStats& a, const BrickStats& b) {
  return a.hash == b.hash && a.min == b.min && a.max == b.max;
}

}  // namespace

BrickAtlas::BrickAtlas(const GlFunctions& gl) : gl_(gl) {
  GLint texels = 0;
  gl.GetIntegerv(GL_MAX_3D_TEXTURE_SIZE, &texels);
  max_slots_ = std::min(texels / kBrickSide, kMostSlots);
  reserve(1);
}

void BrickAtlas::clear() {
  bricks_.clear(), free_.clear();
  slots_.setZero();
  ++version_;
}

// Makes a texture for so many bricks, all of its slots free.
void BrickAtlas::reserve(size_t bricks) {
  const Vec3i slots = slots_for(bricks);
  clear();
  if (slots.maxCoeff() > max_slots_) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("this OpenGL driver's 3-D textures hold at most {} bricks of a volume, not {}",
                            int64_t{max_slots_} * max_slots_ * max_slots_, bricks));
  }
  texture_.emplace(gl_);
  const bool is_half = format_ == BrickFormat::kHalf;
  gl_.ActiveTexture(GL_TEXTURE0);
  gl_.BindTexture(GL_TEXTURE_3D, texture_->id());
  gl_.TexImage3D(GL_TEXTURE_3D, 0, is_half ? GL_R16F : GL_R32F, slots.x() * kBrickSide,
                 slots.y() * kBrickSide, slots.z() * kBrickSide, 0, GL_RED, GL_FLOAT, nullptr);
  for (const GLenum filter : {GL_TEXTURE_MIN_FILTER, GL_TEXTURE_MAG_FILTER})
    gl_.TexParameteri(GL_TEXTURE_3D, filter, GL_LINEAR);
  for (const GLenum wrap : {GL_TEXTURE_WRAP_S, GL_TEXTURE_WRAP_T, GL_TEXTURE_WRAP_R})
    gl_.TexParameteri(GL_TEXTURE_3D, wrap, GL_CLAMP_TO_EDGE);
  gl_.BindTexture(GL_TEXTURE_3D, 0);
  check_gl(gl_, "allocating the atlas of a volume");
  slots_ = slots;
  for (size_t i = count(slots_); i-- > 0;) free_.push_back(static_cast<uint32_t>(i));  // the first on top
}

void BrickAtlas::update(const BrickVolume& volume) {
  counters_ = {};
  if (volume.format != format_ || volume.dim != dim_ || volume.size() > count(slots_)) {
    counters_.freed = bricks_.size();
    counters_.has_grown = true;
    const bool grows = volume.size() > count(slots_);
    format_ = volume.format, dim_ = volume.dim;
    // Room for half as many more, where the driver has it.
    const size_t most = size_t(max_slots_) * size_t(max_slots_) * size_t(max_slots_);
    const size_t wanted = volume.size() + (grows && count(slots_) > 1 ? volume.size() / 2 : 0);
    reserve(std::max(volume.size(), std::min(wanted, most)));
  }
  const auto order = [](const Brick& a, const CellCoord& b) { return a.origin < b; };
  // First the slots that bricks leave, for those that come.
  size_t old = 0;
  std::vector<std::pair<uint32_t, size_t>> changed;  // slot, brick of the volume
  next_.clear();
  for (size_t i = 0; i < volume.size(); ++i) {
    for (; old < bricks_.size() && order(bricks_[old], volume.origins[i]); ++old)
      free_.push_back(bricks_[old].slot);
    const bool was_there = old < bricks_.size() && bricks_[old].origin == volume.origins[i];
    next_.push_back({volume.origins[i], volume.stats[i], was_there ? bricks_[old].slot : ~0u});
    if (!was_there) continue;
    if (is_equal(bricks_[old].stats, volume.stats[i]))
      ++counters_.kept;
    else
      changed.emplace_back(bricks_[old].slot, i);
    ++old;
  }
  for (; old < bricks_.size(); ++old) free_.push_back(bricks_[old].slot);
  if (!counters_.has_grown) counters_.freed = bricks_.size() - counters_.kept - changed.size();
  for (size_t i = 0; i < next_.size(); ++i) {
    if (next_[i].slot != ~0u) continue;
    next_[i].slot = free_.back();
    free_.pop_back();
    changed.emplace_back(next_[i].slot, i);
  }
  counters_.uploaded = changed.size();
  if (counters_.uploaded != 0 || counters_.freed != 0) ++version_;
  bricks_.swap(next_);
  try {
    upload(volume, changed);
  } catch (...) {
    clear();  // nobody knows what its slots have
    throw;
  }
}

void BrickAtlas::upload(const BrickVolume& volume, std::vector<std::pair<uint32_t, size_t>>& changed) {
  if (changed.empty()) return;
  std::sort(changed.begin(), changed.end());
  const size_t row_bytes = kBrickSide * bytes_per_value(format_);
  const GLenum type = format_ == BrickFormat::kHalf ? GL_HALF_FLOAT : GL_FLOAT;
  gl_.ActiveTexture(GL_TEXTURE0);
  gl_.BindTexture(GL_TEXTURE_3D, texture_->id());
  gl_.PixelStorei(GL_UNPACK_ALIGNMENT, 1);
  for (size_t first = 0; first < changed.size();) {
    // Slots side by side, of one row of the atlas.
    const Vec3i place = place_of(changed[first].first);
    size_t n = 1;
    while (first + n < changed.size() && changed[first + n].first == changed[first].first + n &&
           place.x() + static_cast<int>(n) < slots_.x())
      ++n;
    const std::byte* texels = volume.values_of(changed[first].second).data();
    if (n > 1) {
      staging_.resize(n * kBrickValues * bytes_per_value(format_));
      for (size_t i = 0; i < n; ++i) {
        const std::byte* from = volume.values_of(changed[first + i].second).data();
        for (size_t row = 0; row < size_t{kBrickSide} * kBrickSide; ++row)
          std::memcpy(staging_.data() + (row * n + i) * row_bytes, from + row * row_bytes, row_bytes);
      }
      texels = staging_.data();
    }
    gl_.TexSubImage3D(GL_TEXTURE_3D, 0, place.x() * kBrickSide, place.y() * kBrickSide,
                      place.z() * kBrickSide, static_cast<GLsizei>(n) * kBrickSide, kBrickSide, kBrickSide,
                      GL_RED, type, texels);
    first += n;
  }
  gl_.BindTexture(GL_TEXTURE_3D, 0);
  check_gl(gl_, "copying a volume to the graphics device");
}

}  // namespace coppice::render
