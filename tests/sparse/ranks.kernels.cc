// Kernels of the tests of trees over ranks.
#include "coppice/kernel.h"

using namespace coppice;

struct Smooth {
  Read<float, Box<1>> now;
  Write<float> next;
};
COPPICE_KERNEL(smooth2, Smooth f, Cell2 cell, float k)
{
  float sum = 0;
  for (int x = -1; x <= 1; ++x)
    for (int y = -1; y <= 1; ++y) sum += f.now(cell, x, y);
  f.next[cell] = (1 - k) * f.now[cell] + k * sum / 9;
}
struct Smooth3 {
  Read<float, Star<2>> now;
  Write<float> next;
};
COPPICE_KERNEL(smooth3, Smooth3 f, Cell3 cell, float k)
{
  f.next[cell] =
      (1 - 6 * k) * f.now[cell] + k * (f.now(cell, -2, 0, 0) + f.now(cell, 2, 0, 0) + f.now(cell, 0, -2, 0) +
                                       f.now(cell, 0, 2, 0) + f.now(cell, 0, 0, -2) + f.now(cell, 0, 0, 2));
}
// Sets n x n cells around the origin, from every rank.
COPPICE_KERNEL(start2, Grow<float> u, Item i, int n, int x0, int y0)
{
  const int x = static_cast<int>(i.index) / n, y = static_cast<int>(i.index) % n;
  u.set(i, {x0 + x, y0 + y}, static_cast<float>(hash_u32(7, i.index) & 1023u));
}
COPPICE_KERNEL(start3, Grow<float> u, Item i, int n, int at)
{
  const int x = static_cast<int>(i.index) / (n * n), y = static_cast<int>(i.index) / n % n,
            z = static_cast<int>(i.index) % n;
  u.set(i, {at + x, at + y, at + z}, static_cast<float>(hash_u32(7, i.index) & 1023u));
}
// Activates the cell that lies so far from each warm one, where it is within -half and half - 1.
COPPICE_KERNEL(spread2, Read<float> u, Topology leaf, Cell2 cell, int dx, int dy, int half)
{
  const int x = cell.coord(0) + dx, y = cell.coord(1) + dy;
  if (u[cell] > 1 && x >= -half && x < half && y >= -half && y < half) leaf.activate(cell, {x, y});
}
COPPICE_KERNEL(spread3, Read<float> u, Topology leaf, Cell3 cell, int dx, int dy, int dz)
{
  if (u[cell] > 1) leaf.activate(cell, {cell.coord(0) + dx, cell.coord(1) + dy, cell.coord(2) + dz});
}
COPPICE_KERNEL(age2, Update<int> age, Cell2 cell, int by)
{ age[cell] += by + cell.coord(1); }
COPPICE_KERNEL(mix2, Read<float> u, Read<int> age, Write<float> next, Cell2 cell)
{ next[cell] = u[cell] + static_cast<float>(age[cell]); }

COPPICE_KERNEL(number2, Grow<int> n, Item i)
{ n.set(i, {static_cast<int>(i.index) / 8, static_cast<int>(i.index) % 8}, static_cast<int>(i.index)); }

// Trees over ranks refuse these.
COPPICE_KERNEL(add_range2, Accumulate<float> u, Item i)
{ u.add(i, {static_cast<int>(i.index), 0}, 1.0f); }
COPPICE_KERNEL(sum_elsewhere2, Read<float> u, Grow<float> sum, Cell2 cell)
{ sum.add(cell, {0, 0}, u[cell]); }
COPPICE_KERNEL(read_anywhere2, Read<float> u, Write<float> next, Cell2 cell)
{ next[cell] = u.at(cell, {0, 0}); }
COPPICE_KERNEL(store_anywhere2, Grow<float> u, Cell2 cell)
{ u.set(cell, {cell.coord(0) + 1, cell.coord(1)}, 1.0f); }
COPPICE_KERNEL(deactivate2, Topology leaf, Cell2 cell)
{ leaf.deactivate(cell, {cell.coord(0), cell.coord(1)}); }
COPPICE_KERNEL(test2, Topology leaf, Write<float> next, Cell2 cell)
{ next[cell] = leaf.is_active(cell, {cell.coord(0) + 1, cell.coord(1)}) ? 1.0f : 0.0f; }
COPPICE_KERNEL(read_range2, Read<float> u, Item i, float* out)
{ out[i.index] = u.at(i, {static_cast<int>(i.index), 0}); }
struct Far {
  Read<float, Star<9>> now;
  Write<float> next;
};
COPPICE_KERNEL(far2, Far f, Cell2 cell)
{ f.next[cell] = f.now(cell, 9, 0); }
