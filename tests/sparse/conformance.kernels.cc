// Kernels of the conformance tests: one-dimensional unless their name says otherwise.
#include "coppice/kernel.h"

using namespace coppice;

COPPICE_KERNEL(write_at1, Grow<int> x, Item i, const int* coords, int value)
{ x.set(i, {coords[i.index]}, value); }
COPPICE_KERNEL(write_at2, Grow<int> x, Item i, const int* coords, int value)
{ x.set(i, {coords[2 * i.index], coords[2 * i.index + 1]}, value); }
COPPICE_KERNEL(write_every1, Grow<int> x, Item i, int stride, int value)
{ x.set(i, {static_cast<int>(i.index) * stride}, value); }
COPPICE_KERNEL(write_wrapped1, Grow<int> x, Item i, int n)
{ x.set(i, {static_cast<int>(i.index % n)}, 1); }
COPPICE_KERNEL(activate_at1, Topology node, Item i, const int* coords)
{ node.activate(i, {coords[i.index]}); }
COPPICE_KERNEL(deactivate_at1, Topology node, Item i, const int* coords)
{ node.deactivate(i, {coords[i.index]}); }
COPPICE_KERNEL(read_at1, Read<int> x, Item i, const int* coords, int* out)
{ out[i.index] = x.at(i, {coords[i.index]}); }
COPPICE_KERNEL(read_at2, Read<int> x, Item i, const int* coords, int* out)
{ out[i.index] = x.at(i, {coords[2 * i.index], coords[2 * i.index + 1]}); }
COPPICE_KERNEL(add_at1, Accumulate<int> x, Item i, int n)
{ x.add(i, {static_cast<int>(i.index % n)}, 1); }
COPPICE_KERNEL(count1, Cell1 cell, uint64_t* count)
{ coppice_fetch_add_u64(count, cell.index < ~0u); }
COPPICE_KERNEL(count2, Cell2 cell, uint64_t* count)
{ coppice_fetch_add_u64(count, cell.index < ~0u); }
COPPICE_KERNEL(count3, Cell3 cell, uint64_t* count)
{ coppice_fetch_add_u64(count, cell.index < ~0u); }
COPPICE_KERNEL(sum1, Read<int> x, Cell1 cell, uint64_t* sum)
{ coppice_fetch_add_u64(sum, static_cast<uint64_t>(x[cell])); }
COPPICE_KERNEL(sum2, Read<int> x, Cell2 cell, uint64_t* sum)
{ coppice_fetch_add_u64(sum, static_cast<uint64_t>(x[cell])); }
COPPICE_KERNEL(mark_visits1, Cell1 cell, uint32_t* visits)
{ coppice_fetch_add_u32(visits + cell.coord().z, 1); }
COPPICE_KERNEL(mark_visits2, Cell2 cell, uint32_t* visits, int width)
{ coppice_fetch_add_u32(visits + cell.coord().y * width + cell.coord().z, 1); }
COPPICE_KERNEL(set_coordinate2, Update<int> x, Cell2 cell, int width)
{ x[cell] = cell.coord().y * width + cell.coord().z; }
COPPICE_KERNEL(clear_parent2, Topology parent, Cell2 cell)
{ parent.deactivate(cell, {cell.coord().y, cell.coord().z}); }
COPPICE_KERNEL(clear_parent1, Topology parent, Cell1 cell)
{ parent.deactivate(cell, {cell.coord().z}); }
COPPICE_KERNEL(copy_to_tree1, Read<int> from, Grow<int> to, Cell1 cell)
{ to.set(cell, {cell.coord().z}, from[cell]); }
COPPICE_KERNEL(write_branching1, Read<int> from, Write<int> to, Cell1 cell)
{
  if (from[cell] % 3 == 0) return;
  if (from[cell] % 3 == 1)
    to[cell] = 100 + from[cell];
  else
    to[cell] = 200 + from[cell];
}
COPPICE_KERNEL(divide1, Read<int> by, Write<int> to, Cell1 cell)
{ to[cell] = 1000 / by[cell]; }
COPPICE_KERNEL(scatter_to1, Read<int> index, Grow<int> y, Cell1 cell)
{ y.set(cell, {index[cell]}, index[cell] + 1); }
COPPICE_KERNEL(grow_both1, Grow<int> a, Grow<int> b, Item i)
{
  a.set(i, {static_cast<int>(i.index)}, 1);
  b.set(i, {static_cast<int>(i.index) * 2}, 2);
}
COPPICE_KERNEL(double_on_pointer1, Read<int> x, Write<int> y, Cell1 cell)
{ y[cell] = 2 * x[cell]; }
COPPICE_KERNEL(neighbour_sum1, Read<int, Star<1>> x, Write<int> y, Cell1 cell)
{ y[cell] = x(cell, -1) + x(cell, 1); }
struct Gathers {
  Read<int, Box<2>> x;
  Write<int> y;
};
COPPICE_KERNEL(box_sum2, Gathers g, Cell2 cell)
{
  int sum = 0;
  for (int i = -2; i <= 2; ++i) {
    for (int j = -2; j <= 2; ++j) sum += (5 * i + j) * g.x(cell, i, j);
  }
  g.y[cell] = sum;
}
// A stencil reads zeros beyond the domain of n x n; a walk must not go there.
COPPICE_KERNEL(box_sum_by_walks2, Read<int> x, Write<int> y, Cell2 cell, int n)
{
  int sum = 0;
  for (int i = -2; i <= 2; ++i) {
    for (int j = -2; j <= 2; ++j) {
      const int at[2] = {cell.coord().y + i, cell.coord().z + j};
      if (at[0] >= 0 && at[0] < n && at[1] >= 0 && at[1] < n) sum += (5 * i + j) * x.at(cell, at);
    }
  }
  y[cell] = sum;
}
COPPICE_KERNEL(block_sums2, Read<int> a, Write<int> b, Block2 block, int n)
{
  for (int i = 0; i < n; ++i) b.data(block)[i] = a.data(block)[i] + 1;
}
