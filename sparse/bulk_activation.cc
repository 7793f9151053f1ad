// Activation of many cells at once (see tree_storage.h): sort, unique, one allocation per level.
//
// Needs no locks, gives cells their numbers in coordinate order, and grows before it allocates
// instead of being repeated: what the particles of a step ask for, and what is wanted where
// results must not depend on threads.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "gpu/stream_primitives.h"
#include "runtime_activation.kernels.h"
#include "sparse/launch_errors.h"
#include "sparse/runtime_counts.h"
#include "sparse/runtime_launch.h"
#include "sparse/tree_storage.h"

namespace coppice {

using device::AllocatorState;
using device::NodeKind;

namespace {

constexpr uint64_t kBatch = uint64_t{1} << 28;  // coordinates sorted at a time; indices have 32 bits

// Returns how many of the cells the free list does not have.
uint64_t fresh_of(const AllocatorState& a, uint64_t cells) {
  const uint64_t left = a.free_size - a.free_used;
  return cells > left ? cells - left : 0;
}

}  // namespace

// Makes cells for all empty slots that keys of this level name, in order of the keys.
void TreeStorage::activate_slots(InStream& s, const CoppiceBulkLevel& level, uint64_t n, uint32_t index) {
  run_now(s, program_, bulk_flag_empty, n, level, scratch_flags_->as<uint32_t>());
  uint32_t* selected = scratch_selected_->as<uint32_t>();
  const uint64_t wanted = primitives::wait_select_if_flag(s, scratch_flags_->as<uint32_t>(), selected, n);
  if (wanted == 0) return;
  const AllocatorState before = make_cells_free(s, index, wanted, "activation");
  run_now(s, program_, bulk_fill, wanted, level, static_cast<const uint32_t*>(selected));
  take_cells(s, before, index, wanted);
  write_value(s, &state()->changed, 1);
}

// Grows an allocator until so many cells can be taken from it at once: first what its free list holds, then
// fresh ones. Returns its counters as they are now. Errors: kOutOfMemory; then nothing is taken.
AllocatorState TreeStorage::make_cells_free(InStream& s, uint32_t index, uint64_t wanted,
                                            std::string_view who) {
  AllocatorState* const in_memory = &state()->allocators[index];
  AllocatorState a = wait_read(s, in_memory);
  // Threads of a launch that asked at once may have counted past the end of the free list.
  if (a.free_used > a.free_size) write_value(s, &in_memory->free_used, a.free_used = a.free_size);
  const uint64_t fresh = fresh_of(a, wanted);
  if (a.num_cells + fresh > a.capacity) {
    grow_to(s, a, index, a.num_cells + fresh, who);
    a = wait_read(s, in_memory);  // it may lie elsewhere now
  }
  if (shares_limit_) take_bytes(s, index, fresh, who);
  return a;
}

// Counts them as taken; `before` is what make_cells_free() returned.
void TreeStorage::take_cells(InStream& s, const AllocatorState& before, uint32_t index, uint64_t cells) {
  AllocatorState* const in_memory = &state()->allocators[index];
  const uint64_t fresh = fresh_of(before, cells);
  write_value(s, &in_memory->free_used, before.free_used + static_cast<uint32_t>(cells - fresh));
  write_value(s, &in_memory->num_cells, before.num_cells + static_cast<uint32_t>(fresh));
}

// Counts `cells` of an allocator towards the tree's limit. Errors: kOutOfMemory; then nothing is counted.
void TreeStorage::take_bytes(InStream& s, uint32_t index, uint64_t cells, std::string_view who) {
  const uint64_t bytes = nodes_[allocators_[index].node].cell_bytes * cells;
  const uint64_t taken = wait_read(s, &state()->fresh_bytes);
  if (taken + bytes > max_bytes()) {
    throw Error(
        ErrorCode::kOutOfMemory,
        fmt::format("{}: {}: {} more cells take {} bytes, and {} are left of the tree's {} "
                    "(TreeOptions::max_bytes)",
                    who, path(allocators_[index].node), cells, bytes, max_bytes() - taken, max_bytes()));
  }
  write_value(s, &state()->fresh_bytes, taken + bytes);
}

void TreeStorage::activate_bulk(InStream& s, uint32_t node, const int32_t* coords, uint64_t n) {
  for (; n > kBatch; n -= kBatch, coords += 3 * kBatch) activate_bulk(s, node, coords, kBatch);
  if (n == 0) return;
  std::vector<uint32_t> path = path_nodes(node);
  uint32_t last = static_cast<uint32_t>(path.size());  // levels down to the last that can be inactive
  while (last > 0 && nodes_[path[last - 1]].kind != NodeKind::kPointer &&
         nodes_[path[last - 1]].kind != NodeKind::kBitmasked)
    --last;
  if (path.empty())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("activation of {}: a tree's root has no cells", this->path(node)));
  if (key_space(path, last) == ~uint64_t{0})
    throw Error(ErrorCode::kInvalidArgument, this->path(node) + ": its keys would need more than 64 bits");
  reserve_scratch<uint64_t>(s, scratch_keys_, n), reserve_scratch<uint32_t>(s, scratch_cells_, n);
  reserve_scratch<uint32_t>(s, scratch_flags_, n), reserve_scratch<uint32_t>(s, scratch_selected_, n);
  uint64_t* keys = scratch_keys_->as<uint64_t>();
  uint32_t* order = scratch_cells_->as<uint32_t>();
  uint64_t* count = &counts()->outside;
  write_value(s, count, 0);
  run_now(s, program_, bulk_keys, n, device_layout(node), std::max(last, 1u) - 1, coords, keys, order, count);
  if (const uint64_t outside = wait_read(s, count); outside > 0)
    throw Error(ErrorCode::kOutOfRange,
                fmt::format("activation of {}: {} of the coordinates are outside the domain {}",
                            this->path(node), outside, domain_text(layouts_[node])));
  if (last == 0) return;  // all of it is active for ever
  primitives::sort_by_key(s, keys, order, n);
  CoppiceBulkLevel level{state(), device_layout(node), nullptr, 0, 0, 1, keys, order, coords};
  try {
    for (; level.level < last; ++level.level) {
      const NodeDescription& d = nodes_[path[level.level]];
      level.at = device_layout(path[level.level]), level.per_cell = 1;
      for (uint32_t k = level.level + 1; k < last; ++k) level.per_cell *= nodes_[path[k]].num_cells;
      if (d.kind == NodeKind::kPointer) activate_slots(s, level, n, d.allocator);
      if (d.kind == NodeKind::kBitmasked) run_now(s, program_, bulk_bits, n, level);
    }
  } catch (...) {
    commit_topology(s);  // loops are to find the levels that there was memory for
    throw;
  }
  commit_topology(s);
}

}  // namespace coppice
