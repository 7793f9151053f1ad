// The stencil over a plain array: the peer of the tree's. Compiled once per compiler and instruction set, and
// the fastest counts, so that nobody can say that the array was handicapped.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace coppice::bench {

// A box of floats with a rim of at least one voxel, z innermost.
struct ArrayShape {
  ptrdiff_t sx = 0, sy = 0;  // distance in floats of neighbours along x and y; along z it is 1
};
struct Run {
  int32_t start, length;  // along z
};

struct ArrayStencil {
  const char* name;  // "g++ -march=native"
  bool is_portable;  // x86-64-v3 only: what valgrind can run
  // All voxels of an n^3 cube whose first is at `first`.
  void (*cube)(const float* now, float* next, ptrdiff_t first, int n, ArrayShape shape, float k);
  // The voxels of a list.
  void (*list)(const float* now, float* next, const int32_t* index, size_t count, ArrayShape shape, float k);
  // The voxels of runs along z: what the list becomes when whoever writes it takes more trouble.
  void (*runs)(const float* now, float* next, const Run* runs, size_t count, ArrayShape shape, float k);
};

// All that were built.
std::vector<ArrayStencil> array_stencils();

}  // namespace coppice::bench
