// Kernels that take arrays of handles.
#include "coppice/kernel.h"
#include "core/math.h"
using namespace coppice;

COPPICE_KERNEL(sum_array, std::array<Read<int>, 3> from, Write<int> to, Cell2 c)
{
  int sum = 0;
  for (const Read<int>& f : from) sum = 10 * sum + f[c];
  to[c] = sum;
}
struct Flux {
  std::array<Read<int, Star<1>>, 2> from;
  Write<int> to;
  std::array<Write<int>, 2> differences;
};
// The axis that a handle is for is its number.
COPPICE_KERNEL(take_differences, Flux flux, Cell2 c, int scale)
{
  flux.differences[0][c] = scale * (flux.from[0](c, 1, 0) - flux.from[0](c, -1, 0));
  flux.differences[1][c] = scale * (flux.from[1](c, 0, 1) - flux.from[1](c, 0, -1));
  flux.to[c] = flux.from[0][c] + flux.from[1][c];
}
COPPICE_KERNEL(fill_by_number, std::array<Grow<int>, 2> fields, Item2 i, int chosen)
{ fields[chosen].set(i, {i.coord(0), i.coord(1)}, i.coord(0) * i.coord(0) + 5 * i.coord(1)); }
