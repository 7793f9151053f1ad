// Sorting of pairs of a key and a value in the host's memory: stable, and nothing is allocated, for the
// caller gives the scratch memory, in which all pairs have room once more.
//
// One thread sorts by digits of 8 bits, and passes over those that all keys share. Where it pays, several
// threads of the caller's TBB arena sort pieces so and merge them. The result is the same.
#pragma once
#include <cstddef>
#include <cstdint>

namespace coppice::primitives {

template <class Key>
constexpr size_t pair_sort_scratch_bytes(size_t n) {
  return n < 2 ? 0 : n * (sizeof(Key) + sizeof(uint32_t));
}

// values[i] moves with keys[i]. `scratch` has pair_sort_scratch_bytes<Key>(n) bytes, aligned for keys.
void sort_pairs(uint32_t* keys, uint32_t* values, size_t n, void* scratch);
void sort_pairs(uint64_t* keys, uint32_t* values, size_t n, void* scratch);

}  // namespace coppice::primitives
