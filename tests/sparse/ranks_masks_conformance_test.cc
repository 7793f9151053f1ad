// Bitmasked nodes over ranks: the same cells are active as on one rank, and have the same bits.
#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "gpu/host_access.h"
#include "ranks.kernels.h"
#include "ranks_masks.kernels.h"
#include "sparse/reductions.h"
#include "tests/sparse/ranks_test_util.h"

namespace coppice {
namespace {

using testing::HasSubstr;
using Seen = std::vector<std::vector<std::pair<Coord, double>>>;

class RankMasks : public RanksTest {};

template <int D, class A, class B, class C>
constexpr const auto& of_axes(const A& one, const B& two, const C& three) {
  if constexpr (D == 1)
    return one;
  else if constexpr (D == 2)
    return two;
  else
    return three;
}

// Extents of a tree's nodes: pointer, pointer where it has a second one, a bitmasked leaf, and a dense node
// beside it where it has one.
struct MaskShape {
  Coord top, middle, leaf;
  int beside;
  Coord block() const {
    Coord cells = leaf;
    for (size_t a = 0; a < 3; ++a) cells[a] *= std::max(1, middle[a]);
    return cells;
  }
};
constexpr MaskShape kMaskShapes[3][4] = {
    {{{60}, {}, {5}, 0}, {{10}, {8}, {3}, 0}, {{60}, {}, {4}, 2}, {{8}, {}, {100}, 0}},
    {{{14, 14}, {}, {4, 4}, 0},
     {{6, 4}, {3, 4}, {3, 5}, 0},
     {{14, 14}, {}, {4, 4}, 2},
     {{6, 4}, {}, {16, 12}, 0}},
    {{{6, 6, 6}, {}, {4, 4, 4}, 0},
     {{4, 2, 4}, {2, 2, 2}, {3, 2, 5}, 0},
     {{6, 6, 6}, {}, {4, 4, 4}, 2},
     {{4, 2, 4}, {}, {8, 8, 4}, 0}}};

// A random program on a tree of D axes.
template <int D>
class MaskProgram {
 public:
  MaskProgram(const std::optional<Cluster>& cluster, uint32_t seed)
      : cluster_(cluster),
        random_(seed),
        shape_(kMaskShapes[D - 1][seed % 4]),
        tree_(make_tree(cluster, {.name = "random", .origin = origin(shape_)})),
        block_(make_block(tree_.root(), shape_)),
        leaf_(of_extents(shape_.leaf, [&](auto e) { return block_.bitmasked(e); })),
        now_(leaf_.template place<float>("now")),
        next_(leaf_.template place<float>("next")),
        mark_(leaf_.template place<int>("mark")),
        age_(leaf_.template place<int>("age")),
        sum_(leaf_.template place<int>("sum")),
        other_(leaf_.template place<int>("other")),
        program_(share(&tree_.storage().device())) {
    if (shape_.beside == 0) return;
    beside_.emplace(of_extents(same(shape_.beside), [&](auto e) { return block_.dense(e); }));
    warm_.emplace(beside_->template place<float>("warm"));
    cool_.emplace(beside_->template place<float>("cool"));
  }

  Seen run(int steps) {
    Seen seen;
    set(), set();
    for (int i = 0; i < steps; ++i) {
      step(i);
      if (i % 3 == 2) look(seen);
    }
    look(seen);
    return seen;
  }

 private:
  static Coord same(int n) { return {n, n, n}; }
  static Coord origin(const MaskShape& shape) {
    Coord low{};
    for (size_t a = 0; a < D; ++a) low[a] = -(shape.top[a] / 2) * shape.block()[a];
    return low;
  }
  template <class F>
  static Node of_extents(const Coord& e, F add) {
    using Extents = std::initializer_list<int32_t>;
    if constexpr (D == 1) return add(Extents{e[0]});
    if constexpr (D == 2) return add(Extents{e[0], e[1]});
    if constexpr (D == 3) return add(Extents{e[0], e[1], e[2]});
  }
  static Node make_block(const Node& root, const MaskShape& shape) {
    const Node top = of_extents(shape.top, [&](auto e) { return root.pointer(e); });
    if (shape.middle[0] == 0) return top;
    return of_extents(shape.middle, [&](auto e) { return top.pointer(e); });
  }
  int cells_of_leaf() const {
    int n = 1;
    for (size_t a = 0; a < D; ++a) n *= shape_.leaf[a];
    return n;
  }

