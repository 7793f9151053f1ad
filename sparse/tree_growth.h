// Growth of a tree: how its allocators get more cells, and how the host takes some at once.
//
// Cells come from one place, grow(): where memory is mapped before a launch, an allocator gets more of it; on
// a CPU, the tree moves to its full ranges, once, and from then on has all that it may ever have. Errors of
// all of it: kOutOfMemory, in the name of `who`; then nothing has changed.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "gpu/device.h"
#include "sparse/loop_lists.h"
#include "sparse/tree_memory.h"

namespace coppice {

class TreeGrowth {
 public:
  TreeGrowth(TreeMemory& memory, LoopLists& lists);

  // Is called after a launch that could change topology, first, for every tree of the launch. Returns whether
  // the tree ran out of cells: then it has grown, and the launch is to be repeated. `now` is the state after
  // the launch, `why_not` says what stands against a repetition, empty where nothing does. Errors:
  // kOutOfMemory when it may not grow further or must not be repeated.
  bool resolve_shortage(InStream& s, const device::TreeState& now, std::string_view kernel,
                        std::string_view why_not);
  // Moves its cells to their full ranges, before a launch that may run short and must not be repeated.
  void take_full_ranges(InStream& s, std::string_view who);
  // Makes room for so many cells of a pointer or dynamic node in all. Errors: kInvalidArgument, too.
  void reserve_cells(InStream& s, uint32_t node, uint64_t cells);

  // Grows an allocator until so many cells can be taken from it at once: first what its free list holds, then
  // fresh ones. Returns its counters as they are now.
  device::AllocatorState make_cells_free(InStream& s, uint32_t allocator, uint64_t wanted,
                                         std::string_view who);
  // Counts them as taken; `before` is what make_cells_free() returned.
  void take_cells(InStream& s, const device::AllocatorState& before, uint32_t allocator, uint64_t cells);

 private:
  // Says how many cells an allocator is to have: `least`, and `wished` where that is allowed.
  struct Wish {
    uint64_t least = 0, wished = 0;
  };
  void grow(InStream& s, const device::AllocatorState& now, uint32_t allocator, Wish wish,
            std::string_view who);
  Wish wish_of_shortage(const device::AllocatorState& now) const;
  void require_growing(const device::TreeState& now, uint32_t allocator, std::string_view who) const;
  [[noreturn]] void refuse_repetition(uint32_t allocator, uint64_t capacity, std::string_view who,
                                      std::string_view why_not) const;
  // Says what keeps the allocator from having more cells.
  std::string limit_text(uint32_t allocator) const;
  [[noreturn]] void throw_full(uint32_t allocator, std::string_view who, const std::string& what) const;
  void take_bytes(InStream& s, uint32_t allocator, uint64_t cells, std::string_view who);
  std::string path_of(uint32_t allocator) const;

  const TreeLayout& layout_;
  TreeMemory& memory_;
  LoopLists& lists_;
};

}  // namespace coppice
