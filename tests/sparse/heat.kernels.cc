// Kernels of the sparse tests.
#include "coppice/kernel.h"
#include "core/math.h"

using namespace coppice;

struct Heat {
  Read<float, Star<1>> now;
  Write<float> next;
};
COPPICE_KERNEL(diffuse, Heat heat, Cell3 cell, float k)
{ heat.next[cell] = heat.now[cell] + k * laplacian(heat.now, cell); }
COPPICE_KERNEL(diffuse2, Heat heat, Cell2 cell, float k)
{ heat.next[cell] = heat.now[cell] + k * laplacian(heat.now, cell); }
// Cells within `thickness` of a sphere's surface.
struct Shell {
  int center[3];
  float radius;
  float thickness;
};
COPPICE_KERNEL(grow_shell, Grow<float> field, Item i, Shell shell, int n)
{
  const int x = static_cast<int>(i.index) / (n * n), y = static_cast<int>(i.index) / n % n,
            z = static_cast<int>(i.index) % n;
  const float dx = x - shell.center[0], dy = y - shell.center[1], dz = z - shell.center[2];
  const float d = __builtin_sqrtf(dx * dx + dy * dy + dz * dz) - shell.radius;
  if (d < shell.thickness && d > -shell.thickness)
    field.set(i, {x, y, z}, static_cast<float>(hash_u32(1, i.index) & 255u));
}
COPPICE_KERNEL(sum_cells, Read<float> field, Cell3 cell, double* sum, uint64_t* count)
{
  coppice_fetch_add_f64(sum, field[cell]);
  coppice_fetch_add_u64(count, 1);
}
COPPICE_KERNEL(set_cells2, Update<int> field, Cell2 cell)
{
  const Coord c = cell.coord();
  field[cell] = c.y * 1000 + c.z;
}
COPPICE_KERNEL(store_axes1, Update<Vec3i> field, Cell1 cell)
{ field[cell] = {cell.coord(0), 0, 0}; }
COPPICE_KERNEL(store_axes2, Update<Vec3i> field, Cell2 cell)
{ field[cell] = {cell.coord(0), cell.coord(1), 0}; }
COPPICE_KERNEL(store_axes3, Update<Vec3i> field, Cell3 cell)
{ field[cell] = {cell.coord(0), cell.coord(1), cell.coord(2)}; }
COPPICE_KERNEL(read_coords2, Read<int> field, Item i, const int* coords, int* out)
{ out[i.index] = field.at(i, {coords[2 * i.index], coords[2 * i.index + 1]}); }
COPPICE_KERNEL(grow_coords2, Grow<int> field, Item i, const int* coords, int value)
{ field.set(i, {coords[2 * i.index], coords[2 * i.index + 1]}, value); }
COPPICE_KERNEL(add_coords1, Accumulate<int> field, Item i, int n)
{ field.add(i, {static_cast<int>(i.index % n)}, 1); }
COPPICE_KERNEL(grow_and_add1, Grow<int> field, Accumulate<int> sum, Item i)
{ field.set(i, {static_cast<int>(i.index)}, 1), sum.add(i, {0}, 1); }
COPPICE_KERNEL(activate_coords1, Topology node, Item i, int n)
{ node.activate(i, {static_cast<int>(i.index % n)}); }
COPPICE_KERNEL(deactivate_odd1, Topology node, Cell1 cell)
{
  if (cell.coord().z % 2 != 0) node.deactivate(cell, {cell.coord().z});
}
COPPICE_KERNEL(list_blocks2, Block2 block, int* origins)
{
  origins[2 * block.number] = block.coord(0);
  origins[2 * block.number + 1] = block.coord(1);
}
COPPICE_KERNEL(copy_other2, Read<int> from, Write<int> to, Cell2 cell)
{ to[cell] = from[cell] + 1; }
