// Launches over ranks that are given in two parts (sparse/ranks/cut_launch.h): what is computed while
// messages travel, and that nothing else tells the parts from one launch.
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>

#include "ranks.kernels.h"
#include "tests/sparse/ranks_test_util.h"

namespace coppice {
namespace {

constexpr int kRanks = 3;

// Messages of this link take until a number in memory is no longer zero, where there is one to look at.
class WaitingLink final : public RankLink {
 public:
  explicit WaitingLink(std::shared_ptr<RankLink> link) : link_(std::move(link)) {}
  int rank() const override { return link_->rank(); }
  int n_ranks() const override { return link_->n_ranks(); }
  std::vector<Bytes> wait_exchange(std::vector<Bytes> parts) override {
    return link_->wait_exchange(std::move(parts));
  }
  std::vector<Bytes> wait_exchange_known(std::vector<Bytes> parts, std::span<const uint64_t> sizes,
                                         std::span<uint32_t> most) override {
    using Clock = std::chrono::steady_clock;
    const bool has_values = std::ranges::any_of(parts, [](const Bytes& part) { return !part.empty(); });
    for (const auto begin = Clock::now(); watched != nullptr && has_values;) {
      if (__atomic_load_n(watched, __ATOMIC_RELAXED) != 0) {
        ++n_seen;
        break;
      }
      if (Clock::now() - begin > std::chrono::seconds(20)) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return link_->wait_exchange_known(std::move(parts), sizes, most);
  }
  const uint32_t* watched = nullptr;
  int n_seen = 0;

 private:
  std::shared_ptr<RankLink> link_;
};

// A tree of 16 x 16 blocks, all active, on each of some ranks.
struct Grid {
  explicit Grid(const Cluster& cluster, const IntrusivePtr<Device>& given)
      : device(given), tree(cluster, device, {.name = "grid"}), program(device) {
    program.launch(start2, range(64 * 64), now, 64, 0, 0);
    program.launch(smooth2, over(leaf), Smooth{now, next}, 0.5f);
    turns = device->reserve(1024 * sizeof(uint32_t), 1024 * sizeof(uint32_t));
  }
  // Returns, in the order in which the blocks had their turns, their numbers.
  std::vector<uint32_t> order() {
    program.wait();
    const auto* const at = turns->as<const uint32_t>();
    std::vector<uint32_t> numbers(at[0], ~0u);
    for (uint32_t i = 0; i < at[0]; ++i) numbers.at(at[1 + i] - 1) = i;
    return numbers;
  }
  void forget_turns() {
    program.wait();
    std::memset(turns->data(), 0, turns->size_bytes());
  }

