// The trees of the GPU benchmark. What is given goes to the device's default stream and is not waited for.
#pragma once
#include <cstdint>
#include <optional>

#include "benchmarks/gpu_case.h"
#include "sparse/program.h"
#include "sparse/tree.h"

namespace coppice::bench {

// A cube of two floats per cell in leaves of 8^3, dense where leaves are full, else bitmasked.
class CubeTree {
 public:
  CubeTree(IntrusivePtr<Device> device, int32_t side, Occupancy occupancy);
  AsyncValueRef<Chain> give_stencil();
  void give_poison();
  uint64_t num_active() const { return active_; }
  // Returns the bytes of the 64-byte lines with active cells, once read and once written.
  double least_bytes() const { return least_bytes_; }
  // Compares what the last stencil wrote around the middle with what it should be.
  // Errors: kInternal with the place.
  void wait_check() const;
  // Returns the sum of the values that a stencil writes in the box of 20^3 around the middle.
  double expected_sum() const;

 private:
  void count();
  float expected(int32_t x, int32_t y, int32_t z) const;

  IntrusivePtr<Device> device_;
  int32_t side_;
  Occupancy occupancy_;
  uint64_t active_ = 0;
  double least_bytes_ = 0;
  Program program_;
  Tree tree_;
  std::optional<Node> leaf_;
  Field<float> now_, next_;
};

// Squares of blocks of 8^2 floats, inactive at first, four squares in a row of squares.
class SquaresTree {
 public:
  // `blocks` per axis of a square is a power of two.
  SquaresTree(IntrusivePtr<Device> device, int32_t blocks, int32_t squares);
  AsyncValueRef<Chain> give_activation(int32_t square);              // of every block, by its own coordinate
  AsyncValueRef<Chain> give_writes(int32_t square, bool scattered);  // of every cell
  AsyncValueRef<Chain> give_clear();                                 // deactivates and collects every block
  AsyncValueRef<Chain> give_change();  // reverses the state of one block, so that lists are out of date
  AsyncValueRef<Chain> give_list();    // brings the list of leaves up to date
  uint64_t wait_active_blocks() const { return block_->wait_usage().active_cells; }
  // Returns whether every cell of a square has been written, as far as a row through its middle shows.
  bool wait_is_written(int32_t square) const;
  uint64_t blocks_per_square() const { return uint64_t{1} << (2 * log2_blocks_); }
  int32_t num_squares() const { return squares_; }

 private:
  IntrusivePtr<Device> device_;
  int32_t log2_blocks_, squares_;
  bool first_is_active_ = false;  // of the block that give_change() reverses
  Program program_;
  Tree tree_;
  std::optional<Node> block_, leaf_;
  Field<float> a_;
};

}  // namespace coppice::bench
