// Kernels that break their roles, and some that just keep them, for the tests of COPPICE_DEBUG=checks.
#include "coppice/kernel.h"

using namespace coppice;

struct StarStep {
  Read<int, Star<1>> now;
  Write<int> next;
};
struct BoxStep {
  Read<int, Box<1>> now;
  Write<int> next;
};
COPPICE_KERNEL(read_star2, StarStep s, Cell2 cell, int dx, int dy)
{ s.next[cell] = s.now(cell, dx, dy); }
COPPICE_KERNEL(read_box2, BoxStep s, Cell2 cell, int dx, int dy)
{ s.next[cell] = s.now(cell, dx, dy); }
COPPICE_KERNEL(read_star3, StarStep s, Cell3 cell, int dx, int dy, int dz)
{ s.next[cell] = s.now(cell, dx, dy, dz); }
// Each active cell says how far it reads: by its `far` less 10.
COPPICE_KERNEL(read_as_told2, Read<int> far, StarStep s, Cell2 cell)
{ s.next[cell] = s.now(cell, far[cell] - 10, 0); }

COPPICE_KERNEL(walk2, Read<int> x, Item i, int row, int column, int* out)
{ out[i.index] = x.at(i, {row, column}) + 1; }
COPPICE_KERNEL(set2, Grow<int> x, Item i, int row, int column)
{ x.set(i, {row, column}, 5); }
COPPICE_KERNEL(add2, Accumulate<int> x, Item i, int row, int column)
{ x.add(i, {row, column}, 5); }
COPPICE_KERNEL(deactivate2, Topology node, Item i, int row, int column)
{ node.deactivate(i, {row, column}); }
COPPICE_KERNEL(is_active2, Topology node, Item i, int row, int column, int* out)
{ out[i.index] = node.is_active(i, {row, column}); }

COPPICE_KERNEL(copy_value2, Read<int> from, Write<int> to, Block2 block, int at, int64_t where)
{ to.data(block)[where] = from.data(block)[at] + 1; }
COPPICE_KERNEL(copy_neighbour2, Read<int> from, Write<int> to, Block2 block, int dx, int dy)
{ to.data(block)[0] = from.neighbour_data(block, {dx, dy})[0] + 1; }
// The checks must still let kernels use pointers so.
struct Wide {
  int v[300];
};
COPPICE_KERNEL(use_as_pointers2, Read<int> from, Update<int> to, Update<Wide> wide, Block2 block)
{
  const int* first = from.data(block);
  int* out = to.data(block);
  *out = *first + *(first + 1) + from.data(block)[uint64_t{2}];
  wide.data(block)->v[299] = 3;
  wide.data(block)[1].v[0] = 4;
}

COPPICE_KERNEL(shift_view, View<const int> from, Item i, View<int> to, int by)
{ to[i + by] = from[i]; }
COPPICE_KERNEL(fill_view, int before, View<double> to, Item i)
{ to[i] = before; }
