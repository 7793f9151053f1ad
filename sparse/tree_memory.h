// The memory of a tree: what it reserves, how much of that may be used, and what is spent.
//
// It is the device's. The host reads its state once per decision (wait_read_state()) and writes single
// fields. Who makes it larger is TreeGrowth.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "gpu/device.h"
#include "sparse/runtime_counts.h"
#include "sparse/tree_layout.h"

namespace coppice {

class Program;

struct AllocatorStorage {
  uint32_t node = 0;
  uint64_t max_cells = 0;
  uint64_t capacity = 0;  // as the state has it
  bool is_cut = false;    // the process had no addresses for more cells
  IntrusivePtr<Buffer> cells, free_list, recycled_list;
};

class TreeMemory {
 public:
  // Errors: kOutOfMemory, which names the tree.
  TreeMemory(const TreeLayout& layout, Device& device, Program& program);

  const TreeLayout& layout() const { return layout_; }
  Device& device() const { return device_; }
  // These are addresses of the device.
  device::TreeState* state() const { return state_->as<device::TreeState>(); }
  device::AllocatorState* allocator_state(uint32_t allocator) const {
    return &state()->allocators[allocator];
  }
  device::ListState* list_state(uint32_t number) const {
    return reinterpret_cast<device::ListState*>(state() + 1) + number;
  }
  const device::NodeLayout* device_layout(uint32_t node) const {
    return device_layouts_->as<device::NodeLayout>() + node;
  }
  RuntimeCounts* counts() const { return counts_->as<RuntimeCounts>(); }

  // Frees what workers still hold after a launch, before anybody counts.
  device::TreeState wait_read_state(InStream& s);

  const std::vector<AllocatorStorage>& allocators() const { return allocators_; }
  uint64_t capacity(uint32_t node) const { return allocators_[layout_.node(node).allocator].capacity; }
  const Buffer& root() const { return *root_; }
  const Buffer& ambient() const { return *ambient_; }
  uint64_t bookkeeping_bytes() const;
  // Returns all buffers; those of cells are the ones where they will lie, once that is known.
  std::vector<IntrusivePtr<Buffer>> buffers() const;

  // ---- limits
  uint64_t max_bytes() const;
  // Returns whether a full range is smaller than max_bytes() asks for.
  bool is_cut(uint32_t allocator) const { return allocators_[allocator].is_cut; }
  // Allocators could take more together than the tree may have: cells are counted across them.
  bool shares_limit() const { return shares_limit_; }
  // Returns the largest capacity that its own and the tree's limits allow.
  uint64_t largest_capacity(const device::AllocatorState& a, uint32_t allocator) const;
  // Returns how many cells an allocator may have at most, where it has `capacity` of them now.
  uint64_t most_cells(uint32_t allocator, uint64_t capacity) const;
  // Returns how many cells an allocator's memory is spent on.
  uint64_t paid_cells(const device::AllocatorState& a) const;
  uint64_t live_cells(const device::TreeState& now, uint32_t node) const;

  // ---- size
  // Gives an allocator memory for so many cells; the capacity in the state is the caller's to write.
  void grow(uint32_t allocator, uint64_t cells);
  void trim(InStream& s);  // trim.cc
  // Recordings hold addresses and sizes: one of another generation is made anew.
  uint64_t generation(InStream&) const { return generation_; }

  // ---- full ranges (full_ranges.cc)
  // On a CPU a tree begins with little memory, and its cells move once, when it outgrows that, to ranges of
  // addresses for all that it may ever have. Returns false until then; always true elsewhere.
  bool has_full_ranges() const { return has_full_ranges_.load(std::memory_order_acquire); }
  // Reserves the ranges where its cells will lie, for callers that need these addresses before the move. May
  // be called on any thread. Errors: kOutOfMemory.
  void reserve_full_ranges();
  // Returns those, once they are reserved and until they are adopted.
  const std::vector<AllocatorStorage>& full_ranges() const { return full_; }
  // Takes them for its own; whatever is in them has been moved.
  void adopt_full_ranges();
  std::vector<AllocatorStorage> storages_to_be() const;

 private:
  void reserve_fixed();
  size_t state_bytes() const;
  size_t workers_at() const;
  uint64_t num_workers() const;
  void reserve_cells(uint32_t allocator);
  uint64_t max_cells_of(uint32_t allocator) const;
  device::TreeState first_state() const;
  bool is_limit_shared() const;
  uint64_t used_bytes(const device::TreeState& now) const;  // of cells that were ever handed out
  uint64_t committed_bytes() const;                         // of all allocators' cells
  uint64_t cell_bytes(const AllocatorStorage& a) const { return layout_.node(a.node).cell_bytes; }
  uint64_t first_cells(uint32_t allocator) const;
  void trim_allocator(InStream& s, device::AllocatorState now, uint32_t allocator);
  uint64_t first_range_cells(uint32_t allocator) const;
  void reserve_first_range(uint32_t allocator);
  uint64_t reserve_range(AllocatorStorage& storage, uint64_t cells) const;
  IntrusivePtr<Buffer> reserve_for_fields(uint64_t reserved_bytes, uint64_t bytes, Filling filling) const;
  AllocatorStorage full_range(uint32_t allocator) const;

  const TreeLayout& layout_;
  Device& device_;
  Program& program_;
  IntrusivePtr<Buffer> state_, root_, ambient_, device_layouts_, device_below_, counts_;
  std::vector<AllocatorStorage> allocators_;
  bool shares_limit_ = false;
  uint64_t generation_ = 0;
  mutable std::mutex full_mutex_;
  std::vector<AllocatorStorage> full_;  // what allocators_ become, once it is known where that lies
  std::atomic<bool> has_full_ranges_ = true;
};

}  // namespace coppice
