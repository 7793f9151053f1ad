// Rows of points, dealt out to chunks.
#include "apps/render/point_order.h"

#include <algorithm>
#include <bit>

namespace coppice::render {
namespace {

constexpr size_t kChunkPoints = 16384;  // 4 ms on a software rasterizer
constexpr size_t kMaxChunks = 1024;     // more would cost page faults when points are stored

}  // namespace

PointOrder::PointOrder(size_t n_points) {
  const size_t wanted = (n_points + kChunkPoints - 1) / kChunkPoints;
  const size_t chunks = std::bit_ceil(std::clamp<size_t>(wanted, 1, kMaxChunks));
  bits_ = std::countr_zero(chunks);
  n_full_rows_ = n_points >> bits_;
  begins_.resize(chunks + 1);
  begins_by_place_.resize(chunks);
  for (size_t chunk = 0; chunk < chunks; ++chunk) {
    begins_[chunk + 1] = begins_[chunk] + (n_points + chunks - 1 - reverse_bits(chunk)) / chunks;
    begins_by_place_[reverse_bits(chunk)] = begins_[chunk];
  }
}

size_t PointOrder::point_from_stored(size_t stored) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), stored);
  const size_t chunk = static_cast<size_t>(after - begins_.begin()) - 1;
  const size_t row = stored - begins_[chunk];
  return (row << bits_) + ((reverse_bits(chunk) - turn(row)) & (n_chunks() - 1));
}

size_t PointOrder::reverse_bits(size_t chunk) const {
  size_t reversed = 0;
  for (int bit = 0; bit < bits_; ++bit) reversed |= ((chunk >> bit) & 1) << (bits_ - 1 - bit);
  return reversed;
}

}  // namespace coppice::render
