// Points are stored for drawing in this order: any first part of it is a fair sample of them all.
//
// Points are taken in rows of n_chunks. Each row gives one point to each chunk, in an order of bits reversed,
// so that the first m chunks have every (n_chunks / m)-th point of a row; the row's turn is random, so that
// nothing regular in the points shows. With 4 chunks and turns 0, 3:
//
//   points:   0  1  2  3 |  4  5  6  7        stored:  chunk 0: 0 5 ...   chunk 1: 2 7 ...
//   chunks:   0  2  1  3 |  3  0  2  1                 chunk 2: 1 6 ...   chunk 3: 3 4 ...
//
// Points that come in block order are spread over space by this more evenly than by a random choice. Within a
// chunk, neighbours in memory are neighbours in space, and a chunk is one contiguous range: drawing it reads
// nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "apps/render/scatter.h"

namespace coppice::render {

class PointOrder {
 public:
  explicit PointOrder(size_t n_points = 0);

  size_t n_points() const { return begins_.back(); }
  size_t n_chunks() const { return begins_.size() - 1; }  // a power of two
  // Returns where a chunk starts; chunk_begin(n_chunks()) is n_points().
  size_t chunk_begin(size_t chunk) const { return begins_[chunk]; }

  size_t stored_from_point(size_t point) const {
    const size_t row = point >> bits_;
    return begins_by_place_[(point + turn(row)) & (n_chunks() - 1)] + row;
  }
  size_t point_from_stored(size_t stored) const;

 private:
  size_t reverse_bits(size_t chunk) const;
  // The last row may lack points at its end, so that it must not be turned.
  size_t turn(size_t row) const { return row < n_full_rows_ ? scatter(row) : 0; }

  int bits_ = 0;
  size_t n_full_rows_ = 0;
  std::vector<size_t> begins_;           // size_t[n_chunks + 1]
  std::vector<size_t> begins_by_place_;  // size_t[n_chunks]; of the chunk of a place in a row that was turned
};

}  // namespace coppice::render
