// Cells that are deactivated are recycled here, and collected once the launch is over.
#pragma once
#include <chrono>
#include <cstdint>

#include "gpu/device.h"
#include "sparse/kernel.h"
#include "sparse/loop_lists.h"
#include "sparse/tree_memory.h"

namespace coppice {

class Collector {
 public:
  Collector(TreeMemory& memory, LoopLists& lists, Program& program);

  // Collects what was deactivated and advances the version, after a launch that is not to be repeated,
  // even if it failed.
  void commit_topology(InStream& s, const device::TreeState& now);
  // Does the same where the host has not read the state yet. In a recording the device finds out what
  // there is to do.
  void commit_topology(InStream& s);
  // Has a device say whether the launch of this number left something to commit (Launch::tell_changes).
  void tell_changes(InStream& s, uint64_t launch);
  // Deactivates everything below a node; its topology is to be committed behind that.
  void recycle_below(InStream& s, uint32_t node);

  // These count collections that the host gave, and the time that they took it.
  uint64_t collections() const { return collections_; }
  double collection_s() const { return std::chrono::duration<double>(collection_time_).count(); }

 private:
  using ListKernel =
      Kernel<void(Item, device::TreeState*, const device::NodeLayout*, const device::LoopElement*)>;
  void clean_cells(InStream& s);
  void collect_allocator(InStream& s, uint32_t allocator);
  void recycle_all(InStream& s, uint32_t node);
  void run_over_lists(InStream& s, const ListKernel& kernel, uint32_t node, const LoopList* parents);

  const TreeLayout& layout_;
  TreeMemory& memory_;
  LoopLists& lists_;
  Program& program_;
  uint64_t collections_ = 0;
  std::chrono::steady_clock::duration collection_time_{};
};

}  // namespace coppice
