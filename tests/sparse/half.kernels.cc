// Kernels of tests of fields of Half.
#include "core/half.h"

#include "coppice/kernel.h"
using namespace coppice;

struct HalfPair {
  Half first, second;
};
COPPICE_KERNEL(fill_halves, Grow<Half> h, Item2 i, const float* values, int n)
{ h.set(i, {i.coord(0), i.coord(1)}, values[i.coord(0) * n + i.coord(1)]); }
COPPICE_KERNEL(blur_halves, Read<Half, Star<1>> from, Write<Half> to, Cell2 c)
{ to[c] = (from(c, -1, 0) + from(c, 1, 0) + from(c, 0, -1) + from(c, 0, 1)) / 4; }
COPPICE_KERNEL(grow_halves, Update<Half> h, Cell2 c, Half by)
{ h[c] = h[c] + by; }
COPPICE_KERNEL(pair_halves, Read<Half> from, Write<HalfPair> to, Cell2 c)
{ to[c] = {from[c], 2 * from[c]}; }