  // ---- draws, which are the same on all ranks
  int draw(int most) { return static_cast<int>(random_() % static_cast<uint32_t>(most)); }
  // A cell near the middle, as often as not.
  Coord draw_cell() {
    const int of = draw(2) == 0 ? 1 : 3;
    Coord cell{};
    for (size_t a = 0; a < D; ++a) {
      const int low = origin(shape_)[a], size = shape_.top[a] * shape_.block()[a];
      cell[a] = low / of + draw(size / of);
    }
    return cell;
  }
  std::vector<Coord> draw_cells(int most) {
    std::vector<Coord> cells;
    for (int i = draw(most); i >= 0; --i) cells.push_back(draw_cell());
    return cells;
  }
  MaskCube cube(const Coord& at, int size) const {
    MaskCube cube{};
    cube.size = size;
    for (size_t a = 0; a < D; ++a) {
      cube.at[a] = at[a];
      cube.low[a] = origin(shape_)[a], cube.high[a] = cube.low[a] + shape_.top[a] * shape_.block()[a];
    }
    return cube;
  }
  MaskCube draw_shift() {
    const int most = draw(3) == 0 ? 25 : 3;
    Coord by{};
    for (size_t a = 0; a < D; ++a) by[a] = draw(2 * most + 1) - most;
    return cube(by, 0);
  }

  void step(int i) {
    switch (draw(13)) {
      case 0:
        set();
        break;
      case 1:
        finish(leaf_.activate(draw_cells(12)));
        break;
      case 2:
        finish(leaf_.deactivate(draw_cells(150)));
        break;
      case 3:
        drop_blocks();
        break;
      case 4:
        spread();
        break;
      case 5:
        spread();
        go();
        break;
      case 6:
        cover();
        break;
      case 7:
        cover();
        go();
        break;
      case 8:
        give(i);
        break;
      case 9:
        sum_blocks();
        break;
      case 10:
        weigh();
        break;
      case 11:
        if (beside_) program_.launch(smooth(), over(*beside_), SmoothSome{*warm_, *cool_}, 0.5f);
        program_.launch(mark(), over(leaf_), mark_, age_, i);
        break;
      default:
        program_.launch(smooth(), over(leaf_), SmoothSome{now_, next_}, 0.7f);
        std::swap(now_, next_);
    }
  }
  static const auto& smooth() { return of_axes<D>(smooth_some_1d, smooth_some_2d, smooth_some_3d); }
  static const auto& mark() { return of_axes<D>(mark_all_1d, mark_all_2d, mark_all_3d); }

  void set() {
    const int side = D == 1 ? 60 : D == 2 ? 12 : 6, items = D == 1 ? side : D == 2 ? side * side : 216;
    const MaskCube some = cube(draw_cell(), side);
    const auto seed = static_cast<unsigned>(draw(1000));
    program_.launch(of_axes<D>(set_some_1d, set_some_2d, set_some_3d), range(items), now_, some, seed);
    if (beside_ && draw(2) == 0) {
      MaskCube half = some;  // it has fewer cells, from the same coordinate on
      for (int a = 0; a < D; ++a)
        half.high[a] = half.low[a] + shape_.top[static_cast<size_t>(a)] * shape_.beside,
        half.at[a] = (half.low[a] + half.high[a]) / 2;
      program_.launch(of_axes<D>(set_some_1d, set_some_2d, set_some_3d), range(items), *warm_, half, seed);
    }
  }
  void spread() {
    program_.launch(of_axes<D>(spread_some_1d, spread_some_2d, spread_some_3d), over(leaf_), now_,
                    leaf_.topology(), draw_shift());
  }
  // Each rank has some of the items.
  void cover() {
    const std::vector<Coord> cells = draw_cells(20);
    std::vector<int> own;
    for (size_t i = 0; i < cells.size(); ++i)
      if (!cluster_ || static_cast<int>(i) % cluster_->n_ranks() == cluster_->rank())
        own.insert(own.end(), cells[i].begin(), cells[i].begin() + D);
    const IntrusivePtr<Buffer> at = wait_device_copy(program_.device(), own);
    finish(program_.launch(of_axes<D>(cover_some_1d, cover_some_2d, cover_some_3d),
                           own_range(static_cast<int64_t>(own.size()) / D), leaf_.topology(),
                           at->as<const int>(), cube({}, 0)));
  }
  // Cells go that the launch before has activated, before their owners know of them.
  void go() {
    const int how = draw(14);
    if (how == 0) finish(leaf_.deactivate_all());
    if (how == 1) finish(tree_.deactivate_all());
    if (how == 2) drop_blocks();
    if (how > 2) finish(leaf_.deactivate(draw_cells(200)));
    if (draw(2) == 0) finish(leaf_.activate(draw_cells(5)));
  }
  void drop_blocks() {
    std::vector<Coord> blocks = draw_cells(10);
    tree_.freeze();
    const device::NodeLayout& layout = tree_.storage().layout().node_layout(block_.id());
    for (Coord& c : blocks)
      for (size_t a = 0; a < D; ++a)
        c[a] = layout.origin[3 - D + a] + (c[a] - origin(shape_)[a]) / shape_.leaf[a];
    finish(block_.deactivate(blocks));
  }
  void give(int by) {
    program_.launch(mark(), over(leaf_), mark_, age_, by);
    program_.launch(of_axes<D>(give_around_1d, give_around_2d, give_around_3d), over(leaf_), mark_, now_,
                    sum_);
  }
  void sum_blocks() {
    program_.launch(of_axes<D>(sum_blocks_1d, sum_blocks_2d, sum_blocks_3d), over(leaf_), mark_, sum_, other_,
                    cells_of_leaf());
    std::swap(sum_, other_);
  }
  void weigh() {
    if (!cluster_) return;
    std::vector<CellWeight> weights;
    for (const Coord& cell : wait_read_active(now_).coords)
      weights.push_back({cell, cell[0] < 0 ? uint64_t{1} : uint64_t{4}});
    wait_balance(leaf_, weights);
  }

