// Transfers by batches and rows (apps/mpm/particle_batch.h) are those node by node, but for rounding.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "apps/mpm/launched.h"
#include "apps/mpm/solver_types.h"
#include "gpu/device.h"
#include "mpm_batches.kernels.h"
#include "sparse/program.h"

namespace coppice::mpm {
namespace {

constexpr float kDx = 0.125f;

// Particles of two groups in one block, all attributes random, on a cpu device's memory.
template <int D>
class OneBlock {
 public:
  using A = Attribute<D>;
  static constexpr int kNodes =
      D == 3 ? kTileSize<D> * kTileSize<D> * kTileSize<D> : kTileSize<D> * kTileSize<D>;

  OneBlock(uint32_t first_group, uint32_t second_group, unsigned seed)
      : n_(first_group + second_group), random_(seed), attributes_(size_t{A::kCount} * stride()) {
    std::uniform_real_distribution<float> place(0.5f, kTileSize<D> - 2.5f);
    for (float& value : attributes_) value = normal();
    for (int64_t i = 0; i < n_; ++i) {
      for (int k = 0; k < D; ++k) attributes_[(A::kPosition + k) * stride() + i] = place(random_) * kDx;
    }
    starts_ = {0, first_group, n_};
    for (Group<D>& group : groups_) group = {};
    groups_[0].mass = 2.0f, groups_[0].volume = 0.1f, groups_[0].cell_share = 0.125f;
    groups_[1].mass = 0.5f, groups_[1].volume = 0.3f, groups_[1].cell_share = 0.25f;
    for (int i = 0; i < 2 * kNodes; ++i) {
      NodeValue node;
      for (float& v : node.v) v = normal();
      tile_.push_back(node);
    }
  }

  StepArguments<D> arguments() {
    StepArguments<D> a{};
    a.particles = {attributes_.data(), stride()};
    a.starts = starts_.data();
    a.groups = groups_;
    a.n_groups = 2;
    a.dx = kDx, a.inv_dx = 1 / kDx, a.dt = 0.01f;
    for (int k = 0; k < D; ++k) a.cells[k] = 64, a.high_wall[k] = 68;
    return a;
  }
  uint32_t n() const { return n_; }
  int64_t stride() const { return n_ + 5; }
  std::vector<float>& attributes() { return attributes_; }
  const std::vector<NodeValue>& tile() const { return tile_; }  // two values of each node

 private:
  float normal() { return std::normal_distribution<float>()(random_); }

  uint32_t n_;
  std::mt19937 random_;
  std::vector<float> attributes_;
  std::vector<uint32_t> starts_;
  Group<D> groups_[2];
  std::vector<NodeValue> tile_;
};

void expect_near(const std::vector<float>& a, const std::vector<float>& b, float bound) {
  ASSERT_EQ(a.size(), b.size());
  size_t differ = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::fabs(a[i] - b[i]) <= bound) continue;
    if (differ++ < 3) ADD_FAILURE() << "number " << i << ": " << a[i] << " and " << b[i];
  }
  EXPECT_EQ(differ, 0u);
}

std::vector<float> numbers(const std::vector<NodeValue>& nodes) {
  std::vector<float> all(4 * nodes.size());
  std::memcpy(all.data(), nodes.data(), all.size() * sizeof(float));
  return all;
}

// A batch, less than one, and what is beyond so many as are put in order at a time.
constexpr uint32_t kSizes[][2] = {{16, 0}, {3, 1}, {0, 31}, {300, 41}, {256, 512}, {1, 1000}};

class Batches : public testing::Test {
 protected:
  IntrusivePtr<Device> device_ = Device::cpu(1);
  Program program_{device_};

