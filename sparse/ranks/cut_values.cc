// TreeCut's values: mirrors are brought up to date, sums come home, and blocks that change hands bring what
// they have.
#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"
#include "gpu/host_access.h"
#include "runtime_ranks.kernels.h"
#include "sparse/loop.h"
#include "sparse/ranks/tree_cut.h"
#include "sparse/runtime_launch.h"
#include "sparse/tree_storage.h"

namespace coppice {
namespace {

// So many items copy a block's values: each looks for the block once.
constexpr uint32_t kItemsPerBlock = 16;
// So many stores go by unpacked at most, where values that were packed ahead were wanted by nobody.
constexpr uint32_t kMostWaitsForAhead = 63;

}  // namespace

uint32_t TreeCut::block_cells(uint32_t node) const {
  return node == node_ ? 1 : static_cast<uint32_t>(layout_.node(node).num_cells);
}
uint64_t TreeCut::block_bytes(uint32_t field) const {
  const TreeField& f = layout_.field(field);
  return f.bytes * block_cells(f.node);
}

namespace {

// Coordinates of blocks' first cells of a node, as kernels take them.
template <class Blocks>
std::vector<int32_t> first_cells(const TreeLayout& layout, uint32_t cut, uint32_t node,
                                 const Blocks& blocks) {
  const device::NodeLayout &above = layout.node_layout(cut), &here = layout.node_layout(node);
  const uint32_t missing = device::kMaxDims - layout.dims();
  std::vector<int32_t> cells(3 * blocks.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    for (uint32_t d = missing; d < device::kMaxDims; ++d) {
      const int32_t at = blocks[i].at[d - missing];
      const auto cells_per = static_cast<int32_t>(node == cut ? 1 : layout.node(node).extent[d]);
      cells[3 * i + d] = node == cut ? at : here.origin[d] + (at - above.origin[d]) * cells_per;
    }
  }
  return cells;
}

CoppiceBlockValues values_in(TreeStorage& tree, uint32_t field, uint32_t cells) {
  const TreeField& f = tree.layout().field(field);
  return {tree.memory().state(),
          tree.memory().device_layout(f.node),
          f.offset,
          f.stride,
          static_cast<uint32_t>(f.bytes),
          cells,
          std::min(cells, kItemsPerBlock)};
}

}  // namespace

// A field's values of the blocks of some lists, in the order of the stream.
struct TreeCut::ListAccess {
  InStream& stream;
  Program& program;
  uint32_t field;
  uint64_t n;            // blocks
  const int32_t* cells;  // their first ones
  CoppiceBlockValues values;
};

void TreeCut::note_stores(uint32_t field) {
  is_stale_[field] = true;
  drop_ahead(field);
}

// Nobody has asked for what was packed ahead.
void TreeCut::drop_ahead(uint32_t field) {
  if (std::erase_if(ahead_, [&](const Packed& packed) { return packed.field == field; }) == 0) return;
  const uint32_t waits = std::min(2 * aheads_[field].all_waits + 1, kMostWaitsForAhead);
  aheads_[field] = {false, waits, waits};
}

bool TreeCut::wants_ahead(uint32_t field) {
  Ahead& ahead = aheads_[field];
  if (!ahead.is_read) return false;
  if (ahead.waits == 0) return true;
  --ahead.waits;
  return false;
}

bool TreeCut::is_any_stale(std::span<const uint32_t> fields) const {
  return std::ranges::any_of(fields, [&](uint32_t field) { return is_stale_[field]; });
}

void TreeCut::wait_fresh(TreeStorage& tree, std::span<const uint32_t> fields,
                         const std::function<void()>& meanwhile) {
  std::vector<Packed> packed;
  std::vector<uint32_t> stale;
  for (const uint32_t field : fields) {
    if (!is_stale_[field]) continue;
    const auto ahead = std::ranges::find(ahead_, field, &Packed::field);
    if (ahead == ahead_.end()) {
      stale.push_back(field);
      continue;
    }
    packed.push_back(std::move(*ahead));
    ahead_.erase(ahead);
    aheads_[field].all_waits = 0;
  }
  if (!stale.empty()) std::ranges::move(wait_pack(tree, stale, own_), std::back_inserter(packed));
  if (packed.empty()) return;
  // Where this rank has failed, all ranks throw.
  const bool has_failed = std::ranges::any_of(packed, [](const Packed& p) { return p.failed.has_value(); });
  if (meanwhile && !has_failed) meanwhile();
  stale.clear();
  for (const Packed& each : packed) stale.push_back(each.field);
  give_unpack(tree, stale, mirror_, wait_exchange_packed(tree, std::move(packed), mirror_));
  for (const uint32_t field : stale) is_stale_[field] = false, aheads_[field].is_read = true;
}

void TreeCut::wait_pack_ahead(TreeStorage& tree, const std::vector<uint32_t>& fields) {
  std::ranges::move(wait_pack(tree, fields, own_), std::back_inserter(ahead_));
}

void TreeCut::wait_bring_values(TreeStorage& tree, const std::vector<uint32_t>& fields, Lists& from,
                                Lists& to) {
  give_unpack(tree, fields, to, wait_exchange_packed(tree, wait_pack(tree, fields, from), to));
}

void TreeCut::wait_clear_mirrors(TreeStorage& tree, std::span<const Sum> sums) {
  const std::vector<uint32_t> fields = fields_of(sums);
  wait_in_lists(tree, "sparse.clear_mirrors", fields, mirror_, {}, [&](const ListAccess& a, std::byte*) {
    run_now(a.stream, a.program, clear_values, a.n * a.values.parts, a.values, a.cells);
  });
}

void TreeCut::wait_sum_home(TreeStorage& tree, std::span<const Sum> sums) {
  const std::vector<uint32_t> fields = fields_of(sums);
  const RankLink::Bytes come = wait_exchange_packed(tree, wait_pack(tree, fields, mirror_), own_);
  // A block may get sums of several ranks: one rank after the other, so that they come in the same order.
  wait_in_lists(tree, "sparse.add_sums", fields, own_, come, [&](const ListAccess& a, std::byte* at) {
    const device::SumKind kind = std::ranges::find(sums, a.field, &Sum::field)->kind;
    const int32_t* cells = a.cells;
    for (const Blocks& blocks : own_.blocks) {
      if (!blocks.empty())
        run_now(a.stream, a.program, add_values, blocks.size() * a.values.parts, a.values, cells,
                reinterpret_cast<const unsigned char*>(at), kind);
      cells += 3 * blocks.size();
      at += blocks.size() * block_bytes(a.field);
    }
  });
  for (const uint32_t field : fields) note_stores(field);
}

std::vector<uint32_t> TreeCut::fields_of(std::span<const Sum> sums) {
  std::vector<uint32_t> fields;
  for (const Sum& sum : sums) fields.push_back(sum.field);
  return fields;
}

// Runs run(access, bytes) for each field, on the values of all blocks of some lists; `at` is staging
// memory, which has as many bytes: one field after the other, and in each the blocks.
template <class F>
void TreeCut::each_field(InStream& s, TreeStorage& tree, const std::vector<uint32_t>& fields,
                         uint64_t n_blocks, const CellLists& cells, std::byte* at, F run) const {
  for (const uint32_t field : fields) {
    const uint32_t node = layout_.field(field).node;
    const ListAccess access{
        s,        tree.programs().in_order(s),   field,
        n_blocks, cells.at(node)->as<int32_t>(), values_in(tree, field, block_cells(node))};
    if (n_blocks > 0) run(access, at);
    at += n_blocks * block_bytes(field);
  }
}

// Does so at once. `bytes` lie in staging memory meanwhile; in `back` they come from there.
template <class F>
void TreeCut::wait_in_lists(TreeStorage& tree, const char* name, const std::vector<uint32_t>& fields,
                            Lists& lists, std::span<const std::byte> bytes, F run,
                            std::span<std::byte> back) {
  const IntrusivePtr<Buffer> staging = room_for(tree.device(), std::max(bytes.size(), back.size()));
  std::byte* const at = staging ? static_cast<std::byte*>(staging->data()) : nullptr;
  for (const uint32_t field : fields) upload_cells(tree.device(), layout_.field(field).node, lists);
  // The stream is asked for its errors even where there is nothing to do.
  wait_in_order(tree.stream(), name, [&](InStream& s) {
    if (!bytes.empty()) s.wait_copy(at, bytes.data(), bytes.size());
    each_field(s, tree, fields, lists.size(), lists.cells, at, run);
    if (!back.empty()) s.wait_copy(back.data(), at, back.size());
  });
}

std::vector<TreeCut::Packed> TreeCut::wait_pack(TreeStorage& tree, const std::vector<uint32_t>& fields,
                                                Lists& from) {
  uint64_t bytes_per_block = 0;
  for (const uint32_t field : fields) bytes_per_block += block_bytes(field);
  RankLink::Bytes bytes(from.size() * bytes_per_block);
  std::optional<Error> failed;
  try {
    const auto pack = [&](const ListAccess& a, std::byte* at) {
      run_now(a.stream, a.program, pack_values, a.n * a.values.parts, a.values, a.cells,
              reinterpret_cast<unsigned char*>(at));
    };
    wait_in_lists(tree, "sparse.pack_values", fields, from, {}, pack, bytes);
  } catch (const Error& error) {
    failed = error;
  }
  std::vector<Packed> packed;
  auto at = bytes.cbegin();
  for (const uint32_t field : fields) {
    packed.push_back({field, {}, failed});
    for (const Blocks& blocks : from.blocks) {
      const auto end = at + static_cast<std::ptrdiff_t>(blocks.size() * block_bytes(field));
      packed.back().parts.emplace_back(at, end);
      at = end;
    }
  }
  return packed;
}

// Returns what comes for the blocks in `to`: one field after the other, and in each the blocks; there is
// room in the device's memory to unpack it. An error of one rank is an Error of all.
RankLink::Bytes TreeCut::wait_exchange_packed(TreeStorage& tree, std::vector<Packed> packed, Lists& to) {
  std::optional<Error> failed;
  uint64_t bytes_per_block = 0;
  Parts parts(n_ranks_);  // each has the fields one after the other
  for (Packed& each : packed) {
    bytes_per_block += block_bytes(each.field);
    if (!failed) failed = each.failed;
    for (size_t r = 0; r < n_ranks_; ++r) {
      if (parts[r].empty())
        parts[r] = std::move(each.parts[r]);
      else
        parts[r].insert(parts[r].end(), each.parts[r].begin(), each.parts[r].end());
    }
  }
  try {
    for (const Packed& each : packed) upload_cells(tree.device(), layout_.field(each.field).node, to);
    room_for(tree.device(), to.size() * bytes_per_block);
  } catch (const Error& error) {
    if (!failed) failed = error;
  }
  std::vector<uint64_t> sizes(n_ranks_);
  for (size_t r = 0; r < n_ranks_; ++r) sizes[r] = to.blocks[r].size() * bytes_per_block;
  std::array<uint32_t, 1> mark{failed_mark(failed)};
  const Parts come = cluster_.wait_exchange_known(std::move(parts), sizes, mark);
  check_failed(failed, mark[0]);
  RankLink::Bytes together;
  together.reserve(to.size() * bytes_per_block);
  std::vector<size_t> taken(n_ranks_);
  for (const Packed& each : packed) {
    for (size_t r = 0; r < n_ranks_; ++r) {
      const auto begin = come[r].begin() + static_cast<std::ptrdiff_t>(taken[r]);
      taken[r] += to.blocks[r].size() * block_bytes(each.field);
      together.insert(together.end(), begin, come[r].begin() + static_cast<std::ptrdiff_t>(taken[r]));
    }
  }
  return together;
}

// The host does not wait for it: an error of a launch before it is told at the next exchange, where all ranks
// meet.
void TreeCut::give_unpack(TreeStorage& tree, std::vector<uint32_t> fields, const Lists& to,
                          RankLink::Bytes come) {
  if (come.empty()) return;
  const auto bytes = std::make_shared<const RankLink::Bytes>(std::move(come));
  const auto unpack = [](const ListAccess& a, std::byte* at) {
    run_now(a.stream, a.program, unpack_values, a.n * a.values.parts, a.values, a.cells,
            reinterpret_cast<const unsigned char*>(at));
  };
  tree.stream().enqueue("sparse.unpack_values",
                        [this, kept = TreeRef(share(&tree)), fields = std::move(fields), n = to.size(),
                         cells = to.cells, staging = staging_, bytes, unpack](InStream& s) {
                          auto* const from = static_cast<std::byte*>(staging->data());
                          s.wait_copy(from, bytes->data(), bytes->size());
                          each_field(s, *kept, fields, n, cells, from, unpack);
                        });
}

const IntrusivePtr<Buffer>& TreeCut::room_for(Device& device, uint64_t bytes) {
  if (bytes > 0 && (!staging_ || staging_->size_bytes() < bytes))
    staging_ = device.reserve(2 * bytes, 2 * bytes);
  return staging_;
}

void TreeCut::upload_cells(Device& device, uint32_t node, Lists& lists) const {
  if (lists.cells.contains(node)) return;
  Blocks all;
  for (const Blocks& blocks : lists.blocks) all.insert(all.end(), blocks.begin(), blocks.end());
  lists.cells.emplace(node, wait_device_copy(device, first_cells(layout_, node_, node, all)));
}

}  // namespace coppice
