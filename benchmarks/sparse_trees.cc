// The trees of the sparse benchmark (see sparse_trees.h).
#include "benchmarks/sparse_trees.h"

#include <bit>
#include <numeric>

#include "benchmarks/device_speed.h"
#include "benchmarks/measure.h"
#include "benchmarks/sparse_case.h"
#include "sparse.kernels.h"
#include "sparse/bulk_append.h"
#include "sparse/read_back.h"
#include "sparse/tree_storage.h"

namespace coppice::bench {
namespace {

// Returns how often threads wrote to the memory of a tree that all of them share.
uint64_t shared_writes_of(const Tree& tree) {
  const device::TreeState& state = *tree.storage().memory().state();
  uint64_t writes = 0;
  for (uint64_t w = 0; w < state.num_workers; ++w) writes += state.workers[w].shared_writes;
  return writes;
}

double sum_of(const Field<float>& field, int32_t side) {
  const std::vector<float> values = wait_read(field, {0, 0}, {side, side});
  return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace

FillTree::FillTree(IntrusivePtr<Device> device, int32_t blocks)
    : device_(std::move(device)), blocks_(blocks), program_(device_), tree_(device_, {.name = "fill"}) {
  block_ = tree_.root().pointer({blocks, blocks});
  leaf_ = block_->dense({kLeafSide, kLeafSide});
  a_ = leaf_->place<float>("a");
}

void FillTree::wait_fill() {
  wait_done(program_.launch(fill_square, range(static_cast<int64_t>(num_cells())), a_,
                            std::countr_zero(static_cast<uint32_t>(blocks_ * kLeafSide))));
}
void FillTree::wait_fill_box() {
  const int32_t side = blocks_ * kLeafSide;
  wait_done(program_.launch(fill_cell, over_box(*leaf_, {0, 0}, {side, side}), a_));
}
void FillTree::wait_activate() {
  wait_done(program_.launch(activate_square, range(static_cast<int64_t>(num_blocks())), block_->topology(),
                            std::countr_zero(static_cast<uint32_t>(blocks_))));
}
void FillTree::wait_clear() { wait_done(block_->deactivate_all()); }

void FillTree::wait_touch() {
  wait_done(block_->wait_is_active({0, 0, 0}) ? block_->deactivate({{0, 0, 0}})
                                              : block_->activate({{0, 0, 0}}));
}

double FillTree::wait_list_s() {
  double seconds = 0;
  wait_done(device_->default_stream().enqueue("bench.list", [&](InStream& s) {
    const Clock::time_point start = Clock::now();
    tree_.storage().lists().update(s, leaf_->id(), false);
    seconds = seconds_since(start);
  }));
  return seconds;
}

uint64_t FillTree::shared_writes() const { return shared_writes_of(tree_); }
uint64_t FillTree::wait_active_blocks() const { return block_->wait_usage().active_cells; }
double FillTree::wait_sum() const { return sum_of(a_, blocks_ * kLeafSide); }

OccupiedTree::OccupiedTree(IntrusivePtr<Device> device, int32_t side, bool whole_leaves)
    : device_(std::move(device)),
      side_(side),
      whole_leaves_(whole_leaves),
      program_(device_),
      tree_(device_, {.name = "occupied"}) {
  const Node block = tree_.root().pointer({side / kLeafSide, side / kLeafSide});
  leaf_ = whole_leaves ? block.dense({kLeafSide, kLeafSide}) : block.bitmasked({kLeafSide, kLeafSide});
  a_ = leaf_->place<float>("a"), b_ = leaf_->place<float>("b");
  wait_done(
      program_.launch(fill_occupied, range(int64_t{side} * side), a_, side, whole_leaves ? kLeafSide : 1));
  for (int32_t x = 0; x < side; ++x) {
    for (int32_t y = 0; y < side; ++y) active_ += is_active(x, y);
  }
}

bool OccupiedTree::is_active(int32_t x, int32_t y) const {
  const int32_t unit = whole_leaves_ ? kLeafSide : 1;
  return is_occupied(x / unit, y / unit);
}

void OccupiedTree::wait_scale() {
  wait_done(program_.launch(scale_and_shift, over(*leaf_), Scaling{a_, b_}));
}
double OccupiedTree::wait_sum() const { return sum_of(b_, side_); }

double OccupiedTree::least_bytes() const {
  size_t lines = 0;  // of a leaf's 8 x 8 values: two rows each
  for (int32_t x = 0; x < side_; x += 2) {
    for (int32_t y = 0; y < side_; y += kLeafSide) {
      bool any = false;
      for (int32_t k = 0; k < 2 * kLeafSide; ++k) any |= is_active(x + k / kLeafSide, y + k % kLeafSide);
      lines += any;
    }
  }
  return 2.0 * 64 * static_cast<double>(lines);
}

LargeTree::LargeTree(IntrusivePtr<Device> device, int32_t rows, int32_t row_cells)
    : device_(std::move(device)),
      rows_(rows),
      row_cells_(row_cells),
      program_(device_),
      tree_(device_, {.name = "large"}) {
  cells_ = rows == 1 ? tree_.root().dense({row_cells}) : tree_.root().dense({rows, row_cells});
  a_ = cells_->place<float>("a"), b_ = cells_->place<float>("b");
}
void LargeTree::wait_iterate() {
  const Scaling fields{a_, b_};
  wait_done(rows_ == 1 ? program_.launch(iterate_line, over(*cells_), fields)
                       : program_.launch(iterate_image, over(*cells_), fields));
}

AppendTree::AppendTree(IntrusivePtr<Device> device, int64_t items, bool many)
    : device_(std::move(device)),
      items_(items),
      lists_(many ? static_cast<int32_t>(items / kListLength) : 1),
      program_(device_),
      tree_(device_, {.name = "append"}) {
  list_ = tree_.root().dense({lists_}).dynamic(static_cast<int32_t>(items / lists_),
                                               many ? kShortListChunk : kLongListChunk);
  x_ = list_->place<int32_t>("x");
  std::vector<int32_t> coords, values;
  for (int32_t at = 0; at < items; ++at) {
    coords.insert(coords.end(), {0, 0, at & (lists_ - 1)});
    values.push_back(at);
  }
  coords_ = wait_device_copy(*device_, coords), values_ = wait_device_copy(*device_, values);
}
void AppendTree::wait_append_bulk() {
  wait_done(append(x_, coords_->as<int32_t>(), values_->as<int32_t>(), static_cast<uint64_t>(items_)));
}
void AppendTree::wait_append() { wait_done(program_.launch(append_items, range(items_), x_, lists_)); }
uint64_t AppendTree::shared_writes() const { return shared_writes_of(tree_); }
void AppendTree::wait_clear() { wait_done(list_->deactivate_all()); }

double AppendTree::wait_sum() const {
  double sum = 0;
  for (int32_t at = 0; at < lists_; ++at) {
    for (const int32_t v : wait_read_list(x_, at)) sum += v;
  }
  return sum;
}

}  // namespace coppice::bench
