// The generator of kernels' random numbers (sparse/device/philox.h), for the host: a pure
// function of a counter and a key. No state, so the numbers of a cell are the same whichever
// thread asks, and in whatever order.
#pragma once

#include <array>
#include <cstdint>

#include "sparse/device/philox.h"

namespace coppice {

using device::uniform_float;

inline std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  const device::PhiloxBlock block{{counter[0], counter[1], counter[2], counter[3]}};
  const device::PhiloxBlock mixed = device::philox(block, uint64_t{key[1]} << 32 | key[0]);
  return {mixed.word[0], mixed.word[1], mixed.word[2], mixed.word[3]};
}

}  // namespace coppice
