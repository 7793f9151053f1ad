// Kernels of the GPU benchmark.
#include "benchmarks/gpu_case.h"
#include "coppice/kernel.h"

using namespace coppice;
using namespace coppice::bench;

struct Stencil {
  Read<float, Star<1>> now;
  Write<float> next;
};
COPPICE_KERNEL(apply_laplacian, Stencil s, Cell3 cell, float k)
{ s.next[cell] = s.now[cell] + k * laplacian(s.now, cell); }

// A timed launch must write over this.
COPPICE_KERNEL(poison, Write<float> next, Cell3 cell)
{ next[cell] = __builtin_nanf(""); }

// Item i is cell i of a cube of side^3.
COPPICE_KERNEL(fill_cube, Grow<float> now, Item i, int32_t side, Occupancy occupancy)
{
  const int64_t at = i.index, n = side;
  const int32_t x = static_cast<int32_t>(at / (n * n)), y = static_cast<int32_t>(at / n % n),
                z = static_cast<int32_t>(at % n);
  if (occupancy.contains(x, y, z)) now.set(i, {x, y, z}, initial_value(x, y, z));
}

// Item i writes a cell of a square of cells: row by row, or in an order without locality.
COPPICE_KERNEL(write_rows, Grow<float> a, Item i, Square square)
{
  const uint32_t at = static_cast<uint32_t>(i.index);
  a.set(i, {square.x(at), square.y(at)}, 2.0f);
}
COPPICE_KERNEL(write_scattered, Grow<float> a, Item i, Square square)
{
  const uint32_t at = scramble(static_cast<uint32_t>(i.index), 2 * square.log2_side);
  a.set(i, {square.x(at), square.y(at)}, 2.0f);
}

// Item i is block i of a square of blocks.
COPPICE_KERNEL(activate_blocks, Topology block, Item i, Square square)
{
  const uint32_t at = static_cast<uint32_t>(i.index);
  block.activate(i, {square.x(at), square.y(at)});
}
