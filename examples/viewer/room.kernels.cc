// Heat spreads in a cold room: du/dt = k laplacian(u) - c u, with u the temperature above the room's.
#include <algorithm>

#include "coppice/kernel.h"
#include "core/math.h"  // before the kernels' own header
using namespace coppice;

// A hot ball; Grow activates the leaves that it touches.
COPPICE_KERNEL(heat_ball, Grow<float> u, Item i, Vec3i center, int radius) {
  const int n = 2 * radius + 1, index = static_cast<int>(i);
  const Vec3i d = Vec3i(index / (n * n), index / n % n, index % n) - Vec3i::Constant(radius);
  if (d.squaredNorm() <= radius * radius)
    u.set(i, {center.x() + d.x(), center.y() + d.y(), center.z() + d.z()}, 1.0f);
}
// Cells beside a warm one must be active before heat flows into them; inactive cells read as 0.
COPPICE_KERNEL(grow, Read<float> u, Topology leaf, Cell3 cell, float cold) {
  const int x = cell.coord(0), y = cell.coord(1), z = cell.coord(2);
  for (int d = -1; d <= 1 && u[cell] > cold; d += 2) {
    leaf.activate(cell, {x + d, y, z});
    leaf.activate(cell, {x, y + d, z});
    leaf.activate(cell, {x, y, z + d});
  }
}
COPPICE_KERNEL(spread, Read<float, Star<1>> now, Write<float> next, Cell3 cell, float k, float keep) {
  next[cell] = keep * (now[cell] + k * laplacian(now, cell));
}
// Gives back the memory of leaves that are cold. They read as 0 from then on.
COPPICE_KERNEL(trim, Read<float> u, Topology blocks, Block3 block, float cold) {
  const auto values = u.data(block);
  float most = 0;
  for (int i = 0; i < 512; ++i) most = std::max(most, values[i]);
  if (most < cold) blocks.deactivate(block, {block.coord(0) / 8, block.coord(1) / 8, block.coord(2) / 8});
}
