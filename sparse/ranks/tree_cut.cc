// TreeCut: parts of the curve, mirrors, and which rank has what (cut_values.cc: their values).
#include "sparse/ranks/tree_cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "core/error.h"
#include "runtime_ranks.kernels.h"
#include "sparse/active_cells.h"
#include "sparse/deactivation.h"
#include "sparse/device/space_curve.h"
#include "sparse/loop.h"
#include "sparse/ranks/rank_bytes.h"
#include "sparse/runtime_launch.h"
#include "sparse/tree_storage.h"

namespace coppice {
namespace {

using device::NodeKind;

// Parts are chosen anew when the largest has so many times what the largest could have.
constexpr uint64_t kMostUneven = 5, kMostUnevenOf = 4;

[[noreturn]] void refuse(const TreeLayout& layout, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("tree '{}' over ranks: {}", layout.options().name, why));
}

void wait_done(const AsyncValueRef<Chain>& done) {
  wait(done);
  if (done.is_error()) throw done.error();
}

// Returns the lowest pointer node, whose cells are the blocks.
uint32_t find_cut(const TreeLayout& layout) {
  const std::vector<TreeNode>& nodes = layout.nodes();
  uint32_t cut = 0;
  for (uint32_t id = 1; id < nodes.size(); ++id) {
    if (nodes[id].kind != NodeKind::kPointer) continue;
    if (nodes[id].parent != cut)
      refuse(layout, layout.path(id) + " is not in the pointer node above it: these are one in another");
    cut = id;
  }
  if (cut == 0) refuse(layout, "there is no pointer node, whose cells would be cut");
  return cut;
}

}  // namespace

TreeCut::TreeCut(const TreeLayout& layout, Cluster cluster)
    : layout_(layout),
      cluster_(std::move(cluster)),
      self_(static_cast<size_t>(cluster_.rank())),
      n_ranks_(static_cast<size_t>(cluster_.n_ranks())),
      node_(find_cut(layout)),
      own_{std::vector<Blocks>(n_ranks_), {}},
      mirror_{std::vector<Blocks>(n_ranks_), {}},
      masks_(layout, node_),
      is_stale_(layout.fields().size(), true),
      aheads_(layout.fields().size()) {
  const std::vector<TreeNode>& nodes = layout.nodes();
  for (uint32_t id = 1; id < nodes.size(); ++id) {
    if (nodes[id].kind == NodeKind::kPointer) continue;
    if (nodes[id].kind == NodeKind::kDynamic || nodes[id].parent != node_)
      refuse(layout, fmt::format("{} is no dense or bitmasked node right below {}", layout.path(id),
                                 layout.path(node_)));
  }
  for (const TreeField& f : layout.fields()) {
    if (f.is_temporary()) refuse(layout, f.name + " is a temporary");
    if (f.node != node_ && nodes[f.node].parent != node_)
      refuse(layout, fmt::format("'{}' lies above {}", f.name, layout.path(node_)));
  }
  const device::NodeLayout& cut = layout.node_layout(node_);
  for (const uint32_t blocks : cut.domain)
    if (blocks > uint32_t{1} << device::kCurveBits)
      refuse(layout, fmt::format("{} has {} cells along an axis, and 2^{} can be cut", layout.path(node_),
                                 blocks, device::kCurveBits));
  // Until there are blocks to count, all have as much of the curve.
  const uint64_t whole = device::curve_place(cut.domain[0] - 1, cut.domain[1] - 1, cut.domain[2] - 1) + 1;
  for (size_t r = 0; r < n_ranks_; ++r) ends_.push_back(whole / n_ranks_ * (r + 1));
  ends_.back() = ~uint64_t{0};
}

OwnPart TreeCut::own_part() const { return {node_, self_ == 0 ? 0 : ends_[self_ - 1], ends_[self_]}; }

int32_t TreeCut::most_reach(uint32_t node) const {
  if (node == node_) return 1;
  const TreeNode& n = layout_.node(node);
  uint32_t least = ~0u;
  for (uint32_t d = device::kMaxDims - layout_.dims(); d < device::kMaxDims; ++d)
    least = std::min(least, n.extent[d]);
  return static_cast<int32_t>(least);
}

