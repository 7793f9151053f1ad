// Kernels of the sparse benchmark.
#include "benchmarks/sparse_case.h"
#include "coppice/kernel.h"

using namespace coppice;
using namespace coppice::bench;

// Item i is cell i of side^2, row by row; whoever writes a cell activates it.
COPPICE_KERNEL(fill_square, Grow<float> a, Item i, int32_t side)
{
  const int32_t at = static_cast<int32_t>(i.index);
  a.set(i, {at / side, at % side}, 2.0f);
}

// Item i is block i of side^2.
COPPICE_KERNEL(activate_square, Topology block, Item i, int32_t side)
{
  const int32_t at = static_cast<int32_t>(i.index);
  block.activate(i, {at / side, at % side});
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
