// Parts of a tree that is cut over ranks, by the work that its cells make.
#pragma once
#include <array>
#include <cstdint>
#include <span>

#include "sparse/tree.h"

namespace coppice {

struct CellWeight {
  std::array<int32_t, 3> cell{};  // of the node, in tree axes
  uint64_t weight = 0;            // in any unit
};

// Cuts the tree anew where the largest part has more than 1.1 times its share of the weights, and moves
// blocks with their values to their new owners. `own` are weights of this rank's cells, in any order, several
// for a block if need be. From then on the tree is not evened out by its number of blocks: the program calls
// this again when its work has moved. Returns how many times its share the largest part has had. All ranks
// call it together. Cost: a message between all ranks; where it is cut anew, 16 bytes for each block of all
// ranks to each, and the blocks that move. Errors: kInvalidArgument for a tree that is not cut, or a node
// that does not lie below the cut; kOutOfRange on all ranks for a cell that is not its rank's own.
double wait_balance(const Node& node, std::span<const CellWeight> own);

}  // namespace coppice