TreeCut::Block TreeCut::block_at(const Coord& at) const {
  const device::NodeLayout& cut = layout_.node_layout(node_);
  std::array<uint32_t, 3> index{};
  for (uint32_t a = 0; a < layout_.dims(); ++a) {
    const uint32_t d = device::kMaxDims - layout_.dims() + a;
    index[d] = static_cast<uint32_t>(at[a]) - static_cast<uint32_t>(cut.origin[d]);
  }
  return {device::curve_place(index[0], index[1], index[2]), at, 0};
}

size_t TreeCut::owner_in(const std::vector<uint64_t>& ends, uint64_t place) {
  return static_cast<size_t>(std::upper_bound(ends.begin(), ends.end() - 1, place) - ends.begin());
}

// ---- what goes from rank to rank

namespace {

template <class Blocks>
Blocks joined(const std::vector<Blocks>& parts) {
  Blocks all;
  for (const Blocks& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}
template <class Blocks>
BlockMasks::Coords coords_of(const Blocks& blocks) {
  BlockMasks::Coords coords;
  for (const auto& b : blocks) coords.push_back(b.at);
  return coords;
}

}  // namespace

// A rank's part has its blocks, and behind them their masks.
TreeCut::MaskedBlocks TreeCut::wait_exchange_blocks(const MaskedBlocks& parts) const {
  const size_t words = masks_.words(), bytes_per_block = sizeof(Block) + words * sizeof(uint64_t);
  Parts bytes;
  auto masks = parts.masks.begin();
  for (const Blocks& part : parts.blocks) {
    const auto end = masks + static_cast<std::ptrdiff_t>(part.size() * words);
    bytes.push_back(bytes_of(part));
    const RankLink::Bytes behind = bytes_of(std::vector<uint64_t>(masks, end));
    bytes.back().insert(bytes.back().end(), behind.begin(), behind.end());
    masks = end;
  }
  MaskedBlocks come;
  for (const RankLink::Bytes& part : cluster_.wait_exchange(std::move(bytes))) {
    const size_t n = part.size() / bytes_per_block;
    const std::span<const std::byte> all(part);
    come.blocks.push_back(values_of<Block>(all.first(n * sizeof(Block))));
    const std::vector<uint64_t> behind = values_of<uint64_t>(all.subspan(n * sizeof(Block)));
    if (behind.size() != n * words) throw_out_of_step();
    come.masks.insert(come.masks.end(), behind.begin(), behind.end());
  }
  return come;
}

// Returns the masks of blocks that are here. Their number is right where this rank has failed, too: the
// others wait for as many.
std::vector<uint64_t> TreeCut::wait_read_masks(TreeStorage& tree, const std::vector<Blocks>& parts) {
  const Blocks blocks = joined(parts);
  std::vector<uint64_t> masks(blocks.size() * masks_.words());
  do_own([&] { masks = masks_.wait_read(tree, coords_of(blocks)); });
  return masks;
}

// ---- topology

TreeCut::Blocks TreeCut::wait_active_blocks(TreeStorage& tree) const {
  Blocks blocks;
  for (const Coord& at : detail::wait_active_of(tree, node_, nullptr).coords) blocks.push_back(block_at(at));
  std::ranges::sort(blocks);
  return blocks;
}

void TreeCut::wait_activate(TreeStorage& tree, const Blocks& blocks) const {
  if (blocks.empty()) return;
  wait_done(detail::node_of(TreeRef(share(&tree)), node_).activate(coords_of(blocks)));
}

void TreeCut::wait_drop(TreeStorage& tree, const std::vector<Coord>& blocks) const {
  Launch launch = make_deactivation(TreeRef(share(&tree)), node_, blocks);
  launch.goes_on = true;  // it is none of the program's, whose launches have the same numbers on all ranks
  wait_done(tree.stream().launch(std::move(launch)));
}

template <class F>
bool TreeCut::wait_ask_all(TreeStorage& tree, F ask) const {
  bool answer = false;
  std::optional<Error> failed;
  try {
    wait_in_order(tree.stream(), "sparse.ask_ranks", [&](InStream& s) { answer = ask(s); });
  } catch (const Error& error) {
    failed = error;
  }
  std::array<uint32_t, 2> most{failed_mark(failed), answer ? 1u : 0u};
  cluster_.wait_most(most);
  check_failed(failed, most[0]);
  return most[1] != 0;
}

uint32_t TreeCut::failed_mark(const std::optional<Error>& failed) const {
  return failed ? static_cast<uint32_t>(self_) + 1 : 0;
}

void TreeCut::check_failed(const std::optional<Error>& failed, uint32_t mark) const {
  if (failed) cluster_.throw_agreed(*failed);
  if (mark > 0)
    cluster_.throw_agreed(
        Error(ErrorCode::kUnavailable, fmt::format("tree '{}' over ranks: a launch has failed on rank {}",
                                                   layout_.options().name, mark - 1)));
}

void TreeCut::wait_agreed(const std::function<void()>& act) const {
  std::optional<Error> failed;
  try {
    act();
  } catch (const Error& error) {
    failed = error;
  }
  wait_agree(failed);
}

void TreeCut::wait_agree(const std::optional<Error>& failed) const {
  std::array<uint32_t, 1> mark{failed_mark(failed)};
  cluster_.wait_most(mark);
  check_failed(failed, mark[0]);
}

// Launches behind an error that some rank had were skipped there, and may have run elsewhere.
void TreeCut::note_agreed_errors() {
  if (errors_seen_ == cluster_.num_agreed_errors()) return;
  errors_seen_ = cluster_.num_agreed_errors();
  is_open_ = true, version_ = ~uint64_t{0};
  is_stale_.assign(is_stale_.size(), true);
  ahead_.clear();
}

void TreeCut::wait_asked(TreeStorage& tree) {
  wait_sync(tree);
  wait_agreed([&] { wait_done(tree.stream().barrier()); });
}

void TreeCut::wait_sync(TreeStorage& tree) {
  note_agreed_errors();
  if (!is_open_) return;
  uint64_t version = 0;
  const auto ask_version = [&](InStream& s) {
    version = tree.lists().version(s);
    return version != version_;
  };
  if (wait_ask_all(tree, ask_version)) {
    ++num_changes_;
    failed_.reset();
    Blocks here;
    do_own([&] { here = wait_active_blocks(tree); });
    wait_forward(tree, here);
    wait_rebalance(tree, here);
    wait_mirror(tree, here);
    do_own([&] { wait_in_order(tree.stream(), "sparse.ask_version", ask_version); });
    is_stale_.assign(is_stale_.size(), true);
    wait_agree(failed_);
  }
  version_ = version;
  is_open_ = false;
}

// Returns what was activated here in others' parts: blocks that are no mirrors and, of mirrors, those with
// cells that their owners do not know of. Mirrors that were there before are theirs to drop.
TreeCut::MaskedBlocks TreeCut::wait_find_news(TreeStorage& tree, const Blocks& here) {
  std::vector<Blocks> others(n_ranks_);
  for (const Block& b : here)
    if (!is_own(b)) others[owner(b.place)].push_back(b);
  const std::vector<uint64_t> masks = wait_read_masks(tree, others);
  const auto words = static_cast<std::ptrdiff_t>(masks_.words());
  MaskedBlocks news{std::vector<Blocks>(n_ranks_), {}};
  auto mask = masks.begin();
  for (size_t r = 0; r < n_ranks_; ++r) {
    for (const Block& b : others[r]) {
      const auto mirror = std::ranges::lower_bound(mirrors_, b);
      bool is_news = mirror == mirrors_.end() || !(*mirror == b);
      if (!is_news) {
        const auto known = mirror_masks_.begin() + words * (mirror - mirrors_.begin());
        for (std::ptrdiff_t w = 0; w < words; ++w) is_news = is_news || (mask[w] & ~known[w]) != 0;
      }
      if (is_news) {
        news.blocks[r].push_back(b);
        news.masks.insert(news.masks.end(), mask, mask + words);
      }
      mask += words;
    }
  }
  return news;
}

// Tells owners of what was activated here in their parts.
void TreeCut::wait_forward(TreeStorage& tree, Blocks& here) {
  const MaskedBlocks told = wait_exchange_blocks(wait_find_news(tree, here));
  std::set<Block> wanted;
  for (const Blocks& blocks : told.blocks)
    for (const Block& b : blocks)
      if (!std::ranges::binary_search(here, b)) wanted.insert(b);
  const Blocks come(wanted.begin(), wanted.end());
  do_own([&] { wait_activate(tree, come); });
  do_own([&] { masks_.wait_add(tree, coords_of(joined(told.blocks)), told.masks); });
  const auto middle = here.insert(here.end(), come.begin(), come.end());
  std::inplace_merge(here.begin(), middle, here.end());
}

void TreeCut::wait_rebalance(TreeStorage& tree, Blocks& here) {
  if (!evens_blocks_) return;
  std::vector<uint64_t> own;
  for (const Block& b : here)
    if (is_own(b)) own.push_back(b.place);
  const uint64_t most = cluster_.wait_max(uint64_t{own.size()}), n = cluster_.wait_sum(uint64_t{own.size()});
  const uint64_t best = (n + n_ranks_ - 1) / n_ranks_;
  if (kMostUnevenOf * most <= kMostUneven * best) return;
  // Parts are in the order of the ranks, so what comes is sorted.
  std::vector<uint64_t> all;
  for (const RankLink::Bytes& bytes : cluster_.wait_exchange(Parts(n_ranks_, bytes_of(own)))) {
    const std::vector<uint64_t> places = values_of<uint64_t>(bytes);
    all.insert(all.end(), places.begin(), places.end());
  }
  std::vector<uint64_t> ends = ends_;
  for (size_t r = 0; r + 1 < n_ranks_; ++r) ends[r] = all[n * (r + 1) / n_ranks_];
  wait_cut(tree, here, std::move(ends));
}

void TreeCut::wait_cut(TreeStorage& tree, Blocks& here, std::vector<uint64_t> ends) {
  const std::vector<uint64_t> before = std::exchange(ends_, std::move(ends));
  wait_move(tree, here, before);
  do_own([&] {
    wait_in_order(tree.stream(), "sparse.cut", [&](InStream& s) {
      tree.lists().set_own_part(own_part());
      tree.lists().clear(s);
    });
  });
}

// Sends blocks that have got another owner there, with their masks and all their values.
void TreeCut::wait_move(TreeStorage& tree, Blocks& here, const std::vector<uint64_t>& ends_before) {
  MaskedBlocks to{std::vector<Blocks>(n_ranks_), {}};
  for (const Block& b : here)
    if (owner_in(ends_before, b.place) == self_ && !is_own(b)) to.blocks[owner(b.place)].push_back(b);
  to.masks = wait_read_masks(tree, to.blocks);
  const MaskedBlocks from = wait_exchange_blocks(to);
  Blocks come;
  for (const Blocks& blocks : from.blocks)
    for (const Block& b : blocks)
      if (!std::ranges::binary_search(here, b)) come.push_back(b);
  do_own([&] { wait_activate(tree, come); });
  do_own([&] { masks_.wait_store(tree, coords_of(joined(from.blocks)), from.masks); });
  Lists given{to.blocks, {}}, taken{from.blocks, {}};
  for (uint32_t field = 0; field < layout_.fields().size(); ++field)
    do_own([&] { wait_bring_values(tree, {field}, given, taken); });
  here.insert(here.end(), come.begin(), come.end());
  std::ranges::sort(here);
}

// Every own block is mirrored by the owners of all places beside it, whether or not these are active.
void TreeCut::wait_mirror(TreeStorage& tree, const Blocks& here) {
  const device::NodeLayout& cut = layout_.node_layout(node_);
  const uint32_t dims = layout_.dims(), missing = device::kMaxDims - dims;
  const int n_around = dims == 3 ? 27 : dims == 2 ? 9 : 3;
  own_.blocks.assign(n_ranks_, {});
  for (const Block& b : here) {
    if (!is_own(b)) continue;
    std::set<size_t> ranks;
    for (int i = 0; i < n_around; ++i) {
      Coord at = b.at;
      bool is_inside = true;
      for (uint32_t a = 0, rest = static_cast<uint32_t>(i); a < dims; ++a, rest /= 3) {
        const int64_t c = int64_t{at[a]} + static_cast<int64_t>(rest % 3) - 1,
                      first = cut.origin[missing + a];
        is_inside = is_inside && c >= first && c < first + int64_t{cut.domain[missing + a]};
        at[a] = static_cast<int32_t>(c);
      }
      if (is_inside) ranks.insert(owner(block_at(at).place));
    }
    for (const size_t r : ranks)
      if (r != self_) own_.blocks[r].push_back(b);
  }
  MaskedBlocks told = wait_exchange_blocks({own_.blocks, wait_read_masks(tree, own_.blocks)});
  mirror_.blocks = std::move(told.blocks);
  own_.cells.clear(), mirror_.cells.clear();
  ahead_.clear();
  // They are in order: parts are in that of the ranks, and the blocks of each, too.
  mirrors_ = joined(mirror_.blocks);
  mirror_masks_ = std::move(told.masks);
  COPPICE_DCHECK(std::ranges::is_sorted(mirrors_));
  std::vector<Coord> dropped;
  for (const Block& b : here)
    if (!is_own(b) && !std::ranges::binary_search(mirrors_, b)) dropped.push_back(b.at);
  if (!dropped.empty()) do_own([&] { wait_drop(tree, dropped); });
  Blocks made;
  std::ranges::set_difference(mirrors_, here, std::back_inserter(made));
  do_own([&] { wait_activate(tree, made); });
  do_own([&] { masks_.wait_store(tree, coords_of(mirrors_), mirror_masks_); });
}

// ---- cells and answers

std::optional<TreeCut::Block> TreeCut::block_of(uint32_t node, const Coord& cell) const {
  const device::NodeLayout &here = layout_.node_layout(node), &cut = layout_.node_layout(node_);
  const uint32_t dims = layout_.dims(), missing = device::kMaxDims - dims;
  Coord at{};
  for (uint32_t a = 0; a < dims; ++a) {
    const uint32_t d = missing + a;
    const int64_t c = int64_t{cell[a]} - here.origin[d];
    if (c < 0 || c >= here.domain[d]) return std::nullopt;
    at[a] = static_cast<int32_t>(cut.origin[d] + c / (node == node_ ? 1 : layout_.node(node).extent[d]));
  }
  return block_at(at);
}

bool TreeCut::owns(uint32_t node, const Coord& cell) const {
  const std::optional<Block> block = block_of(node, cell);
  return block && is_own(*block);
}

void TreeCut::wait_complete(uint32_t field, const Coord& begin, const std::array<uint32_t, 3>& size,
                            std::byte* values) const {
  const TreeField& f = layout_.field(field);
  const uint64_t n = uint64_t{size[0]} * size[1] * size[2];
  // Values that are not this rank's become zero, and the ranks' bytes are joined.
  for (uint64_t i = 0; i < n; ++i) {
    const std::array<uint64_t, 3> place{i / size[2] / size[1], i / size[2] % size[1], i % size[2]};
    Coord cell{};
    bool is_coordinate = true;
    // Boxes of fewer axes than three have them first, and ones behind.
    for (uint32_t a = 0; a < layout_.dims(); ++a) {
      const int64_t at = int64_t{begin[a]} + static_cast<int64_t>(place[a]);
      is_coordinate = is_coordinate && at <= INT32_MAX;
      cell[a] = static_cast<int32_t>(at);
    }
    if (!is_coordinate || !owns(f.node, cell)) std::memset(values + i * f.bytes, 0, f.bytes);
  }
  const std::span<std::byte> mine(values, n * f.bytes);
  const Parts all = cluster_.wait_exchange(Parts(n_ranks_, RankLink::Bytes(mine.begin(), mine.end())));
  for (size_t r = 0; r < n_ranks_; ++r) {
    if (all[r].size() != mine.size()) throw_out_of_step();
    for (size_t i = 0; r != self_ && i < mine.size(); ++i) mine[i] |= all[r][i];
  }
}

TreeRef cut_tree_of(const Node& node, const char* what) {
  TreeRef tree = over(node).tree;
  tree->freeze();
  if (!tree->is_over_ranks())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{}: the tree of {} is not cut over ranks", what, node.path()));
  tree->refuse_above_cut(node.id(), what);
  return tree;
}

}  // namespace coppice
