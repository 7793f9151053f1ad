// Kernels of the mixed model (mixed_model.h) are told this, and put there what they make.
//
// Device-clean.
#pragma once
#include "sparse/device/random.h"

namespace coppice::mixed {

enum Deed : int {
  kNothing,
  kSet,            // a value of the leaf
  kAdd,            // to a value of an active cell of the leaf
  kActivateInner,  // a cell of the node below the top, by its own coordinate, as for the two below
  kActivateLeaf,   // a cell of the leaf of the other tree; of the same one where there is one handle
  kDeactivateTop,
  kDeactivateInner,
  kDeactivateLeaf,
  kAppend,      // a value
  kSetElement,  // index, value
  kClear,
  kReadList,  // index
};
// i32 each: the deed, its coordinate in tree axes, two of its own.
inline constexpr int kNumbers = 6;

// The coordinate on `axis` that a launch with this salt sends `from` to: any of a
// box, i32{first x 3, extent x 3}.
inline int place_on(int axis, uint32_t salt, const int (&from)[3], const int* box) {
  const uint32_t random = hash_u32(salt + static_cast<uint32_t>(axis),
                                   static_cast<uint64_t>(4096 * from[0] + from[1] + 8'000'000),
                                   static_cast<uint64_t>(from[2] + 4096));
  return box[axis] + static_cast<int>(random % static_cast<uint32_t>(box[3 + axis]));
}

inline int wrapping_sum(int a, int b) {
  return static_cast<int>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}
inline int wrapping_product(int a, int b) {
  return static_cast<int>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b));
}
// By which a value counts that far away; another number for every offset.
inline int weight_of(int x, int y, int z) { return 1 + 2 * (x + 2) + 11 * (y + 2) + 59 * (z + 2); }

}  // namespace coppice::mixed
