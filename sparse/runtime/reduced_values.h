// How values are reduced (sparse/reductions.h): which of them are joined, in what order.
//
// Device-clean. Values have an order: containers in that of their node's list, and in each its cells. That is
// cut into slices of about as many pieces of containers, and a slice's values go in turn to kReductionLanes
// sums; all of these are joined in a fixed order then. So neither the threads nor the device decide how a sum
// is rounded.
//
//     value      0 1 2 ... 7 8 9 ...  |  slice 1  | ... |  the last slice
//     lane       0 1 2 ... 7 0 1 ...
//     partials   Sum[kReductionSlices]: of each slice its lanes, joined in their order; taken as [n][kJoined],
//                joined along n, then the kJoined sums that are left
#pragma once
#include <stdint.h>

#include "sparse/device/layout.h"

// Says where values are: in a node's containers, or in a buffer (tree: null).
struct CoppiceReduced {
  const coppice::device::TreeState* tree;
  const coppice::device::NodeLayout* node;
  const uint64_t* containers;  // how many the node's list has
  uint64_t n;                  // values in a buffer
  // These are of one or two arrays: bytes from the container (pointer: the cell) or the buffer to value 0,
  // and from one value to the next.
  uint64_t offset[2];
  uint32_t stride[2];
};

namespace coppice {

inline constexpr uint32_t kReductionLanes = 8, kReductionSlices = 4096;
inline constexpr uint32_t kSlicesOfTeam = 16;
inline constexpr uint32_t kJoined = 128;
static_assert(kReductionSlices % kJoined == 0 && kReductionSlices % kSlicesOfTeam == 0);

}  // namespace coppice
