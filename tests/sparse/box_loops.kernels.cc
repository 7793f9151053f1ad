// Kernels of tests of loops over a box of cells; those that write and count visits are in
// large_containers.kernels.cc.
#include "coppice/kernel.h"

using namespace coppice;

// Each cell sets one elsewhere, which may be of another tree.
COPPICE_KERNEL(set_beside2, Read<int> from, Grow<int> to, Cell2 c, int dx, int dy)
{ to.set(c, {c.coord(0) + dx, c.coord(1) + dy}, from[c] + 1); }
// A cell's visit must not happen twice, where cells run out, too.
COPPICE_KERNEL(count_and_set_beside2, Update<int> visits, Grow<int> to, Cell2 c, int dx, int dy)
{
  visits[c] = visits[c] + 1;
  to.set(c, {c.coord(0) + dx, c.coord(1) + dy}, 1);
}
// Cells of odd coordinates go again.
COPPICE_KERNEL(deactivate_odd2, Topology node, Cell2 c)
{
  if (((c.coord(0) ^ c.coord(1)) & 1) != 0) node.deactivate(c, {c.coord(0), c.coord(1)});
}
COPPICE_KERNEL(scatter_in_box2, Accumulate<int, Star<1>> sum, Cell2 c)
{ sum.add(c, {0, 0}, 1); }
COPPICE_KERNEL(visit_block2, Block2, int)
{}
