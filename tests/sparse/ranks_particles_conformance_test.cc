// Particles and sums over ranks: items that are a rank's own, what they add to cells, and blocks
// beside theirs; and who owns what.
#include <gmock/gmock.h>

#include <random>

#include "gpu/host_access.h"
#include "ranks.kernels.h"
#include "tests/sparse/ranks_test_util.h"

namespace coppice {
namespace {

using testing::HasSubstr;
using Point = std::array<int32_t, 2>;

class RankParticles : public RanksTest {};

// Sends each point to the owner of its cell, as the map on the device and the host's copy say alike.
void wait_migrate(const Cluster& cluster, Program& program, const Node& leaf, std::vector<Point>& points) {
  Device& device = program.device();
  const CellOwners owners(leaf);
  const IntrusivePtr<Buffer> at = wait_device_copy(device, points),
                             to = device.reserve(4 * points.size() + 4, 4 * points.size() + 4);
  finish(program.launch(owners2, own_range(static_cast<int64_t>(points.size())), at->as<const int>(),
                        owners.map(), to->as<unsigned>()));
  std::vector<uint32_t> owner_of(points.size());
  if (!points.empty()) device.wait_copy(owner_of.data(), to->data(), 4 * points.size());
  std::vector<RankLink::Bytes> parts(static_cast<size_t>(cluster.n_ranks()));
  for (size_t i = 0; i < points.size(); ++i) {
    const int32_t cell[2] = {points[i][0], points[i][1]};
    ASSERT_EQ(owners.owner(cell), static_cast<int>(owner_of[i]));
    const auto bytes = std::as_bytes(std::span(points[i]));
    parts[owner_of[i]].insert(parts[owner_of[i]].end(), bytes.begin(), bytes.end());
  }
  points.clear();
  for (const RankLink::Bytes& part : cluster.wait_exchange(std::move(parts))) {
    const size_t before = points.size();
    points.resize(before + part.size() / sizeof(Point));
    if (!part.empty()) std::memcpy(points.data() + before, part.data(), part.size());
  }
}

// Random walkers that see how many are around them, and go by it: a count that is wrong by one anywhere sends
// them elsewhere. The last seeds have a bitmasked leaf, of which the cells around walkers are active.
TEST_P(RankParticles, WalkAsOnOneRank) {
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    expect_same([seed](const std::optional<Cluster>& cluster) {
      constexpr int kHalf = 32, kPoints = 200;
      Tree tree = make_tree(cluster, {.name = "walk", .origin = {-kHalf, -kHalf}});
      const bool is_masked = seed > 4;
      const Node block = tree.root().pointer({16, 16}),
                 leaf = is_masked ? block.bitmasked({4, 4}) : block.dense({4, 4});
      const Field<int> count = leaf.place<int>("count");
      const Field<Momentum> momentum = leaf.place<Momentum>("momentum");
      Program program(share(&tree.storage().device()));
      std::mt19937 random(seed);
      std::vector<Point> points;
      for (int i = 0; i < kPoints; ++i) {
        const auto coord = [&] { return static_cast<int32_t>(random() % (seed % 2 == 0 ? 64 : 12)) - kHalf; };
        const Point p{coord(), coord()};
        if (!cluster || i % cluster->n_ranks() == cluster->rank()) points.push_back(p);
      }
      std::vector<std::vector<std::pair<Coord, int>>> seen;
      for (int step = 0; step < 12; ++step) {
        if (step % 3 == 0) finish(is_masked ? leaf.deactivate_all() : tree.deactivate_all());
        const auto upload = [&] { return wait_device_copy(program.device(), points); };
        IntrusivePtr<Buffer> at = upload();
        const auto items = [&] { return own_range(static_cast<int64_t>(points.size())); };
        program.launch(cover2, items(), leaf.topology(), at->as<const int>(), kHalf);
        if (cluster) {
          wait_migrate(*cluster, program, leaf, points);
          at = upload();
        }
        if (cluster && step % 4 == 2) {
          std::vector<CellWeight> weights;
          for (const Point& p : points) weights.push_back({{p[0], p[1]}, 1});
          wait_balance(leaf, weights);
          wait_migrate(*cluster, program, leaf, points);
          at = upload();
        }
        program.launch(empty2, over(leaf), count, momentum);
        program.launch(scatter2, items(), count, momentum, at->as<const int>(), kHalf);
        finish(program.launch(step2, items(), count, at->as<int>(), kHalf));
        if (!points.empty())
          program.device().wait_copy(points.data(), at->data(), points.size() * sizeof(Point));
        seen.push_back(wait_all_cells(cluster, count));
        // Sums of quarters are exact in any order.
        const ActiveCells<Momentum> own = wait_read_active(momentum);
        double sum = 0;
        for (const Momentum& m : own.values) sum += 4 * m.x + 40 * m.y * m.y;
        seen.back().emplace_back(Coord{}, static_cast<int>(cluster ? cluster->wait_sum(sum) : sum));
      }
      return seen;
    });
  }
}

// Sums that go home when several ranks give to one block, and twice in a row.
TEST_P(RankParticles, GiveToCellsAround) {
  expect_same([](const std::optional<Cluster>& cluster) {
    constexpr int kHalf = 16;
    Tree tree = make_tree(cluster, {.name = "give", .origin = {-kHalf, -kHalf}});
    const Node leaf = tree.root().pointer({8, 8}).dense({4, 4});
    Field<int> a = leaf.place<int>("a"), b = leaf.place<int>("b");
    Program program(share(&tree.storage().device()));
    program.launch(fill2, range(4 * kHalf * kHalf), a, kHalf);
    std::vector<std::vector<std::pair<Coord, int>>> seen;
    for (int step = 0; step < 3; ++step) {
      program.launch(give2, over(leaf), a, b, kHalf);
      program.launch(give2, over(leaf), a, b, kHalf);
      std::swap(a, b);
      seen.push_back(wait_all_cells(cluster, a));
    }
    return seen;
  });
}

TEST_P(RankParticles, ReadTheBlocksAround) {
  expect_same([](const std::optional<Cluster>& cluster) {
    Tree tree = make_tree(cluster, {.name = "around", .origin = {-16, -16}});
    const Node block = tree.root().pointer({8, 8}), leaf = block.dense({4, 4});
    Field<int> a = leaf.place<int>("a"), b = leaf.place<int>("b");
    Program program(share(&tree.storage().device()));
    program.launch(fill2, range(500), a, 16);
    std::vector<std::vector<std::pair<Coord, int>>> seen;
    for (int step = 0; step < 6; ++step) {
      program.launch(around2, over(leaf), a, b);
      std::swap(a, b);
      if (step == 3) finish(block.deactivate({{-4, -1}, {-3, 1}}));
      seen.push_back(wait_all_cells(cluster, a));
    }
    return seen;
  });
}

// Blocks of a long row, of which the last one has half of all the work: parts are even but for a block, and
// values come along.
TEST_P(RankParticles, PartsFollowTheWork) {
  run_on_ranks(n(), [&](std::shared_ptr<RankLink> link) {
    const Cluster cluster(link);
    Tree tree = make_tree(cluster, {.name = "row"});
    const Node leaf = tree.root().pointer({64, 2}).dense({4, 4});
    const Field<int> number = leaf.place<int>("number");
    Program program(share(&tree.storage().device()));
    program.launch(number2, range(256 * 8), number);
    const auto weight_of = [](const Coord& cell) { return cell[0] < 4 * 63 ? uint64_t{1} : uint64_t{63}; };
    const auto own_weights = [&] {
      std::vector<CellWeight> weights;
      for (const Coord& cell : wait_read_active(number).coords)
        if (cell[0] % 4 == 0 && cell[1] == 0) weights.push_back({cell, weight_of(cell)});
      return weights;
    };
    const auto sum_of = [](const std::vector<CellWeight>& weights) {
      uint64_t sum = 0;
      for (const CellWeight& w : weights) sum += w.weight;
      return sum;
    };
    const auto before = wait_all_cells(std::optional(cluster), number);
    ASSERT_EQ(cluster.wait_sum(sum_of(own_weights())), 126u);
    const double uneven = wait_balance(leaf, own_weights());
    EXPECT_EQ(uneven > 1.1, n() > 1);
    const uint64_t most = cluster.wait_max(sum_of(own_weights()));
    EXPECT_LE(most, n() == 1 ? 126u : 63u);
    EXPECT_EQ(cluster.wait_sum(sum_of(own_weights())), 126u);
    EXPECT_EQ(wait_all_cells(std::optional(cluster), number), before);
    EXPECT_LE(wait_balance(leaf, own_weights()), n() == 1 ? 1.0 : 63.0 * n() / 126 + 1e-9);
    // The tree is left so, whatever its number of blocks says.
    program.launch(number2, range(256 * 8), number);
    EXPECT_EQ(cluster.wait_max(sum_of(own_weights())), most);
    EXPECT_EQ(wait_balance(leaf, {}), 1.0) << "without any work";
    if (n() == 1) return;
    const std::vector<CellWeight> all{{{0, 0}, 1}, {{252, 0}, 1}};  // some are not this rank's
    try {
      wait_balance(leaf, all);
      ADD_FAILURE() << "it was not refused";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kOutOfRange);
      EXPECT_THAT(e.what(), HasSubstr("not the rank's own"));
    }
  });
}

