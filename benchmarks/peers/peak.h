// As many multiplications and additions as one core can do: the other ceiling of work
// that is no longer bound by memory.
#pragma once
#include <cstddef>

namespace coppice::bench {

// Fused multiply-adds of floats on registers alone. Returns how many floating-point operations that was (two
// each); `sink` keeps the compiler from leaving them out.
double multiply_and_add(size_t rounds, float* sink);

}  // namespace coppice::bench
