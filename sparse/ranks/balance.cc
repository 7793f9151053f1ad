// Cuts trees anew by weights of their cells (see balance.h).
#include "sparse/ranks/balance.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/error.h"
#include "sparse/ranks/rank_bytes.h"
#include "sparse/ranks/tree_cut.h"
#include "sparse/runtime_launch.h"
#include "sparse/tree_storage.h"

namespace coppice {
namespace {

// Parts are chosen anew when the largest has so many times its share.
constexpr double kMostUnevenWeights = 1.1;

}  // namespace

double TreeCut::wait_balance(TreeStorage& tree, uint32_t node, std::span<const CellWeight> cells) {
  struct Weight {
    uint64_t place, weight;
  };
  std::map<uint64_t, uint64_t> sums;
  uint32_t n_others = 0;
  for (const CellWeight& w : cells) {
    const std::optional<Block> block = block_of(node, w.cell);
    if (!block || !is_own(*block))
      ++n_others;
    else
      sums[block->place] += w.weight;
  }
  std::array<uint32_t, 1> most_others{n_others};
  cluster_.wait_most(most_others);
  if (most_others[0] > 0)
    throw Error(ErrorCode::kOutOfRange,
                fmt::format("tree '{}' over ranks: weights of {} cells that are not the rank's own",
                            layout_.options().name, most_others[0]));
  wait_sync(tree);
  evens_blocks_ = false;
  std::vector<Weight> own;
  uint64_t own_sum = 0;
  for (const auto& [place, weight] : sums) own.push_back({place, weight}), own_sum += weight;
  const uint64_t most = cluster_.wait_max(own_sum), sum = cluster_.wait_sum(own_sum);
  if (sum == 0) return 1;
  const double uneven = static_cast<double>(most) * static_cast<double>(n_ranks_) / static_cast<double>(sum);
  // Blocks may be so few that no cut is as even.
  if (uneven <= std::max(kMostUnevenWeights, 1.05 * reached_)) return uneven;
  std::vector<uint64_t> ends = ends_;
  size_t r = 0;
  uint64_t before = 0, before_part = 0, largest = 0;  // weights of what comes first on the curve
  for (const RankLink::Bytes& bytes : cluster_.wait_exchange(Parts(n_ranks_, bytes_of(own)))) {
    for (const Weight& w : values_of<Weight>(bytes)) {
      // A part ends before the block whose middle lies beyond its share.
      const double middle = static_cast<double>(before) + 0.5 * static_cast<double>(w.weight);
      while (r + 1 < n_ranks_ &&
             middle * static_cast<double>(n_ranks_) > static_cast<double>(sum) * static_cast<double>(r + 1))
        ends[r++] = w.place, largest = std::max(largest, before - std::exchange(before_part, before));
      before += w.weight;
    }
  }
  largest = std::max(largest, before - before_part);
  reached_ = static_cast<double>(largest) * static_cast<double>(n_ranks_) / static_cast<double>(sum);
  for (; r + 1 < n_ranks_; ++r) ends[r] = ~uint64_t{0};
  failed_.reset();
  Blocks here;
  do_own([&] { here = wait_active_blocks(tree); });
  wait_cut(tree, here, std::move(ends));
  wait_mirror(tree, here);
  do_own([&] {
    wait_in_order(tree.stream(), "sparse.ask_version",
                  [&](InStream& s) { version_ = tree.lists().version(s); });
  });
  wait_agree(failed_);
  is_stale_.assign(is_stale_.size(), true);
  is_open_ = false;
  ++num_changes_;
  return uneven;
}

double wait_balance(const Node& node, std::span<const CellWeight> own) {
  const TreeRef tree = cut_tree_of(node, "wait_balance()");
  return tree->cut().wait_balance(*tree, node.id(), own);
}

}  // namespace coppice
