// The trees of the GPU benchmark (see gpu_trees.h).
#include "benchmarks/gpu_trees.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "benchmarks/device_speed.h"
#include "core/error.h"
#include "gpu.kernels.h"
#include "sparse/read_back.h"
#include "sparse/tree_storage.h"

namespace coppice::bench {
namespace {

constexpr int32_t kBox = 20;  // cells per axis of what is compared, around the middle

}  // namespace

CubeTree::CubeTree(IntrusivePtr<Device> device, int32_t side, Occupancy occupancy)
    : device_(std::move(device)),
      side_(side),
      occupancy_(occupancy),
      program_(device_),
      tree_(device_, {.name = "cube"}) {
  const int32_t leaves = side / kLeafSide;
  const Node block = tree_.root().pointer({leaves, leaves, leaves});
  leaf_ = occupancy.unit == 1 ? block.bitmasked({kLeafSide, kLeafSide, kLeafSide})
                              : block.dense({kLeafSide, kLeafSide, kLeafSide});
  now_ = leaf_->place<float>("now"), next_ = leaf_->place<float>("next");
  const int64_t n = side;
  wait_done(program_.launch(fill_cube, range(n * n * n), now_, side, occupancy));
  count();
}

AsyncValueRef<Chain> CubeTree::give_stencil() {
  return program_.launch(apply_laplacian, over(*leaf_), Stencil{now_, next_}, kDiffusion);
}
void CubeTree::give_poison() { program_.launch(poison, over(*leaf_), next_); }

// A line is two rows of a leaf; where leaves are full, one cell tells of all of them.
void CubeTree::count() {
  const bool whole_leaves = occupancy_.unit != 1;
  const int32_t rows = whole_leaves ? kLeafSide : 2, step = whole_leaves ? kLeafSide : 1;
  const uint64_t cells = uint64_t(step) * rows * kLeafSide;
  uint64_t lines = 0;
  for (int32_t x = 0; x < side_; x += step) {
    for (int32_t y = 0; y < side_; y += rows) {
      for (int32_t z = 0; z < side_; z += kLeafSide) {
        uint64_t here = 0;
        if (whole_leaves) {
          here = occupancy_.contains(x, y, z) ? cells : 0;
        } else {
          for (int32_t k = 0; k < 2 * kLeafSide; ++k)
            here += occupancy_.contains(x, y + k / kLeafSide, z + k % kLeafSide);
        }
        active_ += here;
        if (here > 0) lines += cells / (2 * kLeafSide);
      }
    }
  }
  least_bytes_ = 2.0 * 64 * static_cast<double>(lines);
}

float CubeTree::expected(int32_t x, int32_t y, int32_t z) const {
  const auto value = [&](int32_t i, int32_t j, int32_t k) {
    const bool is_inside =
        std::min({i, j, k}) >= 0 && std::max({i, j, k}) < side_ && occupancy_.contains(i, j, k);
    return is_inside ? initial_value(i, j, k) : 0.0f;
  };
  const float around = value(x - 1, y, z) + value(x + 1, y, z) + value(x, y - 1, z) + value(x, y + 1, z) +
                       value(x, y, z - 1) + value(x, y, z + 1);
  return value(x, y, z) + kDiffusion * (around - 6 * value(x, y, z));
}

double CubeTree::expected_sum() const {
  const int32_t first = (side_ - kBox) / 2, last = first + kBox;
  double sum = 0;
  for (int32_t x = first; x < last; ++x) {
    for (int32_t y = first; y < last; ++y) {
      for (int32_t z = first; z < last; ++z) sum += occupancy_.contains(x, y, z) ? expected(x, y, z) : 0;
    }
  }
  return sum;
}

void CubeTree::wait_check() const {
  const int32_t width = std::min(side_, kBox), first = (side_ - width) / 2, last = first + width;
  const std::vector<float> values = wait_read(next_, {first, first, first}, {last, last, last});
  size_t at = 0;
  for (int32_t x = first; x < last; ++x) {
    for (int32_t y = first; y < last; ++y) {
      for (int32_t z = first; z < last; ++z, ++at) {
        if (!occupancy_.contains(x, y, z)) continue;
        const float wanted = expected(x, y, z);
        // Values below 1000 and seven terms; NaN is no number of this distance.
        if (std::abs(values[at] - wanted) <= 7 * 1000 * 1.2e-7f) continue;
        throw Error(ErrorCode::kInternal, fmt::format("the stencil wrote {} at ({}, {}, {}) instead of {}",
                                                      values[at], x, y, z, wanted));
      }
    }
  }
}

SquaresTree::SquaresTree(IntrusivePtr<Device> device, int32_t blocks, int32_t squares)
    : device_(std::move(device)),
      log2_blocks_(std::countr_zero(static_cast<uint32_t>(blocks))),
      squares_(squares),
      program_(device_),
      tree_(device_, {.name = "squares"}) {
  block_ = tree_.root().pointer({(squares + 3) / 4 * blocks, std::min(squares, 4) * blocks});
  leaf_ = block_->dense({kLeafSide, kLeafSide});
  a_ = leaf_->place<float>("a");
}

AsyncValueRef<Chain> SquaresTree::give_activation(int32_t square) {
  first_is_active_ |= square == 0;
  return program_.launch(activate_blocks, range(static_cast<int64_t>(blocks_per_square())),
                         block_->topology(), Square{square, log2_blocks_});
}

AsyncValueRef<Chain> SquaresTree::give_writes(int32_t square, bool scattered) {
  first_is_active_ |= square == 0;
  const Loop cells = range(static_cast<int64_t>(blocks_per_square()) * kLeafSide * kLeafSide);
  const Square place{square, log2_blocks_ + std::countr_zero(uint32_t{kLeafSide})};
  return scattered ? program_.launch(write_scattered, cells, a_, place)
                   : program_.launch(write_rows, cells, a_, place);
}

AsyncValueRef<Chain> SquaresTree::give_clear() {
  first_is_active_ = false;
  return block_->deactivate_all();
}

AsyncValueRef<Chain> SquaresTree::give_change() {
  first_is_active_ = !first_is_active_;
  return first_is_active_ ? block_->activate({{0, 0, 0}}) : block_->deactivate({{0, 0, 0}});
}

AsyncValueRef<Chain> SquaresTree::give_list() {
  return device_->default_stream().enqueue(
      "bench.list", [this](InStream& s) { tree_.storage().lists().update(s, leaf_->id(), false); });
}

bool SquaresTree::wait_is_written(int32_t square) const {
  const Square place{square, log2_blocks_ + std::countr_zero(uint32_t{kLeafSide})};
  const int32_t side = 1 << place.log2_side, x = place.x(0) + side / 2, y = place.y(0);
  const std::vector<float> row = wait_read(a_, {x, y}, {x + 1, y + side});
  return std::all_of(row.begin(), row.end(), [](float v) { return v == 2.0f; });
}

}  // namespace coppice::bench
