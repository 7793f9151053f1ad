// The rungs of sparse trees: activation, list, collection (see ladder.h).
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "ladder.kernels.h"
#include "sparse/read_back.h"
#include "tests/apps/ladder/ladder.h"
#include "tests/sparse/staging.h"

namespace coppice::ladder {

LineTree::LineTree(const IntrusivePtr<Device>& device)
    : tree(device),
      block(tree.root().pointer({kBlocks})),
      leaf(block.dense({kBlockCells})),
      x(leaf.place<int>("x")),
      y(leaf.place<int>("y")) {}

ListTree::ListTree(const IntrusivePtr<Device>& device)
    : tree(device),
      lists(tree.root().pointer({kLists}).dynamic(1 << 20, 64)),
      items(lists.place<int>("items")) {}

namespace {

// The number of cells and their sum, each value times its coordinate plus one.
std::vector<uint64_t> sums_of(Bench& bench, const LineTree& line, const Field<int>& field) {
  std::vector<uint64_t> sums(2);
  run_on(bench.program(), sum_up, over(line.leaf), field, sums);
  return sums;
}

struct Line {
  std::vector<int> values = std::vector<int>(LineTree::kCells);
  std::set<int> blocks;

  void grow(int items, int stride) {
    for (int i = 0; i < items; ++i) {
      const int at = static_cast<int>(int64_t{i} * stride % LineTree::kCells);
      values[static_cast<size_t>(at)] = at + 1;
      blocks.insert(at / LineTree::kBlockCells);
    }
  }
  int value(int at) const { return at < 0 || at >= LineTree::kCells ? 0 : values[static_cast<size_t>(at)]; }
  // As sums_of() of the smoothed values.
  std::vector<uint64_t> smoothed() const {
    std::vector<uint64_t> sums(2);
    for (const int block : blocks) {
      for (int at = block * LineTree::kBlockCells; at < (block + 1) * LineTree::kBlockCells; ++at) {
        const int smooth = 2 * value(at) + value(at - 1) + value(at + 1);
        sums[0] += 1, sums[1] += static_cast<uint64_t>(smooth) * static_cast<uint64_t>(at + 1);
      }
    }
    return sums;
  }
};

std::string text(const std::vector<uint64_t>& sums) {
  return fmt::format("{} cells of sum {}", sums[0], sums[1]);
}

void expect_smoothed(Bench& bench, const LineTree& line, const Line& expected, const char* when) {
  finish(bench.program().launch(smooth_cells, over(line.leaf), line.x, line.y));
  const std::vector<uint64_t> got = sums_of(bench, line, line.y), right = expected.smoothed();
  expect(got == right, fmt::format("{}: {}, not {}", when, text(got), text(right)));
}

}  // namespace

std::string run_activation(Bench& bench) {
  LineTree line(bench.device());
  Line expected;
  const int items = bench.scaled(100'000, 150);
  for (const int stride : {1, 257, 641}) {
    expected.grow(items, stride);
    finish(bench.program().launch(grow_cells, range(items), line.x, int{LineTree::kCells}, stride));
    expect(line.leaf.wait_num_active_blocks() == expected.blocks.size(),
           fmt::format("{} blocks are active, not {}", line.leaf.wait_num_active_blocks(),
                       expected.blocks.size()));
    expect_smoothed(bench, line, expected, "after activation");
  }
  return fmt::format("{} blocks by {} writes at once, and a stencil over them", expected.blocks.size(),
                     items);
}

std::string run_list(Bench& bench) {
  ListTree tree(bench.device());
  const int items = bench.scaled(1'000'000, 700);
  std::vector<uint32_t> marks(static_cast<size_t>(items));
  for (int round = 1; round < 3; ++round) {
    finish(bench.program().launch(append_items, range(items), tree.items, int{ListTree::kLists}));
    const uint64_t length = tree.lists.wait_length({0, 0, 0});
    const auto each = static_cast<uint64_t>(round) *
                      static_cast<uint64_t>((items + ListTree::kLists - 1) / ListTree::kLists);
    expect(length == each, fmt::format("a list has {} items, not {}", length, each));
    std::fill(marks.begin(), marks.end(), 0);
    run_on(bench.program(), mark_items, over(tree.lists), tree.items, int{ListTree::kLists}, marks);
    for (size_t i = 0; i < marks.size(); ++i)
      expect(marks[i] == static_cast<uint32_t>(round),
             fmt::format("item {} is found {} times, not {}", i, marks[i], round));
  }
  return fmt::format("{} items in {} lists, appended at once", 2 * items, int{ListTree::kLists});
}

std::string run_collection(Bench& bench) {
  LineTree line(bench.device());
  const int rounds = bench.scaled(50, 3);
  Line expected;
  uint64_t capacity = 0;
  for (int round = 0; round < rounds; ++round) {
    expected.grow(LineTree::kBlocks, LineTree::kBlockCells);
    finish(bench.program().launch(grow_cells, range(LineTree::kBlocks), line.x, int{LineTree::kCells},
                                  int{LineTree::kBlockCells}));
    expect_smoothed(bench, line, expected, "before collection");
    const int gone = LineTree::kBlocks / 2;
    finish(bench.program().launch(drop_blocks, range(gone), line.block.topology(), 2));
    for (int k = 0; k < gone; ++k) {
      expected.blocks.erase(2 * k);
      const auto first = expected.values.begin() + 2 * k * LineTree::kBlockCells;
      std::fill(first, first + LineTree::kBlockCells, 0);
    }
    expect_smoothed(bench, line, expected, "after collection");
    const uint64_t now = line.block.wait_usage().capacity_cells;
    expect(round == 0 || now == capacity, fmt::format("{} cells are held, not {} as before", now, capacity));
    capacity = now;
  }
  return fmt::format("{} rounds of activation and collection of half the blocks", rounds);
}

}  // namespace coppice::ladder