  IntrusivePtr<Device> device;
  Tree tree;
  Node leaf = tree.root().pointer({16, 16}).dense({4, 4});
  Field<float> now = leaf.place<float>("now"), next = leaf.place<float>("next"),
               sum = leaf.place<float>("sum");
  Program program;
  IntrusivePtr<Buffer> turns;
};

TEST(RanksParts, TheInteriorIsComputedWhileValuesTravel) {
  run_on_ranks(kRanks, [](std::shared_ptr<RankLink> link) {
    const auto waiting = std::make_shared<WaitingLink>(std::move(link));
    Grid grid(Cluster(waiting), Device::cpu(1));
    grid.forget_turns();
    grid.program.launch(halve2, over(grid.leaf), grid.now);
    waiting->watched = grid.turns->as<const uint32_t>();
    grid.program.launch(smooth_told2, over(grid.leaf), Smooth{grid.now, grid.next},
                        grid.turns->as<uint32_t>());
    waiting->watched = nullptr;
    EXPECT_EQ(waiting->n_seen, 1) << "on rank " << waiting->rank();
  });
}

// Blocks that others are to read are computed and packed first.
TEST(RanksParts, BlocksThatAreMirroredComeFirstWhereTheyAreStored) {
  run_on_ranks(kRanks, [](std::shared_ptr<RankLink> link) {
    Grid grid(Cluster(std::move(link)), Device::cpu(1));
    const uint64_t n = grid.leaf.wait_num_active_blocks();
    std::vector<uint32_t> expected(n);
    std::iota(expected.begin(), expected.end(), 0u);
    for (int time = 0; time < 3; ++time) {
      grid.forget_turns();
      grid.program.launch(turns_of_stores2, over(grid.leaf), grid.now, grid.turns->as<uint32_t>());
      std::vector<uint32_t> order = grid.order();
      ASSERT_EQ(order.size(), n);
      const uint32_t interior = order.front();
      EXPECT_GT(interior, 0u);
      EXPECT_LT(interior, n);
      std::ranges::rotate(order, order.begin() + static_cast<std::ptrdiff_t>(n - interior));
      EXPECT_EQ(order, expected);

      grid.forget_turns();
      grid.program.launch(turns_of_reads2, over(grid.leaf), grid.now, grid.next, grid.turns->as<uint32_t>());
      EXPECT_EQ(grid.order(), expected) << "the interior comes first where values are read";
      grid.program.wait();
      // All blocks have a 1 in front, those of others, too.
      const std::vector<float> line = wait_read(grid.next, {0, 0}, {61, 1});
      for (size_t x = 0; x < line.size() - 4; x += 4) EXPECT_EQ(line[x], 1.0f) << x;
    }
    // Where only every other store is read, one is let go by after each that was packed in vain.
    std::vector<int> packed;
    for (int time = 0; time < 12; ++time) {
      grid.forget_turns();
      grid.program.launch(turns_of_stores2, over(grid.leaf), grid.now, grid.turns->as<uint32_t>());
      const std::vector<uint32_t> order = grid.order();
      ASSERT_EQ(order.size(), n);
      if (order.front() != 0) packed.push_back(time);
      if (time % 2 == 0) continue;
      grid.program.launch(turns_of_reads2, over(grid.leaf), grid.now, grid.next, grid.turns->as<uint32_t>());
    }
    EXPECT_EQ(packed, (std::vector<int>{0, 3, 4, 7, 8, 11}));
  });
}

class RanksPartsOnDevices : public RanksTest {};

// Random numbers follow from a launch's number, which its parts share.
template <class MakeLeaf>
std::vector<std::vector<std::pair<Coord, float>>> run_noise(const std::optional<Cluster>& cluster, int side,
                                                            MakeLeaf make_leaf) {
  Tree tree = make_tree(cluster, {.name = "grid"});
  const Node leaf = make_leaf(tree);
  Field<float> now = leaf.template place<float>("now"), next = leaf.template place<float>("next");
  Program program(share(&tree.storage().device()));
  program.launch(start2, range(side * side), now, side, 0, 0);
  std::vector<std::vector<std::pair<Coord, float>>> seen;
  for (int step = 0; step < 6; ++step) {
    program.launch(noise2, over(leaf), Smooth{now, next}, 0.25f);
    program.launch(halve2, over(leaf), next);
    program.launch(halve2, over(leaf), now);
    std::swap(now, next);
    // Stores between a launch that packs ahead and one that reads.
    if (step % 2 == 0) program.launch(start2, range(9), now, 3, 14 + step, 30);
    program.launch(noise2, over(leaf), Smooth{now, next}, 0.5f);
    std::swap(now, next);
    seen.push_back(wait_all_cells(cluster, now));
  }
  return seen;
}
TEST_P(RanksPartsOnDevices, GiveTheBitsOfOneLaunch) {
  expect_same([](const std::optional<Cluster>& cluster) {
    return run_noise(cluster, 48, [](Tree& tree) { return tree.root().pointer({16, 16}).dense({4, 4}); });
  });
}
TEST_P(RanksPartsOnDevices, GiveTheBitsOfOneLaunchOverMaskedCells) {
  expect_same([](const std::optional<Cluster>& cluster) {
    return run_noise(cluster, 45, [](Tree& tree) { return tree.root().pointer({16, 16}).bitmasked({4, 4}); });
  });
}
// Leaves of which a loop's item has a piece.
TEST_P(RanksPartsOnDevices, GiveTheBitsOfOneLaunchOverPiecesOfLeaves) {
  const int side = std::string_view(GetParam().device) == "simt" ? 110 : 500;
  for (const bool masked : {false, true}) {
    expect_same([masked, side](const std::optional<Cluster>& cluster) {
      return run_noise(cluster, side, [masked](Tree& tree) {
        const Node block = tree.root().pointer({6, 6});
        return masked ? block.bitmasked({96, 96}) : block.dense({96, 96});
      });
    });
  }
}

// A part that fails on one rank is the launch that fails, on all of them, and they go on together.
TEST(RanksParts, AnErrorInOneOfThemIsTheLaunchs) {
  run_on_ranks(kRanks, [](std::shared_ptr<RankLink> link) {
    Grid grid(Cluster(std::move(link)), Device::cpu(1));
    for (int time = 0; time < 2; ++time) {
      grid.program.launch(halve2, over(grid.leaf), grid.now);
      EXPECT_THROW(
          grid.program.launch(smooth_and_add2, over(grid.leaf), Smooth{grid.now, grid.next}, grid.sum),
          Error);
      grid.device->default_stream().clear_error();
      grid.program.launch(start2, range(64 * 64), grid.now, 64, 0, 0);
      grid.program.launch(halve2, over(grid.leaf), grid.now);
      grid.program.launch(turns_of_reads2, over(grid.leaf), grid.now, grid.next, grid.turns->as<uint32_t>());
      for (int x = 0; x < 60; x += 4)
        EXPECT_EQ(wait_read(grid.next, {x, 0}), wait_read(grid.now, {x + 4, 0})) << x;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Sparse, RanksPartsOnDevices, kRanksParams, ranks_name);

}  // namespace
}  // namespace coppice
