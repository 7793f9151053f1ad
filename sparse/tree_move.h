// The move of a tree to its full ranges of addresses, once (see tree_memory.h).
//
// It moves with all its allocators, when one of them is to have more cells than its first range holds. Cells
// keep their numbers, so what changes is what has addresses: the allocators' states, the slots that cells'
// headers lead back to, and the containers in loops' lists. Nothing else keeps an address of a cell from one
// operation to the next.
#pragma once
#include "gpu/device.h"
#include "sparse/loop_lists.h"
#include "sparse/tree_memory.h"

namespace coppice {

// Takes the full ranges to be reserved. What may fail comes before the first change of the tree's state.
void move_to_full_ranges(InStream& s, TreeMemory& memory, const LoopLists& lists);

}  // namespace coppice
