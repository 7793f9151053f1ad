// Numbers that look random, the same for the same index, are made here: sampling by them finds no pattern
// of the data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace coppice::render {

// Returns 32 bits for an index: it multiplies by a constant of golden ratio, then mixes the upper bits
// once more.
inline uint32_t scatter(size_t index) {
  uint64_t bits = static_cast<uint64_t>(index) * 0x9e3779b97f4a7c15u;
  bits = (bits ^ (bits >> 32)) * 0x9e3779b97f4a7c15u;
  return static_cast<uint32_t>(bits >> 32);
}

}  // namespace coppice::render
