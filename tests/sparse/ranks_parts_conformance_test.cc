// Launches over ranks that are given in two parts (sparse/ranks/cut_launch.h): what is computed while
// messages travel, and that nothing else tells the parts from one launch.
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>

#include "ranks.kernels.h"
#include "sparse/reductions.h"
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
  // Launches use `turns` until they are done.
  ~Grid() { wait(device->default_stream().barrier()); }

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
               sum = leaf.place<float>("sum"), out = leaf.place<float>("out");
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

// Returns how many cells beside blocks' first ones have other values than their owners say.
int wait_count_wrong(Grid& grid, const Field<float>& field) {
  int wrong = 0;
  for (int dx = -1; dx <= 1; ++dx) {
    for (int dy = -1; dy <= 1; ++dy) {
      grid.program.launch(beside2, over(grid.leaf), field, grid.out, dx, dy);
      const std::vector<float> read = wait_read(grid.out, {0, 0}, {64, 64}),
                               own = wait_read(field, {0, 0}, {64, 64});
      for (int x = 4; x < 60; x += 4)
        for (int y = 4; y < 60; y += 4)
          wrong += read[static_cast<size_t>(64 * x + y)] !=
                   own[static_cast<size_t>(64 * (x + 4 * dx) + y + 4 * dy)];
    }
  }
  return wrong;
}

// Behind an error mirrors are what their owners have, whichever launches were skipped where.
TEST(RanksParts, MirrorsAreRightBehindAnInteriorThatFails) {
  run_on_ranks(kRanks, [](std::shared_ptr<RankLink> link) {
    Grid grid(Cluster(std::move(link)), Device::cpu(1));
    grid.program.launch(halve2, over(grid.leaf), grid.now);
    EXPECT_THROW(grid.program.launch(smooth_and_add2, over(grid.leaf), Smooth{grid.now, grid.next}, grid.sum),
                 Error);
    grid.device->default_stream().clear_error();
    EXPECT_EQ(wait_count_wrong(grid, grid.now), 0);
  });
}
TEST(RanksParts, MirrorsAreRightBehindAFailureThatWasPackedAhead) {
  run_on_ranks(kRanks, [](std::shared_ptr<RankLink> link) {
    Grid grid(Cluster(std::move(link)), Device::cpu(1));
    Program checked(grid.device, {.checks = true});
    checked.launch(store_or_fail2, over(grid.leaf), grid.now, 1u, 7.0f);
    bool has_thrown = false;
    try {
      grid.program.launch(beside2, over(grid.leaf), grid.now, grid.out, 1, 0);
      wait_sum(grid.out);
    } catch (const Error&) {
      has_thrown = true;
    }
    EXPECT_TRUE(has_thrown) << "on all ranks, at the exchange or at the reduction behind it";
    grid.device->default_stream().clear_error();
    EXPECT_EQ(wait_count_wrong(grid, grid.now), 0);
  });
}
TEST(RanksParts, MirrorsOfAllTreesAreRightBehindAnError) {
  run_on_ranks(kRanks, [](std::shared_ptr<RankLink> link) {
    const Cluster cluster(std::move(link));
    Grid grid(cluster, Device::cpu(1)), other(cluster, grid.device);
    Program checked(grid.device, {.checks = true});
    other.program.launch(halve2, over(other.leaf), other.now);
    checked.launch(store_or_fail2, over(grid.leaf), grid.next, 1u, 7.0f);
    EXPECT_THROW(
        {
          other.program.launch(beside2, over(other.leaf), other.now, other.out, 1, 0);
          grid.program.launch(smooth2, over(grid.leaf), Smooth{grid.next, grid.now}, 0.5f);
        },
        Error);
    grid.device->default_stream().clear_error();
    EXPECT_EQ(wait_count_wrong(other, other.now), 0);
    EXPECT_EQ(wait_count_wrong(grid, grid.next), 0);
  });
}
TEST(RanksParts, MirrorsThatWereClearedForASumThatWasNotGivenAreRight) {
  run_on_ranks(kRanks, [](std::shared_ptr<RankLink> link) {
    Grid grid(Cluster(std::move(link)), Device::cpu(1));
    Program checked(grid.device, {.checks = true});
    grid.program.launch(smooth2, over(grid.leaf), Smooth{grid.now, grid.sum}, 0.5f);
    grid.program.launch(smooth2, over(grid.leaf), Smooth{grid.sum, grid.next}, 0.5f);
    checked.launch(store_or_fail2, over(grid.leaf), grid.next, 1u, 7.0f);
    EXPECT_THROW(grid.program.launch(add_to_own2, over(grid.leaf), grid.sum), Error);
    grid.device->default_stream().clear_error();
    EXPECT_EQ(wait_count_wrong(grid, grid.sum), 0);
  });
}
TEST(RanksParts, AnErrorThatWasClearedDoesNotComeAgain) {
  run_on_ranks(kRanks, [](std::shared_ptr<RankLink> link) {
    const int rank = link->rank();
    Grid grid(Cluster(std::move(link)), Device::cpu(1));
    Program checked(grid.device, {.checks = true});
    checked.launch(store_or_fail2, over(grid.leaf), grid.now, rank == 2 ? 1u : 0u, 7.0f);
    EXPECT_THROW(wait_read(grid.next, {0, 0}), Error);
    grid.device->default_stream().clear_error();
    EXPECT_NO_THROW(wait_read(grid.next, {0, 0}));
    EXPECT_NO_THROW(grid.program.launch(beside2, over(grid.leaf), grid.now, grid.out, 1, 0));
    EXPECT_EQ(wait_count_wrong(grid, grid.now), 0);
  });
}

