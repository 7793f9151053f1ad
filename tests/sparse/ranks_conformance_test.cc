// Trees over ranks: the same program on several ranks, which are threads here, gives each bit that it gives
// on a tree of one.
#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <set>

#include "ranks.kernels.h"
#include "sparse/function.h"
#include "sparse/reductions.h"
#include "sparse/topology_tools.h"
#include "tests/sparse/ranks_test_util.h"

namespace coppice {
namespace {

using testing::HasSubstr;
class Ranks : public RanksTest {};

TEST_P(Ranks, AStencilOverAGrowingTree) {
  expect_same([](const std::optional<Cluster>& cluster) {
    Tree tree = make_tree(cluster, {.origin = {-64, -64}});
    const Node leaf = tree.root().pointer({16, 16}).dense({8, 8});
    Field<float> now = leaf.place<float>("now"), next = leaf.place<float>("next");
    Program program(share(&tree.storage().device()));
    program.launch(start2, range(400), now, 20, -10, -10);
    std::vector<std::vector<std::pair<Coord, float>>> seen;
    for (int step = 0; step < 12; ++step) {
      for (int side = -1; side <= 1; side += 2) {
        program.launch(spread2, over(leaf), now, leaf.topology(), side, 0, 64);
        program.launch(spread2, over(leaf), now, leaf.topology(), 0, side, 64);
      }
      program.launch(smooth2, over(leaf), Smooth{now, next}, 0.5f);
      std::swap(now, next);
      seen.push_back(wait_all_cells(cluster, now));
    }
    EXPECT_GT(seen.back().size(), seen.front().size());
    const std::vector<float> line = wait_read(now, {-64, 0}, {64, 2});
    seen.emplace_back();
    for (const float u : line) seen.back().emplace_back(Coord{}, u);
    return seen;
  });
}

// Through two pointer nodes, with fields side by side, a field on the pointer node, and a stencil two cells
// wide.
TEST_P(Ranks, AWideStencilInThreeDimensions) {
  expect_same([](const std::optional<Cluster>& cluster) {
    Tree tree = make_tree(cluster, {.name = "three"});
    const Node block = tree.root().pointer({4, 4, 4}).pointer({4, 4, 4});
    const Node leaf = block.dense({4, 4, 4}).layout(CellLayout::kArrayOfStructs),
               other = block.dense({2, 2, 2});
    Field<float> now = leaf.place<float>("now"), next = leaf.place<float>("next");
    leaf.place<double>("unused"), other.place<uint8_t>("byte"), block.place<int>("number");
    Program program(share(&tree.storage().device()));
    program.launch(start3, range(1000), now, 10, 27);
    std::vector<std::vector<std::pair<Coord, float>>> seen;
    for (int step = 0; step < 6; ++step) {
      program.launch(spread3, over(leaf), now, leaf.topology(), 1, 0, -1);
      program.launch(spread3, over(leaf), now, leaf.topology(), -1, 1, 0);
      program.launch(smooth3, over(leaf), Smooth3{now, next}, 0.1f);
      std::swap(now, next);
      seen.push_back(wait_all_cells(cluster, now));
    }
    return seen;
  });
}

// Random activations and deactivations, by the host and by kernels, near and far, between stencils and
// updates.
TEST_P(Ranks, RandomProgramsGiveTheSameBits) {
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    expect_same([seed](const std::optional<Cluster>& cluster) {
      std::mt19937 random(seed);
      const auto draw = [&](int most) { return static_cast<int>(random() % static_cast<uint32_t>(most)); };
      Tree tree = make_tree(cluster, {.name = "random", .origin = {-40, -40}});
      const Node block = tree.root().pointer({20, 20}), leaf = block.dense({4, 4});
      Field<float> now = leaf.place<float>("now"), next = leaf.place<float>("next");
      const Field<int> age = leaf.place<int>("age");
      Program program(share(&tree.storage().device()));
      std::vector<std::vector<std::pair<Coord, float>>> seen;
      for (int step = 0; step < 40; ++step) {
        switch (draw(8)) {
          case 0: {
            const int side = 2 + draw(20);
            program.launch(start2, range(side * side), now, side, draw(40) - 40, draw(40) - 40);
            break;
          }
          case 1: {
            std::vector<Coord> coords;
            for (int i = draw(6); i >= 0; --i) coords.push_back({draw(80) - 40, draw(80) - 40, 0});
            finish(leaf.activate(coords));
            break;
          }
          case 2: {
            std::vector<Coord> coords;
            for (int i = draw(30); i >= 0; --i) coords.push_back({draw(20) - 10, draw(20) - 10, 0});
            finish(block.deactivate(coords));
            break;
          }
          case 3:
            program.launch(spread2, over(leaf), now, leaf.topology(), draw(9) - 4, draw(9) - 4, 40);
            break;
          case 4:
            program.launch(age2, over(leaf), age, step);
            break;
          case 5:
            program.launch(mix2, over(leaf), now, age, next);
            std::swap(now, next);
            break;
          case 6:
            if (draw(6) == 0) finish(tree.deactivate_all());
            break;
          default:
            program.launch(smooth2, over(leaf), Smooth{now, next}, 0.7f);
            std::swap(now, next);
        }
        if (step % 4 == 3) seen.push_back(wait_all_cells(cluster, now));
      }
      seen.push_back(wait_all_cells(cluster, now));
      return seen;
    });
  }
}

TEST_P(Ranks, PartsAreEvenAndReductionsAreOfOwnCells) {
  run_on_ranks(n(), [&](std::shared_ptr<RankLink> link) {
    const Cluster cluster(link);
    Tree tree = make_tree(cluster);
    const Node leaf = tree.root().pointer({32, 32}).dense({4, 4});
    const Field<float> now = leaf.place<float>("now"), next = leaf.place<float>("next");
    Program program(share(&tree.storage().device()));
    // In a corner, which the first cut gives to one rank.
    program.launch(start2, range(32 * 32), now, 32, 0, 0);
    program.launch(smooth2, over(leaf), Smooth{now, next}, 0.5f);
    const uint64_t own = leaf.wait_num_active_blocks();
    EXPECT_EQ(cluster.wait_sum(own), 64u);
    EXPECT_LE(own, (64u + cluster.n_ranks() - 1) / cluster.n_ranks() * 5 / 4);
    double expected = 0;
    for (uint32_t i = 0; i < 1024; ++i)
      expected += wait_read(now, {static_cast<int>(i / 32), static_cast<int>(i % 32)});
    EXPECT_EQ(cluster.wait_sum(wait_sum(now)), expected);
    EXPECT_EQ(cluster.wait_max(static_cast<double>(wait_max(now))), [&] {
      const std::vector<float> all = wait_read(now, {0, 0}, {32, 32});
      return static_cast<double>(*std::max_element(all.begin(), all.end()));
    }());
  });
}

// Answers to the host are the same on all ranks, whoever owns the cells.
TEST_P(Ranks, AnswerTheHostAlike) {
  expect_same([](const std::optional<Cluster>& cluster) {
    Tree tree = make_tree(cluster);
    const Node block = tree.root().pointer({8, 8}), leaf = block.dense({4, 4});
    const Field<float> now = leaf.place<float>("now"), next = leaf.place<float>("next");
    const Field<int> number = block.place<int>("number");
    Program program(share(&tree.storage().device()));
    program.launch(number2, range(40), number);
    program.launch(start2, range(64), now, 8, 4, 4);
    program.launch(smooth2, over(leaf), Smooth{now, next}, 0.5f);
    std::vector<std::vector<std::pair<Coord, int>>> seen{wait_all_cells(cluster, number)};
    seen.emplace_back();
    for (int i = 0; i < 32; ++i)
      seen.back().emplace_back(Coord{i, 0, 0}, static_cast<int>(leaf.wait_is_active({i, 2 * i % 32})));
    uint64_t version = leaf.wait_topology_version();
    const auto has_changed = [&] {
      return static_cast<int>(std::exchange(version, leaf.wait_topology_version()) != version);
    };
    seen.back().emplace_back(Coord{}, has_changed());
    finish(leaf.activate({{30, 30}}));
    seen.back().emplace_back(Coord{}, has_changed());
    return seen;
  });
}

// An error that one rank has is an error of all, and they go on together.
TEST_P(Ranks, ALaunchThatFailsOnOneRankFailsOnAll) {
  std::atomic<int> n_failed{0};
  run_on_ranks(n(), [&](std::shared_ptr<RankLink> link) {
    const Cluster cluster(link);
    Tree tree = make_tree(cluster, {.name = "grid"});
    const Node leaf = tree.root().pointer({16, 16}).dense({4, 4});
    const Field<float> now = leaf.place<float>("now"), next = leaf.place<float>("next");
    const IntrusivePtr<Device> device = share(&tree.storage().device());
    Program program(device);
    program.launch(start2, range(4), now, 2, 60, 60);                         // one block, of one rank
    program.launch(spread2, over(leaf), now, leaf.topology(), 10, 10, 1000);  // out of the domain
    try {
      program.launch(smooth2, over(leaf), Smooth{now, next}, 0.5f);
      wait_read(next, {60, 60});
    } catch (const Error& e) {
      ++n_failed;
      EXPECT_TRUE(e.code() == ErrorCode::kOutOfRange || e.code() == ErrorCode::kUnavailable) << e.what();
    }
    device->default_stream().clear_error();
    program.launch(smooth2, over(leaf), Smooth{now, next}, 0.5f);
    EXPECT_EQ(cluster.wait_sum(leaf.wait_num_active_blocks()), 1u);
  });
  EXPECT_EQ(n_failed, n());
}

TEST_P(Ranks, RefuseOnAllRanksAlikeWhatTheyDoNotDo) {
  run_on_ranks(n(), [&](std::shared_ptr<RankLink> link) {
    const Cluster cluster(link);
    Tree tree = make_tree(cluster, {.name = "grid"});
    const Node block = tree.root().pointer({32, 32}), leaf = block.dense({4, 4});
    const Field<float> now = leaf.place<float>("now"), next = leaf.place<float>("next");
    Program program(share(&tree.storage().device()));
    program.launch(start2, range(64), now, 8, 0, 0);
    EXPECT_THAT(refusal([&] { program.launch(read_anywhere2, over(leaf), now, next); }),
                HasSubstr("read by coordinate"));
    EXPECT_THAT(refusal([&] { program.launch(store_anywhere2, over(leaf), now); }),
                HasSubstr("other cells than its own"));
    EXPECT_THAT(refusal([&] { program.launch(deactivate2, over(leaf), leaf.topology()); }),
                HasSubstr("deactivates cells"));
    EXPECT_THAT(refusal([&] { program.launch(test2, over(leaf), leaf.topology(), next); }),
                HasSubstr("which cells are active"));
    EXPECT_THAT(refusal([&] {
                  program.launch(far2, over(leaf), Far{now, next});
                }),
                HasSubstr("9 cells away"));
    float out[4] = {};
    EXPECT_THAT(refusal([&] { program.launch(read_range2, range(4), now, static_cast<float*>(out)); }),
                HasSubstr("read by coordinate"));
    EXPECT_THAT(refusal([&] {
                  program.launch(smooth2, over_box(leaf, {0, 0}, {8, 8}), Smooth{now, next}, 1.0f);
                }),
                HasSubstr("over a box"));
    EXPECT_THAT(refusal([&] {
                  program.bind(smooth2, over(leaf), Smooth{now, next}, 1.0f);
                }),
                HasSubstr("not bound or traced"));
    EXPECT_THAT(refusal([&] {
                  trace(share(&tree.storage().device()), [&] {
                    program.launch(smooth2, over(leaf), Smooth{now, next}, 1.0f);
                  });
                }),
                HasSubstr("not bound or traced"));
    EXPECT_THAT(refusal([&] { program.launch(add_range2, range(4), now); }),
                HasSubstr("adds to active cells"));
    Tree small(share(&tree.storage().device()), {.name = "small"});
    const Field<float> sum = small.root().pointer({1, 1}).dense({1, 1}).place<float>("sum");
    EXPECT_THAT(refusal([&] { program.launch(sum_elsewhere2, over(leaf), now, sum); }),
                HasSubstr("is each rank's own"));
    EXPECT_THAT(refusal([&] { block.wait_num_active_blocks(); }), HasSubstr("name a node below it"));
    EXPECT_THAT(refusal([&] { dilate(leaf, Neighbourhood::kFaces); }), HasSubstr("cut over ranks"));
    EXPECT_THAT(refusal([&] { prune(leaf); }), HasSubstr("cut over ranks"));
    // And the tree is as it was.
    program.launch(smooth2, over(leaf), Smooth{now, next}, 0.5f);
    EXPECT_EQ(cluster.wait_sum(leaf.wait_num_active_blocks()), 4u);

    const auto refused_tree = [&](auto describe) {
      Tree other = make_tree(cluster, {.name = "other"});
      describe(other.root());
      return refusal([&] { other.freeze(); });
    };
    EXPECT_THAT(refused_tree([](const Node& root) { root.dense({4, 4}); }), HasSubstr("no pointer node"));
    EXPECT_THAT(refused_tree([](const Node& root) {
                  root.pointer({4, 4}), root.pointer({2, 2});
                }),
                HasSubstr("one in another"));
    EXPECT_THAT(refused_tree([](const Node& root) { root.pointer({4}).dynamic(100); }),
                HasSubstr("is no dense or bitmasked node"));
    EXPECT_THAT(refused_tree([](const Node& root) { root.pointer({4}).dense({4}).temporary<float>("t"); }),
                HasSubstr("is a temporary"));
  });
}

TEST(LocalRanks, ARankThatThrowsEndsTheWaitsOfOthers) {
  std::atomic<int> n_told{0};
  try {
    run_on_ranks(3, [&](std::shared_ptr<RankLink> link) {
      const Cluster cluster(link);
      if (cluster.rank() == 1) throw Error(ErrorCode::kIo, "this one's own");
      try {
        cluster.wait_all();
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::kUnavailable);
        EXPECT_THAT(e.what(), HasSubstr("rank 1 has given up"));
        ++n_told;
        throw;
      }
    });
    FAIL() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("this one's own"));
  }
  EXPECT_EQ(n_told, 2);
}
TEST(LocalRanks, GatherInTheirOrder) {
  run_on_ranks(4, [](std::shared_ptr<RankLink> link) {
    const Cluster cluster(link);
    for (int round = 0; round < 100; ++round)
      EXPECT_EQ(cluster.wait_gather(10 * round + cluster.rank()),
                (std::vector{10 * round, 10 * round + 1, 10 * round + 2, 10 * round + 3}));
  });
  EXPECT_THROW(run_on_ranks(0, [](std::shared_ptr<RankLink>) {}), Error);
}

INSTANTIATE_TEST_SUITE_P(Sparse, Ranks, kRanksParams, ranks_name);

}  // namespace
}  // namespace coppice
