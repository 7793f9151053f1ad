// The numbers that the emulated GPU's choices are made of: splitmix64 (Steele, Lea, Flood 2014).
#pragma once
#include <cstdint>

namespace coppice::simt {

class Random {
 public:
  explicit Random(uint64_t seed = 0) : state_(seed) {}

  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  uint32_t below(uint32_t n) { return static_cast<uint32_t>((next() >> 32) * n >> 32); }
  bool one_in(uint32_t n) { return below(n) == 0; }

 private:
  uint64_t state_;
};

}  // namespace coppice::simt
