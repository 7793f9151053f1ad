// Kernels of tests of temporary fields: each role, on cells, blocks, elements and by coordinate.
#include "coppice/kernel.h"

using namespace coppice;

using ReadNear = Read<float, Star<1>>;

COPPICE_KERNEL(store_ramp, Write<float> to, Cell<1> c, float base)
{ to[c] = base + static_cast<float>(c.coord(0)); }
COPPICE_KERNEL(store_double, Write<double> to, Cell<1> c, double base)
{ to[c] = base + c.coord(0); }
COPPICE_KERNEL(store_where_even, Write<float> to, Cell<1> c, float v)
{
  if (c.coord(0) % 2 == 0) to[c] = v;
}
COPPICE_KERNEL(mix, Read<float> a, Read<float> b, Write<float> to, Cell<1> c, float by)
{ to[c] = a[c] + by * b[c]; }
COPPICE_KERNEL(smooth, ReadNear from, Write<float> to, Cell<1> c)
{ to[c] = from(c, -1) + from[c] + from(c, 1); }
COPPICE_KERNEL(add_single, Read<float> from, Update<float> to, Cell<1> c)
{ to[c] = to[c] * 0.5f + from[c]; }
COPPICE_KERNEL(add_double, Read<double> from, Update<float> to, Cell<1> c)
{ to[c] = to[c] * 0.5f + static_cast<float>(from[c]); }
COPPICE_KERNEL(add_in_place, Update<float> x, Cell<1> c, float v)
{ x[c] += v; }
COPPICE_KERNEL(add_to_fours, Accumulate<float> sums, Read<float> from, Cell<1> c)
{ sums.add(c, {c.coord(0) / 4 * 4}, from[c]); }
COPPICE_KERNEL(set_at, Grow<float> to, Item i, int at, float v)
{ to.set(i, {at}, v); }
COPPICE_KERNEL(read_at, Read<float> from, Item i, int at, float* out)
{ out[i.index] = from.at(i, {at}); }
COPPICE_KERNEL(store_block, Write<float> to, Block<1> b, int n, float v)
{
  const auto values = to.data(b);
  for (int k = 0; k < n; ++k) values[k] = v;
}
COPPICE_KERNEL(sum_block, Read<float> from, Write<float> to, Block<1> b, int n)
{
  const auto values = from.data(b);
  const auto sums = to.data(b);
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += values[k];
  for (int k = 0; k < n; ++k) sums[k] = sum;
}
COPPICE_KERNEL(double_block, Update<float> x, Block<1> b, int n)
{
  const auto values = x.data(b);
  for (int k = 0; k < n; ++k) values[k] *= 2;
}
COPPICE_KERNEL(drop_and_grow, Topology cells, Item item, int drop, int grow)
{
  cells.deactivate(item, {drop});
  cells.activate(item, {grow});
}

// ---- lists

COPPICE_KERNEL(append_numbers, Append<float> list, Item i, int lists)
{ list.append(i, {static_cast<int>(i.index) % lists}, static_cast<float>(i.index)); }
COPPICE_KERNEL(store_entries, Read<float> from, Write<float> to, Entry<1> e, float by)
{ to[e] = by * from[e]; }
COPPICE_KERNEL(add_entries, Read<float> from, Update<float> to, Entry<1> e)
{ to[e] += from[e]; }
COPPICE_KERNEL(read_element, Read<float> list, Item i, int at, float* out)
{ out[i.index] = list.at(i, {at}, i.index); }

// ---- two dimensions, tiles

using ReadBox = Read<float, Box<1>>;
using SumBox = Accumulate<float, Box<1>>;
COPPICE_KERNEL(store_ramp2, Write<float> to, Cell<2> c, float by)
{ to[c] = by * static_cast<float>(c.coord(0)) + static_cast<float>(c.coord(1)); }
COPPICE_KERNEL(smooth2, ReadBox from, Write<float> to, Cell<2> c)
{
  float sum = 0;
  for (int y = -1; y <= 1; ++y) {
    for (int z = -1; z <= 1; ++z) sum += from(c, y, z) * static_cast<float>(2 + y + z);
  }
  to[c] = sum;
}
// Cells of an odd column get that of the one before, too.
COPPICE_KERNEL(scatter2, Read<float> from, SumBox to, Cell<2> c)
{
  to.add(c, {0, 0}, from[c]);
  if (c.coord(1) % 2 == 0) to.add(c, {0, 1}, from[c]);
}
COPPICE_KERNEL(clear_block2, Write<float> to, Block<2> b, int n)
{
  const auto values = to.data(b);
  for (int k = 0; k < n; ++k) values[k] = 0;
}
COPPICE_KERNEL(add2, Read<float> a, Read<float> b, Update<float> to, Cell<2> c)
{ to[c] = to[c] * 0.5f + a[c] - b[c]; }
