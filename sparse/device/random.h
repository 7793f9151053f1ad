// Counter-based random numbers: a draw is a function of seed and counters, so it is the same on every device,
// for any number of threads and any order of the items.
//
//     Random random(cell);                     // the device's seed, the launch's number, the cell's coordinate
//     field[cell] = 0.1f * random.normal();
//
// Device-clean. A Random lives as long as its item; a copy goes on with the same draws. Only operations that
// are rounded alike everywhere are used: + - * / sqrt and fused multiply-add, no library's functions.
#pragma once
#include <cstdint>

#include "sparse/device/arguments.h"
#include "sparse/device/philox.h"

namespace coppice {

// Returns 32 random bits for (seed, a, b); two rounds of a 64-bit multiply-xorshift mix.
inline uint32_t hash_u32(uint64_t seed, uint64_t a, uint64_t b = 0) {
  uint64_t x = seed ^ (a * 0x9e3779b97f4a7c15ull) ^ (b * 0xc2b2ae3d27d4eb4full);
  x ^= x >> 32, x *= 0xd6e8feb86659fd93ull, x ^= x >> 32, x *= 0xd6e8feb86659fd93ull, x ^= x >> 32;
  return static_cast<uint32_t>(x);
}

// Draws from a stream of 2^64 blocks of four draws. Streams of one seed with different (a, b) never
// overlap.
class Random {
 public:
  // Makes one from a kernel's Cell, Block or Item: of the device's seed (Device::set_seed), the number of
  // the launch among its stream's, and the item's index or the coordinate.
  template <class From>
  requires(device::is_place_argument<From>) COPPICE_HARMLESS COPPICE_INLINE
      explicit Random(const From& from) {
    const LaunchBlock* launch = device::launch_of(from);
    const uint64_t number = launch_number(*launch);
    const auto low = static_cast<uint32_t>(number), high = static_cast<uint32_t>(number >> 32);
    const uint64_t seed = launch->context->random_seed + (uint64_t{high} << 32);
    if constexpr (std::is_same_v<From, Item>) {
      const auto index = static_cast<uint64_t>(from.index);
      open({static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), 0, low}, seed);
    } else {
      uint32_t c[3]{};
      COPPICE_UNROLL
      for (int axis = 0; axis < From::kDims; ++axis) c[axis] = static_cast<uint32_t>(from.coord(axis));
      open({c[0], c[1], c[2], low}, seed);
    }
  }
  // Makes one from numbers of the caller's own, such as a particle's number and the step.
  COPPICE_INLINE Random(uint64_t seed, uint64_t a, uint64_t b = 0) {
    open({static_cast<uint32_t>(a), static_cast<uint32_t>(a >> 32), static_cast<uint32_t>(b),
          static_cast<uint32_t>(b >> 32)},
         seed);
  }

  // A draw costs on x86-64, counted, 40 instructions; uniform() 45, below(100) 75, normal() 130. A new
  // Random and its first draw are two Philox blocks.
  COPPICE_INLINE uint32_t u32() {
    const uint32_t i = static_cast<uint32_t>(drawn_ & 3);
    if (i == 0)
      block_ = device::philox(
          {{static_cast<uint32_t>(drawn_ >> 2), static_cast<uint32_t>(drawn_ >> 34), stream_[0], stream_[1]}},
          key_);
    ++drawn_;
    return i == 0 ? block_.word[0] : i == 1 ? block_.word[1] : i == 2 ? block_.word[2] : block_.word[3];
  }
  COPPICE_INLINE uint64_t u64() {
    const uint64_t low = u32();
    return low | uint64_t{u32()} << 32;
  }
  // Draws a number in [0, 1), of 24 (float) or 53 bits (double).
  template <class T = float>
  COPPICE_INLINE T uniform() {
    if constexpr (std::is_same_v<T, float>) {
      return device::uniform_float(u32());
    } else {
      static_assert(std::is_same_v<T, double>, "uniform() gives a float or a double");
      return static_cast<double>(u64() >> 11) * 0x1p-53;
    }
  }
  // Draws from the normal distribution of mean 0 and variance 1, by Marsaglia's polar method (two at a
  // time, 1.27 pairs of uniform numbers for two).
  template <class T = float>
  COPPICE_INLINE T normal() {
    if (has_spare_) {
      has_spare_ = false;
      return static_cast<T>(spare_);
    }
    T first;
    spare_ = static_cast<double>(draw_normals(first));
    has_spare_ = true;
    return first;
  }
  // Draws each of 0 ... n - 1 equally often (Lemire, "Fast random integer generation in an interval",
  // 2019); 0 for n = 0.
  inline uint32_t below(uint32_t n) {
    uint64_t product = uint64_t{u32()} * n;
    if (static_cast<uint32_t>(product) < n) {
      const uint32_t unfair = (0u - n) % n;
      while (static_cast<uint32_t>(product) < unfair) product = uint64_t{u32()} * n;
    }
    return static_cast<uint32_t>(product >> 32);
  }

 private:
  // The stream's identity is mixed by one block, whose half is the key and half the counters' upper part.
  COPPICE_INLINE void open(device::PhiloxBlock identity, uint64_t seed) {
    const device::PhiloxBlock mixed = device::philox(identity, seed);
    key_ = mixed.word[0] | uint64_t{mixed.word[1]} << 32;
    stream_[0] = mixed.word[2], stream_[1] = mixed.word[3];
  }
  template <class T>
  inline T draw_normals(T& first) {
    for (;;) {
      const T u = T(2) * uniform<T>() - T(1), v = T(2) * uniform<T>() - T(1), s = device::fused(u, u, v * v);
      if (s >= T(1) || s == T(0)) continue;
      const T ratio = T(-2) * device::exact_log(s) / s;
      T scale;
      if constexpr (std::is_same_v<T, float>)
        scale = __builtin_sqrtf(ratio);
      else
        scale = __builtin_sqrt(ratio);
      first = u * scale;
      return v * scale;
    }
  }

  uint64_t key_;
  uint32_t stream_[2];
  uint64_t drawn_ = 0;
  device::PhiloxBlock block_{};
  double spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace coppice