// A launch that throws has ended: what its pointers lead to may go.
TEST(RanksParts, ALaunchThatThrowsHasEnded) {
  run_on_ranks(kRanks, [](std::shared_ptr<RankLink> link) {
    const int rank = link->rank();
    Grid grid(Cluster(std::move(link)), Device::cpu(1));
    Program checked(grid.device, {.checks = true});
    grid.forget_turns();
    checked.launch(store_or_fail2, over(grid.leaf), grid.next, rank == 2 ? 1u : 0u, 7.0f);
    EXPECT_THROW(grid.program.launch(turns_of_reads2, over(grid.leaf), grid.next, grid.out,
                                     grid.turns->as<uint32_t>()),
                 Error);
    // An interior that ran, or none.
    const uint32_t turns = __atomic_load_n(grid.turns->as<const uint32_t>(), __ATOMIC_RELAXED);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(__atomic_load_n(grid.turns->as<const uint32_t>(), __ATOMIC_RELAXED), turns);
  });
}

// Fields that are stored by launches of their own are packed ahead each, and sent together.
TEST(RanksParts, TwoFieldsArePackedAheadByTheirLaunches) {
  run_on_ranks(kRanks, [](std::shared_ptr<RankLink> link) {
    const auto waiting = std::make_shared<WaitingLink>(std::move(link));
    Grid grid(Cluster(waiting), Device::cpu(1));
    int n_packed = 0;
    for (int step = 0; step < 10; ++step) {
      for (const Field<float>& field : {grid.now, grid.next}) {
        grid.forget_turns();
        grid.program.launch(turns_of_stores2, over(grid.leaf), field, grid.turns->as<uint32_t>());
        n_packed += grid.order().front() != 0 ? 1 : 0;
      }
      const uint64_t before = grid.tree.storage().cut().cluster().traffic().rounds;
      grid.program.launch(read_two2, over(grid.leaf), ReadTwo{grid.now, grid.next, grid.sum});
      EXPECT_EQ(grid.tree.storage().cut().cluster().traffic().rounds, before + 1);
    }
    EXPECT_EQ(n_packed, 19) << "`next` was not read around before the first step";
  });
}
// A field that was read around once, and is not read any more, is not sent for ever.
TEST(RanksParts, FieldsThatAreReadAreSentAlone) {
  run_on_ranks(kRanks, [](std::shared_ptr<RankLink> link) {
    uint64_t bytes[2] = {};
    for (const bool once : {false, true}) {
      const Cluster cluster(link);
      Grid grid(cluster, Device::cpu(1));
      if (once) grid.program.launch(smooth2, over(grid.leaf), Smooth{grid.sum, grid.next}, 0.5f);
      const uint64_t before = cluster.traffic().bytes_sent;
      for (int step = 0; step < 20; ++step) {
        grid.program.launch(store_two2, over(grid.leaf), StoreTwo{grid.now, grid.sum});
        grid.program.launch(smooth2, over(grid.leaf), Smooth{grid.now, grid.next}, 0.5f);
      }
      bytes[once] = cluster.traffic().bytes_sent - before;
    }
    EXPECT_EQ(bytes[0], bytes[1]);
  });
}

INSTANTIATE_TEST_SUITE_P(Sparse, RanksPartsOnDevices, kRanksParams, ranks_name);

}  // namespace
}  // namespace coppice
