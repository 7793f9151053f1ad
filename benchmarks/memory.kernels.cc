// Kernels of the memory benchmark: a ball of blocks, and a stencil that touches every value.
#include "coppice/kernel.h"

using namespace coppice;

struct Pair {
  Read<float, Star<1>> from;
  Write<float> to;
};
COPPICE_KERNEL(spread, Pair pair, Cell3 cell)
{ pair.to[cell] = pair.from[cell] + 0.1f * laplacian(pair.from, cell) + 1.0f; }

// Item i is block i of a cube of side^3; those within the radius of its middle become active.
COPPICE_KERNEL(grow_ball, Topology blocks, Item i, int side, int radius2)
{
  const int at = static_cast<int>(i.index), x = at / (side * side), y = at / side % side, z = at % side;
  const int dx = 2 * x + 1 - side, dy = 2 * y + 1 - side, dz = 2 * z + 1 - side;
  if (dx * dx + dy * dy + dz * dz < 4 * radius2) blocks.activate(i, {x * 8, y * 8, z * 8});
}
