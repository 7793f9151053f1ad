// The sparse benchmark computes on this: sizes, and which cells are active. peers/sparse_taichi.py has
// the same.
//
// Device-clean: trees are filled by kernels, counts are checked on the host, both from here.
#pragma once
#include <cstdint>

#include "core/device_macros.h"

namespace coppice::bench {

constexpr int32_t kLeafSide = 8;          // cells per axis of every leaf
constexpr uint32_t kOneIn = 10;           // of the cells (or of the leaves) is active
constexpr int32_t kListLength = 128;      // of each of many lists
constexpr int32_t kLongListChunk = 1024;  // elements per chunk of the one long list
constexpr int32_t kShortListChunk = 32;   // ... of a short one

// Is a cell, or a leaf, active? One in ten by a hash, so that no two neighbours know of each other.
COPPICE_INLINE bool is_occupied(int32_t x, int32_t y) {
  uint32_t h = static_cast<uint32_t>(x) * 0x9E3779B1u + static_cast<uint32_t>(y) * 0x85EBCA77u;
  h ^= h >> 15;
  h *= 0x2C1B3C6Du;
  h ^= h >> 12;
  return h % kOneIn == 0;
}

// Whole numbers, so that sums do not depend on their order.
COPPICE_INLINE float occupied_value(int32_t x, int32_t y) {
  return static_cast<float>((x * 131 + y * 17) % 1000);
}

}  // namespace coppice::bench