  template <int D>
  void expect_same_sums() {
    for (const auto& sizes : kSizes) {
      SCOPED_TRACE(testing::Message() << D << "-D, " << sizes[0] << " and " << sizes[1] << " particles");
      OneBlock<D> block(sizes[0], sizes[1], 7);
      using Tile = std::vector<NodeValue>;
      Tile rows(block.kNodes), nodes = rows, share_rows = rows, share_nodes = rows;
      const StepArguments<D> a = block.arguments();
      wait_done(program_.launch(kernels::scatter_by_rows<D>, range(1), a, rows.data(), share_rows.data()));
      wait_done(program_.launch(kernels::scatter_by_nodes<D>, range(1), a, nodes.data(), share_nodes.data()));
      // A sum of a thousand random numbers of about 1 is about 30.
      expect_near(numbers(rows), numbers(nodes), 1e-4f);
      expect_near(numbers(share_rows), numbers(share_nodes), 1e-4f);
      double mass = 0;
      for (const NodeValue& node : rows) mass += node.v[3];
      EXPECT_NEAR(mass, 2.0 * sizes[0] + 0.5 * sizes[1], 1e-3);
    }
  }

  template <int D>
  void expect_same_motion(float per_density, bool with_nan) {
    for (const auto& sizes : kSizes) {
      SCOPED_TRACE(testing::Message() << D << "-D, " << sizes[0] << " and " << sizes[1] << " particles");
      OneBlock<D> block(sizes[0], sizes[1], 8), other = block;
      std::vector<NodeValue> tile = block.tile();
      if (with_nan) {
        for (NodeValue& node : tile) node.v[1] = std::nanf("");
      }
      float found[3] = {-1, -1, -1}, found_by_nodes[3] = {-2, -2, -2};
      wait_done(program_.launch(kernels::gather_by_rows<D>, range(1), block.arguments(), tile.data(),
                                per_density, &found[0]));
      wait_done(program_.launch(kernels::gather_by_nodes<D>, range(1), other.arguments(), tile.data(),
                                per_density, &found_by_nodes[0]));
      EXPECT_EQ(found[1], found_by_nodes[1]);
      EXPECT_EQ(found[2], with_nan ? 1.0f : 0.0f);
      EXPECT_EQ(found_by_nodes[2], with_nan ? 1.0f : 0.0f);
      if (with_nan) continue;
      EXPECT_NEAR(found[0], found_by_nodes[0], 1e-4f);
      EXPECT_GT(found[0], 0.0f);
      // Gradients are sums of about 1, times 4 / dx.
      expect_near(block.attributes(), other.attributes(), 1e-4f);
    }
  }

  template <int D>
  void expect_same_wide() {
    OneBlock<D> block(160, 160, 9);
    std::vector<float> rows(size_t{37} * block.n()), nodes = rows;
    wait_done(program_.launch(kernels::take_wide<D>, range(1), block.arguments(), block.tile().data(),
                              rows.data(), nodes.data()));
    expect_near(rows, nodes, 1e-5f);
    EXPECT_NE(rows[32], 0.0f) << "there is no moment to compare";
  }
};

TEST_F(Batches, AreTransposed) {
  std::vector<float> numbers(256);
  for (int i = 0; i < 256; ++i) numbers[i] = static_cast<float>(i);
  wait_done(program_.launch(kernels::transpose_numbers, range(1), numbers.data()));
  for (int i = 0; i < 256; ++i) EXPECT_EQ(numbers[i], static_cast<float>(i % 16 * 16 + i / 16));
}

TEST_F(Batches, GiveTheirNodesTheSame) {
  expect_same_sums<2>();
  expect_same_sums<3>();
}

TEST_F(Batches, TakeTheSameFromTheirNodes) {
  expect_same_motion<2>(0.0f, false);
  expect_same_motion<3>(0.0f, false);
  expect_same_motion<3>(2.0f, false);
}

TEST_F(Batches, TellOfWhatIsNotANumber) {
  expect_same_motion<2>(0.0f, true);
  expect_same_motion<3>(0.0f, true);
}

TEST_F(Batches, TakeTheSameFromWideNodes) {
  expect_same_wide<2>();
  expect_same_wide<3>();
}

}  // namespace
}  // namespace coppice::mpm
