// The index texture and its distances.
#include "apps/render/brick_index.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace coppice::render {
namespace {

constexpr int kFarthest = 16;  // bricks: farther ones are taken for as far

// to[i] = the least of from[i - stride], from[i], from[i + stride] along one axis.
void least_of_neighbours(const uint8_t* from, uint8_t* to, size_t outer, size_t n, size_t inner) {
  for (size_t o = 0; o < outer; ++o, from += n * inner, to += n * inner) {
    for (size_t i = 0; i < n; ++i) {
      const uint8_t* const here = from + i * inner;
      const uint8_t* const before = i > 0 ? here - inner : here;
      const uint8_t* const behind = i + 1 < n ? here + inner : here;
      for (size_t k = 0; k < inner; ++k)
        to[i * inner + k] = std::min(std::min(before[k], here[k]), behind[k]);
    }
  }
}
// The same along the last axis.
void least_of_row(const uint8_t* from, uint8_t* to, size_t rows, size_t n) {
  for (size_t row = 0; row < rows; ++row, from += n, to += n) {
    if (n == 1) {
      to[0] = from[0];
      continue;
    }
    to[0] = std::min(from[0], from[1]);
    for (size_t i = 1; i + 1 < n; ++i) to[i] = std::min(std::min(from[i - 1], from[i]), from[i + 1]);
    to[n - 1] = std::min(from[n - 2], from[n - 1]);
  }
}

}  // namespace

void BrickIndex::find_bounds(const BrickAtlas& atlas) {
  origin_.setZero(), size_.setOnes();
  if (atlas.bricks().empty()) return;
  Vec3i low = Vec3i::Constant(std::numeric_limits<int>::max()), high = -low;
  for (const BrickAtlas::Brick& b : atlas.bricks()) {
    const Vec3i at(b.origin.x, b.origin.y, b.origin.z);
    low = low.cwiseMin(at), high = high.cwiseMax(at);
  }
  origin_ = low;
  for (int axis = 0; axis < 3; ++axis) size_[axis] = (high[axis] >> 3) - (low[axis] >> 3) + 1;
}

// A brick's distance is one more than that of the nearest of its 26 neighbours; each round finds those one
// farther.
void BrickIndex::measure_distances() {
  const size_t x = size_t(size_.x()), y = size_t(size_.y()), z = size_t(size_.z());
  scratch_.resize(distance_.size()), spread_.resize(distance_.size());
  for (int round = 1; round < kFarthest; ++round) {
    // A brick that has not been reached yet is at kFarthest; a round spreads the others by one brick.
    least_of_row(distance_.data(), scratch_.data(), x * y, z);
    least_of_neighbours(scratch_.data(), spread_.data(), x, y, z);
    least_of_neighbours(spread_.data(), scratch_.data(), 1, x, y * z);
    bool changed = false;
    for (size_t i = 0; i < distance_.size(); ++i) {
      const auto next = static_cast<uint8_t>(std::min<int>(scratch_[i] + 1, distance_[i]));
      changed |= next != distance_[i];
      distance_[i] = next;
    }
    if (!changed) break;
  }
}

void BrickIndex::update(const BrickAtlas& atlas, const ValueRange& range) {
  if (version_ == atlas.version() && range_ == range) return;
  version_ = ~uint64_t{0};
  find_bounds(atlas);
  GLint most = 0;
  gl_.GetIntegerv(GL_MAX_3D_TEXTURE_SIZE, &most);
  if (size_.maxCoeff() > most) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("a volume spans {} x {} x {} bricks; this OpenGL driver has room for {} each way",
                            size_.x(), size_.y(), size_.z(), most));
  }
  const size_t n = size_t(size_.x()) * size_t(size_.y()) * size_t(size_.z());
  entries_.assign(n, 0);
  distance_.assign(n, kFarthest);
  num_full_ = 0;
  for (const BrickAtlas::Brick& b : atlas.bricks()) {
    if (b.stats.max < range.low || b.stats.min > range.high) continue;
    const auto at = [&](int32_t cell, int axis) { return size_t((cell - origin_[axis]) >> 3); };
    const size_t i =
        (at(b.origin.x, 0) * size_t(size_.y()) + at(b.origin.y, 1)) * size_t(size_.z()) + at(b.origin.z, 2);
    const Vec3i place = atlas.place_of(b.slot);
    entries_[i] = kFullBrick | uint32_t(place.x()) | uint32_t(place.y()) << 8 | uint32_t(place.z()) << 16;
    distance_[i] = 0;
    ++num_full_;
  }
  measure_distances();
  for (size_t i = 0; i < n; ++i)
    if (distance_[i] != 0) entries_[i] = distance_[i];
  gl_.ActiveTexture(GL_TEXTURE0);
  gl_.BindTexture(GL_TEXTURE_3D, texture_.id());
  gl_.PixelStorei(GL_UNPACK_ALIGNMENT, 1);
  gl_.TexImage3D(GL_TEXTURE_3D, 0, GL_R32UI, size_.z(), size_.y(), size_.x(), 0, GL_RED_INTEGER,
                 GL_UNSIGNED_INT, entries_.data());
  for (const GLenum filter : {GL_TEXTURE_MIN_FILTER, GL_TEXTURE_MAG_FILTER})
    gl_.TexParameteri(GL_TEXTURE_3D, filter, GL_NEAREST);
  gl_.BindTexture(GL_TEXTURE_3D, 0);
  check_gl(gl_, "copying a volume's index to the graphics device");
  version_ = atlas.version();
  range_ = range;
}

}  // namespace coppice::render
