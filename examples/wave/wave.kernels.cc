// Kernels of the wave equation u_tt = c^2 laplacian(u), by leapfrog, with a moving disc on which u = 0.
#include "wave.h"  // and with it core/math.h, before the kernels' own header

#include <algorithm>
#include <cmath>

#include "coppice/kernel.h"
using namespace coppice;

// A step of leapfrog: `old` holds u at the step before, and u at the next step afterwards.
COPPICE_KERNEL(leapfrog, Read<float, Star<1>> now, Update<float> old, Cell2 cell, Medium m, Disc disc) {
  const int x = cell.coord(0), y = cell.coord(1);
  const int to_wall = std::min({x, y, m.size - 1 - x, m.size - 1 - y});
  const float depth = to_wall < m.sponge ? 1 - static_cast<float>(to_wall) / m.sponge : 0;
  const float drag = 0.2f * depth * depth;  // rises slowly from the inner rim of the sponge to the wall
  const float next = 2 * now[cell] - (1 - drag) * old[cell] + m.k * laplacian(now, cell);
  old[cell] = disc.covers(x, y) ? 0 : next / (1 + drag);
}
// Sets size x size cells from an array on the host, and activates them.
COPPICE_KERNEL(load, Grow<float> u, Item i, View<const float> values, int size) {
  u.set(i, {static_cast<int>(i / size), static_cast<int>(i % size)}, values[i]);
}
// A square source with a corner at (x, y) forces its value on the wave; Grow activates its blocks.
COPPICE_KERNEL(shake, Grow<float> u, Item i, int x, int y, int width, float value) {
  u.set(i, {static_cast<int>(x + i / width), static_cast<int>(y + i % width)}, value);
}
// Gives back the memory of blocks in which the wave is lower than `calm`. They read as zero from then on.
COPPICE_KERNEL(trim, Read<float> now, Read<float> old, Topology blocks, Block2 block, float calm) {
  const auto a = now.data(block), b = old.data(block);
  float most = 0;
  for (int i = 0; i < kBlock * kBlock; ++i) most = std::max({most, std::fabs(a[i]), std::fabs(b[i])});
  if (most < calm) blocks.deactivate(block, {block.coord(0) / kBlock, block.coord(1) / kBlock});
}
// Activates the neighbours of active blocks, for waves to run into; none beyond the domain.
COPPICE_KERNEL(grow, Topology blocks, Block2 block, int last) {
  const int x = block.coord(0) / kBlock, y = block.coord(1) / kBlock;
  for (int d = -1; d <= 1; d += 2) {
    blocks.activate(block, {std::clamp(x + d, 0, last), y});
    blocks.activate(block, {x, std::clamp(y + d, 0, last)});
  }
}
// Kinetic and elastic energy between two steps, in units of (h / dt)^2. Leapfrog conserves this very sum.
COPPICE_KERNEL(add_energy, Read<float, Star<1>> now, Read<float> old, Accumulate<double> energy, Cell2 cell,
               float k) {
  const float change = now[cell] - old[cell];
  energy.add(cell, {0}, 0.5 * (change * change - k * laplacian(now, cell) * old[cell]));
}
