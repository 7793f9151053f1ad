// Kernels of the stencil benchmark: the stencil itself, and what fills and reads the tree around it.
#include "benchmarks/lookup_case.h"
#include "coppice/kernel.h"

using namespace coppice;
using bench::Region;

struct Heat {
  Read<float, Star<1>> now;
  Write<float> next;
};
COPPICE_KERNEL(diffuse, Heat heat, Cell3 cell, float k)
{ heat.next[cell] = heat.now[cell] + k * laplacian(heat.now, cell); }

// Item i is voxel i of the region's cube.
COPPICE_KERNEL(fill_region, Grow<float> now, Item i, Region region)
{
  const int32_t n = region.side(), first = region.first(), at = static_cast<int32_t>(i.index);
  const int32_t x = first + at / (n * n), y = first + at / n % n, z = first + at % n;
  if (region.contains(x, y, z)) now.set(i, {x, y, z}, bench::initial_value(x, y, z));
}

// Into an array with one place per voxel of the cube.
COPPICE_KERNEL(copy_region, Read<float> field, Cell3 cell, Region region, float* out, uint64_t* count)
{
  const Coord c = cell.coord();
  const int32_t x = c.x - region.first(), y = c.y - region.first(), z = c.z - region.first();
  if (!region.contains(c.x, c.y, c.z)) return;
  const int32_t n = region.side();
  if (x < 0 || y < 0 || z < 0 || x >= n || y >= n || z >= n) return;
  coppice_fetch_add_u64(count, 1);
  out[(static_cast<int64_t>(x) * n + y) * n + z] = field[cell];
}