  template <class T>
  void look_at(Seen& seen, const Field<T>& field) {
    seen.emplace_back();
    for (const auto& [at, value] : wait_all_cells(cluster_, field)) seen.back().emplace_back(at, value);
  }
  void look(Seen& seen) {
    look_at(seen, now_), look_at(seen, age_), look_at(seen, sum_);
    if (beside_) look_at(seen, *warm_), look_at(seen, *cool_);
    seen.emplace_back();
    const auto all = [&](uint64_t own) {
      return static_cast<double>(cluster_ ? cluster_->wait_sum(own) : own);
    };
    seen.back().emplace_back(Coord{}, all(leaf_.wait_num_active_blocks()));
    seen.back().emplace_back(Coord{}, all(static_cast<uint64_t>(wait_sum(age_))));
    for (int i = 0; i < 5; ++i) {
      const Coord cell = draw_cell();
      seen.back().emplace_back(cell, leaf_.wait_is_active(cell));
    }
    // Values of inactive cells, too.
    const Coord low = origin(shape_), size = D == 1   ? Coord{40, 1, 1}
                                             : D == 2 ? Coord{9, 11, 1}
                                                      : Coord{5, 7, 6};
    Coord begin = draw_cell(), end{1, 1, 1};
    for (size_t a = 0; a < D; ++a) {
      begin[a] = std::min(begin[a], low[a] + shape_.top[a] * shape_.block()[a] - size[a]);
      end[a] = begin[a] + size[a];
    }
    for (const float v : wait_read(now_, begin, end)) seen.back().emplace_back(begin, v);
  }

