// The ranges of addresses that a tree's cells lie in (see tree_memory.h): small ones at first on a CPU,
// where a full range is all that an allocator may ever have. tree_move.h has the move to those.
#include <algorithm>
#include <utility>

#include "core/error.h"
#include "sparse/tree_memory.h"

namespace coppice {

namespace {

// A tree's first ranges have this many bytes of cells at most, together and each: a buffer of the latter
// size takes no mapping.
constexpr uint64_t kFirstBytes = 512 << 10, kFirstBytesEach = 64 << 10;

}  // namespace

// Returns how many cells an allocator has room for at first: the ambient one at least.
uint64_t TreeMemory::first_range_cells(uint32_t allocator) const {
  const uint64_t bytes = std::min(kFirstBytesEach, kFirstBytes / allocators_.size());
  const AllocatorStorage& storage = allocators_[allocator];
  return std::clamp<uint64_t>(bytes / cell_bytes(storage), 1, storage.max_cells);
}

void TreeMemory::reserve_first_range(uint32_t allocator) {
  AllocatorStorage& storage = allocators_[allocator];
  const uint64_t cells = first_range_cells(allocator);
  storage.capacity = reserve_range(storage, cells);
  if (cells < storage.max_cells) has_full_ranges_ = false;
}

// Reserves memory for so many cells, all of which can be used.
uint64_t TreeMemory::reserve_range(AllocatorStorage& storage, uint64_t cells) const {
  const uint64_t bytes = cells * cell_bytes(storage), list_bytes = cells * sizeof(uint32_t);
  storage.cells = reserve_for_fields(bytes, bytes, Filling::kPacked);
  storage.free_list = device_.reserve(list_bytes, list_bytes);
  storage.recycled_list = device_.reserve(list_bytes, list_bytes);
  return cells;
}

// Reserves all that an allocator may ever have: no launch runs out of cells because the host has yet to
// make room. A system that promises no more than it has (its overcommit mode 2), or has few addresses
// left, refuses that; then it is as much as it allows.
AllocatorStorage TreeMemory::full_range(uint32_t allocator) const {
  AllocatorStorage full{.node = allocators_[allocator].node, .max_cells = allocators_[allocator].max_cells};
  const uint64_t least = std::min(full.max_cells, first_cells(allocator));
  for (;; full.max_cells = std::max(least, full.max_cells / 2)) {
    try {
      full.capacity = reserve_range(full, full.max_cells);
      return full;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kOutOfMemory || full.max_cells <= least) throw;
      full.is_cut = true;
    }
  }
}

void TreeMemory::reserve_full_ranges() {
  const std::lock_guard lock(full_mutex_);
  if (has_full_ranges() || !full_.empty()) return;
  std::vector<AllocatorStorage> full;
  for (uint32_t a = 0; a < allocators_.size(); ++a) full.push_back(full_range(a));
  full_ = std::move(full);
}

std::vector<AllocatorStorage> TreeMemory::storages_to_be() const {
  const std::lock_guard lock(full_mutex_);
  return full_.empty() ? allocators_ : full_;
}

void TreeMemory::adopt_full_ranges() {
  ++generation_;
  const std::lock_guard lock(full_mutex_);  // buffers() may be asked for on another thread
  allocators_ = std::move(full_);
  full_.clear();
  has_full_ranges_.store(true, std::memory_order_release);
}

}  // namespace coppice
