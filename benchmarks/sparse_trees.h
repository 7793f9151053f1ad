// The trees of the sparse benchmark, and what is timed on them.
#pragma once
#include <memory>
#include <optional>

#include "sparse/program.h"
#include "sparse/tree.h"

namespace coppice::bench {

// (8 * blocks)^2 floats as pointer(blocks^2).dense(8^2), empty at first; blocks is a power of two.
class FillTree {
 public:
  FillTree(IntrusivePtr<Device> device, int32_t blocks);
  void wait_fill();      // writes every cell, row by row, whatever is active
  void wait_fill_box();  // the same, by a loop over the cells of a box
  void wait_activate();  // every block, without a value
  void wait_clear();     // deactivates every block, collection included
  void wait_touch();     // reverses the state of one block, so that lists are out of date
  double wait_list_s();  // brings the loop list up to date; seconds
  uint64_t wait_active_blocks() const;
  double wait_sum() const;
  // Returns how often activations of the cpu device's threads wrote so far to the shared part of the
  // allocator.
  uint64_t shared_writes() const;
  uint64_t num_blocks() const { return uint64_t(blocks_) * static_cast<uint64_t>(blocks_); }
  uint64_t num_cells() const { return num_blocks() * 64; }

 private:
  IntrusivePtr<Device> device_;
  int32_t blocks_;
  Program program_;
  Tree tree_;
  std::optional<Node> block_, leaf_;
  Field<float> a_;
};

// side^2 cells of two floats of which a tenth is active: single cells of bitmasked
// leaves, or whole dense leaves.
class OccupiedTree {
 public:
  OccupiedTree(IntrusivePtr<Device> device, int32_t side, bool whole_leaves);
  void wait_scale();  // b = 2 a + 1, a loop over the active cells
  double wait_sum() const;
  uint64_t num_active() const { return active_; }
  // Bytes of the 64-byte lines that hold active cells of both fields.
  double least_bytes() const;

 private:
  bool is_active(int32_t x, int32_t y) const;

  IntrusivePtr<Device> device_;
  int32_t side_;
  bool whole_leaves_;
  uint64_t active_ = 0;
  Program program_;
  Tree tree_;
  std::optional<Node> leaf_;
  Field<float> a_, b_;
};

// One dense container of two floats below the root: particles, or an image. rows 1: a line.
class LargeTree {
 public:
  LargeTree(IntrusivePtr<Device> device, int32_t rows, int32_t row_cells);
  void wait_iterate();  // b = a + 0.3, 32 times mapped by 3.7 x (1 - x)
  double num_cells() const { return static_cast<double>(rows_) * row_cells_; }

 private:
  IntrusivePtr<Device> device_;
  int32_t rows_, row_cells_;
  Program program_;
  Tree tree_;
  std::optional<Node> cells_;
  Field<float> a_, b_;
};

// `items` integers in one list, or in as many as it takes when each holds 128.
class AppendTree {
 public:
  AppendTree(IntrusivePtr<Device> device, int64_t items, bool many);
  void wait_append();       // all items, in parallel
  void wait_append_bulk();  // the same by one call of the host
  void wait_clear();
  uint64_t shared_writes() const;  // to heads of lists and lines of the allocator, so far
  double wait_sum() const;         // of all elements of all lists
  int64_t num_items() const { return items_; }
  int32_t num_lists() const { return lists_; }

 private:
  IntrusivePtr<Device> device_;
  int64_t items_;
  int32_t lists_;
  Program program_;
  Tree tree_;
  std::optional<Node> list_;
  Field<int32_t> x_;
  IntrusivePtr<Buffer> coords_, values_;  // of all items
};

}  // namespace coppice::bench
