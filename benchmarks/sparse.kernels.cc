// Kernels of the sparse benchmark.
#include "benchmarks/sparse_case.h"
#include "coppice/kernel.h"

using namespace coppice;
using namespace coppice::bench;

// Item i is cell i of a square, row by row; whoever writes a cell activates it. Taichi's loop knows that its
// side is a power of two as well.
COPPICE_KERNEL(fill_square, Grow<float> a, Item i, int32_t log2_side)
{
  const int32_t at = static_cast<int32_t>(i.index);
  a.set(i, {at >> log2_side, at & ((1 << log2_side) - 1)}, 2.0f);
}

// The same by a loop over the cells of a box.
COPPICE_KERNEL(fill_cell, Write<float> a, Cell2 cell)
{ a[cell] = 2.0f; }

// Item i is block i of a square.
COPPICE_KERNEL(activate_square, Topology block, Item i, int32_t log2_side)
{
  const int32_t at = static_cast<int32_t>(i.index);
  block.activate(i, {at >> log2_side, at & ((1 << log2_side) - 1)});
}

// Cells of side^2, where `unit`^2 of them are active together.
COPPICE_KERNEL(fill_occupied, Grow<float> a, Item i, int32_t side, int32_t unit)
{
  const int32_t at = static_cast<int32_t>(i.index), x = at / side, y = at % side;
  if (is_occupied(x / unit, y / unit)) a.set(i, {x, y}, occupied_value(x, y));
}

struct Scaling {
  Read<float> a;
  Write<float> b;
};
COPPICE_KERNEL(scale_and_shift, Scaling s, Cell2 cell)
{ s.b[cell] = 2.0f * s.a[cell] + 1.0f; }

// Enough arithmetic that memory is not what limits it.
static float iterate(float x) {
  for (int round = 0; round < 32; ++round) x = 3.7f * x * (1.0f - x);
  return x;
}
COPPICE_KERNEL(iterate_line, Scaling s, Cell1 cell)
{ s.b[cell] = iterate(s.a[cell] + 0.3f); }
COPPICE_KERNEL(iterate_image, Scaling s, Cell2 cell)
{ s.b[cell] = iterate(s.a[cell] + 0.3f); }

// Item i goes to list i modulo their number, a power of two.
COPPICE_KERNEL(append_items, Append<int32_t> list, Item i, int32_t lists)
{
  const int32_t at = static_cast<int32_t>(i.index);
  list.append(i, {at & (lists - 1)}, at);
}