  const std::optional<Cluster> cluster_;
  std::mt19937 random_;
  const MaskShape shape_;
  Tree tree_;
  Node block_, leaf_;
  Field<float> now_, next_;
  Field<int> mark_, age_, sum_, other_;
  std::optional<Node> beside_;
  std::optional<Field<float>> warm_, cool_;
  Program program_;
};

// Each shape is drawn three times, on simt, which takes its time, once and for shorter.
template <int D, class F>
void run_programs(F expect_same) {
  const bool is_cpu = std::string_view(testing::TestWithParam<RanksParam>::GetParam().device) == "cpu";
  for (uint32_t seed = 0; seed < (is_cpu ? 12u : 4u); ++seed) {
    SCOPED_TRACE(seed);
    expect_same([&](const std::optional<Cluster>& cluster) {
      return MaskProgram<D>(cluster, seed).run(is_cpu ? 30 : 12);
    });
  }
}
TEST_P(RankMasks, RandomProgramsOfOneAxisGiveTheSameCells) {
  run_programs<1>([&](auto program) { expect_same(program); });
}
TEST_P(RankMasks, RandomProgramsOfTwoAxesGiveTheSameCells) {
  run_programs<2>([&](auto program) { expect_same(program); });
}
TEST_P(RankMasks, RandomProgramsOfThreeAxesGiveTheSameCells) {
  run_programs<3>([&](auto program) { expect_same(program); });
}

// Every rank activates cells in far blocks: none, one or several in one block of somebody's.
TEST_P(RankMasks, CellsReachOwnersOfBlocksThatAreNoMirrors) {
  expect_same([](const std::optional<Cluster>& cluster) {
    Tree tree = make_tree(cluster, {.name = "far"});
    const Node leaf = tree.root().pointer({64, 64}).bitmasked({4, 4});
    const Field<float> now = leaf.place<float>("now"), next = leaf.place<float>("next");
    Program program(share(&tree.storage().device()));
    program.launch(start2, range(32 * 32), now, 32, 0, 0);
    finish(leaf.activate({{200, 200}}));
    Seen seen;
    for (const int by : {200, 97, 150}) {
      program.launch(spread2, over(leaf), now, leaf.topology(), by, 203 - by, 256);
      program.launch(smooth2, over(leaf), Smooth{now, next}, 0.5f);
      seen.emplace_back();
      for (const auto& [at, value] : wait_all_cells(cluster, next)) seen.back().emplace_back(at, value);
    }
    EXPECT_GT(seen[2].size(), seen[0].size());
    return seen;
  });
}

// A line of blocks that are full, so that each rank's border is between two of them: cells beside it go, and
// come back from the other side.
TEST_P(RankMasks, ACellAtABorderGoesForBothSides) {
  expect_same([](const std::optional<Cluster>& cluster) {
    Tree tree = make_tree(cluster, {.name = "border"});
    const Node leaf = tree.root().pointer({32}).bitmasked({8});
    Field<float> now = leaf.place<float>("now"), next = leaf.place<float>("next");
    const Field<int> mark = leaf.place<int>("mark"), age = leaf.place<int>("age"),
                     sum = leaf.place<int>("sum");
    Program program(share(&tree.storage().device()));
    const MaskCube line{{}, 256, {}, {256}};
    std::vector<Coord> all, last, first;
    for (int x = 0; x < 256; ++x) all.push_back({x});
    for (int x = 7; x < 248; x += 8) last.push_back({x}), first.push_back({x + 1});
    finish(leaf.activate(all));
    program.launch(set_some_1d, range(256), now, line, 5u);
    Seen seen;
    const auto look = [&] {
      program.launch(mark_all_1d, over(leaf), mark, age, 1);
      program.launch(give_around_1d, over(leaf), mark, now, sum);
      program.launch(smooth_some_1d, over(leaf), SmoothSome{now, next}, 0.5f);
      std::swap(now, next);
      seen.emplace_back();
      for (const auto& [at, value] : wait_all_cells(cluster, now)) seen.back().emplace_back(at, value);
      for (const auto& [at, value] : wait_all_cells(cluster, sum)) seen.back().emplace_back(at, value);
    };
    look();
    finish(leaf.deactivate(last));
    look();
    // The cells behind the gaps fill them, and these are zero; right behind that half of them go again.
    MaskCube back = line;
    back.at[0] = -1;
    program.launch(spread_some_1d, over(leaf), now, leaf.topology(), back);
    finish(leaf.deactivate({last.begin(), last.begin() + 15}));
    look();
    program.launch(spread_some_1d, over(leaf), now, leaf.topology(), back);
    finish(leaf.deactivate(first));
    look();
    // The cells before the gaps fill them: the other side knows nothing of that.
    finish(leaf.activate(first));
    finish(leaf.deactivate(last));
    MaskCube on = line;
    on.at[0] = 1;
    program.launch(spread_some_1d, over(leaf), now, leaf.topology(), on);
    look();
    EXPECT_GT(seen[4].size(), 2 * (256 - last.size()));
    EXPECT_LT(seen[1].size(), seen[0].size());
    EXPECT_GT(seen[2].size(), seen[1].size());
    return seen;
  });
}

// All cells go right behind a launch in which every rank has activated some for others. The blocks stay.
TEST_P(RankMasks, AllCellsGoWhoeverHasActivatedThem) {
  expect_same([](const std::optional<Cluster>& cluster) {
    Tree tree = make_tree(cluster, {.name = "all"});
    const Node leaf = tree.root().pointer({32, 32}).bitmasked({4, 4});
    const Field<float> now = leaf.place<float>("now"), next = leaf.place<float>("next");
    Program program(share(&tree.storage().device()));
    program.launch(start2, range(64 * 64), now, 64, 0, 0);
    finish(leaf.deactivate({{31, 31}, {32, 32}}));
    program.launch(spread2, over(leaf), now, leaf.topology(), 1, 1, 128);
    program.launch(spread2, over(leaf), now, leaf.topology(), 40, 40, 128);
    finish(leaf.deactivate_all());
    finish(leaf.activate({{5, 5}, {40, 33}}));
    program.launch(smooth2, over(leaf), Smooth{now, next}, 0.5f);
    Seen seen(1);
    for (const auto& [at, value] : wait_all_cells(cluster, now)) seen[0].emplace_back(at, value);
    EXPECT_EQ(seen[0].size(), 2u);
    const uint64_t own = leaf.wait_num_active_blocks();
    seen[0].emplace_back(Coord{}, static_cast<double>(cluster ? cluster->wait_sum(own) : own));
    return seen;
  });
}

// Blocks with one cell in three change hands, and their owners are who the map says they are.
TEST_P(RankMasks, BlocksMoveWithTheirCells) {
  run_on_ranks(n(), [&](std::shared_ptr<RankLink> link) {
    const Cluster cluster(link);
    Tree tree = make_tree(cluster, {.name = "row"});
    const Node leaf = tree.root().pointer({64}).bitmasked({12});
    const Field<float> now = leaf.place<float>("now"), next = leaf.place<float>("next");
    Program program(share(&tree.storage().device()));
    const MaskCube line{{}, 768, {}, {768}};
    program.launch(set_some_1d, range(768), now, line, 9u);
    const auto before = wait_all_cells(std::optional(cluster), now);
    ASSERT_GT(before.size(), 100u);
    std::vector<CellWeight> weights;
    for (const Coord& cell : wait_read_active(now).coords)
      weights.push_back({cell, cell[0] < 600 ? uint64_t{1} : uint64_t{50}});
    const double uneven = wait_balance(leaf, weights);
    EXPECT_EQ(uneven > 1.1, n() > 1);
    EXPECT_EQ(wait_all_cells(std::optional(cluster), now), before);
    const CellOwners owners(leaf);
    for (const Coord& cell : wait_read_active(now).coords)
      EXPECT_EQ(owners.owner({cell[0]}), cluster.rank()) << cell[0];
    // The tree can be launched on as before.
    program.launch(smooth_some_1d, over(leaf), SmoothSome{now, next}, 0.0f);
    EXPECT_EQ(wait_all_cells(std::optional(cluster), next), before);
  });
}

// An axis that is cut alone, and one that lies in the blocks whole.
TEST_P(RankMasks, AxesMayBeDividedByOneNodeAlone) {
  for (const bool is_masked : {false, true}) {
    SCOPED_TRACE(is_masked);
    expect_same([is_masked](const std::optional<Cluster>& cluster) {
      Tree tree = make_tree(cluster, {.name = "axes"});
      const Node block = tree.root().pointer({Axis::i}, {32});
      const Node leaf =
          is_masked ? block.bitmasked({Axis::i, Axis::j}, {2, 64}) : block.dense({Axis::i, Axis::j}, {2, 64});
      Field<float> now = leaf.place<float>("now"), next = leaf.place<float>("next");
      Program program(share(&tree.storage().device()));
      program.launch(start2, range(40), now, 7, 10, 3);
      Seen seen;
      for (int step = 0; step < 6; ++step) {
        program.launch(spread2, over(leaf), now, leaf.topology(), 1 + 3 * (step % 2), 1, 64);
        program.launch(smooth2, over(leaf), Smooth{now, next}, 0.5f);
        std::swap(now, next);
        seen.emplace_back();
        for (const auto& [at, value] : wait_all_cells(cluster, now)) seen.back().emplace_back(at, value);
      }
      EXPECT_GT(seen.back().size(), 40u);
      return seen;
    });
  }
}

// Masks come with the blocks, in as many messages as blocks alone take.
TEST_P(RankMasks, TakeNoMessagesOfTheirOwn) {
  run_on_ranks(n(), [&](std::shared_ptr<RankLink> link) {
    const Cluster cluster(link);
    const auto traffic_of = [&](bool is_masked) {
      Tree tree = make_tree(cluster, {.name = "traffic"});
      const Node block = tree.root().pointer({32, 32}),
                 leaf = is_masked ? block.bitmasked({8, 8}) : block.dense({8, 8});
      leaf.place<float>("now");
      const Cluster::Traffic before = cluster.traffic();
      for (int i = 0; i < 32; ++i) {
        finish(leaf.activate({{8 * i, 8 * i}, {8 * i + 3, 100}}));
        leaf.wait_num_active_blocks();
      }
      return std::pair(cluster.traffic().rounds - before.rounds,
                       cluster.traffic().bytes_sent - before.bytes_sent);
    };
    const auto [dense_rounds, dense_bytes] = traffic_of(false);
    const auto [rounds, bytes] = traffic_of(true);
    EXPECT_EQ(rounds, dense_rounds);
    // A block's place and its 64 bits; 24 bytes without.
    EXPECT_LE(bytes, dense_bytes * 32 / 24);
    EXPECT_EQ(bytes > dense_bytes, n() > 1);
  });
}

TEST_P(RankMasks, ALaunchThatFailsOnOneRankFailsOnAll) {
  std::atomic<int> n_failed{0};
  run_on_ranks(n(), [&](std::shared_ptr<RankLink> link) {
    const Cluster cluster(link);
    Tree tree = make_tree(cluster, {.name = "grid"});
    const Node leaf = tree.root().pointer({16, 16}).bitmasked({4, 4});
    const Field<float> now = leaf.place<float>("now"), next = leaf.place<float>("next");
    const IntrusivePtr<Device> device = share(&tree.storage().device());
    Program program(device);
    program.launch(start2, range(4), now, 2, 60, 60);
    program.launch(spread2, over(leaf), now, leaf.topology(), 10, 10, 1000);  // out of the domain
    try {
      leaf.wait_is_active({60, 60});
    } catch (const Error& e) {
      ++n_failed;
      EXPECT_TRUE(e.code() == ErrorCode::kOutOfRange || e.code() == ErrorCode::kUnavailable) << e.what();
    }
    device->default_stream().clear_error();
    program.launch(smooth2, over(leaf), Smooth{now, next}, 0.5f);
    EXPECT_EQ(wait_all_cells(std::optional(cluster), next).size(), 4u);
  });
  EXPECT_EQ(n_failed, n());
}

TEST_P(RankMasks, RefuseOnAllRanksAlikeWhatTheyDoNotDo) {
  run_on_ranks(n(), [&](std::shared_ptr<RankLink> link) {
    const Cluster cluster(link);
    Tree tree = make_tree(cluster, {.name = "grid"});
    const Node block = tree.root().pointer({32, 32}), leaf = block.bitmasked({4, 4});
    const Field<float> now = leaf.place<float>("now"), next = leaf.place<float>("next");
    const Field<int> count = leaf.place<int>("count");
    Program program(share(&tree.storage().device()));
    program.launch(start2, range(64), now, 8, 0, 0);
    EXPECT_THAT(refusal([&] { program.launch(test2, over(leaf), leaf.topology(), next); }),
                HasSubstr("which cells are active"));
    EXPECT_THAT(refusal([&] { program.launch(deactivate2, over(leaf), leaf.topology()); }),
                HasSubstr("deactivates cells"));
    EXPECT_THAT(refusal([&] { program.launch(activate_and_add, own_range(1), leaf.topology(), count, 50); }),
                HasSubstr("activates cells of the tree, too"));
    EXPECT_EQ(wait_all_cells(std::optional(cluster), now).size(), 64u);

    const auto refused_tree = [&](auto describe) {
      Tree other = make_tree(cluster, {.name = "other"});
      describe(other.root());
      return refusal([&] { other.freeze(); });
    };
    EXPECT_THAT(refused_tree([](const Node& root) { root.pointer({4}).bitmasked({4}).dense({4}); }),
                HasSubstr("is no dense or bitmasked node right below"));
    EXPECT_THAT(refused_tree([](const Node& root) { root.pointer({4}).bitmasked({4}).bitmasked({4}); }),
                HasSubstr("is no dense or bitmasked node right below"));
    EXPECT_THAT(refused_tree([](const Node& root) { root.bitmasked({4}).pointer({4}).dense({4}); }),
                HasSubstr("one in another"));
    EXPECT_THAT(
        refused_tree([](const Node& root) { root.pointer({4}).bitmasked({4}).temporary<float>("t"); }),
        HasSubstr("is a temporary"));
  });
}

INSTANTIATE_TEST_SUITE_P(Sparse, RankMasks, kRanksParams, ranks_name);

}  // namespace
}  // namespace coppice