TEST_P(RankParticles, RefuseOnAllRanksAlikeWhatTheyDoNotDo) {
  run_on_ranks(n(), [&](std::shared_ptr<RankLink> link) {
    const Cluster cluster(link);
    Tree tree = make_tree(cluster, {.name = "grid"});
    const Node block = tree.root().pointer({32, 32}), leaf = block.dense({4, 4});
    const Field<float> now = leaf.place<float>("now");
    const Field<Mixed> mixed = leaf.place<Mixed>("mixed");
    Program program(share(&tree.storage().device()));
    program.launch(start2, range(64), now, 8, 0, 0);
    EXPECT_THAT(refusal([&] { program.launch(add_mixed2, own_range(4), mixed); }),
                HasSubstr("numbers of several types"));
    EXPECT_THAT(refusal([&] { program.launch(add_range2, range(4), now); }), HasSubstr("own_range() adds"));
    EXPECT_THAT(refusal([&] { program.launch(give_far2, over(leaf), now); }), HasSubstr("9 cells away"));
    EXPECT_THAT(refusal([&] { program.launch(set_own2, own_range(4), now); }), HasSubstr("stores to cells"));
    EXPECT_THAT(refusal([&] { CellOwners{tree.root()}; }), HasSubstr("name a node below it"));
    Tree other(share(&tree.storage().device()), {.name = "other"});
    const Node alone = other.root().pointer({4, 4});
    EXPECT_THAT(refusal([&] { CellOwners{alone}; }), HasSubstr("is not cut over ranks"));
    // The tree is as it was.
    EXPECT_EQ(cluster.wait_sum(leaf.wait_num_active_blocks()), 4u);
  });
}

INSTANTIATE_TEST_SUITE_P(Sparse, RankParticles, kRanksParams, ranks_name);

}  // namespace
}  // namespace coppice
