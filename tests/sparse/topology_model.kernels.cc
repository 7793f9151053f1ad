// Kernels of the topology stress tests: trees in two dimensions, coordinates as pairs.
#include "coppice/kernel.h"

using namespace coppice;

COPPICE_KERNEL(activate_coords2, Topology node, Item i, const int* coords)
{ node.activate(i, {coords[2 * i.index], coords[2 * i.index + 1]}); }
COPPICE_KERNEL(deactivate_coords2, Topology node, Item i, const int* coords)
{ node.deactivate(i, {coords[2 * i.index], coords[2 * i.index + 1]}); }
COPPICE_KERNEL(set_coords2, Grow<int> x, Item i, const int* coords, const int* values)
{ x.set(i, {coords[2 * i.index], coords[2 * i.index + 1]}, values[i.index]); }
// A batch of the model test; four numbers per operation: what, where (in cells of its node), and a value.
COPPICE_KERNEL(apply_batch2, Grow<int> x, Topology leaf, Topology inner0, Topology inner1, Item i,
               const int* operations, int levels)
{
  const int* o = operations + 4 * i.index;
  if (o[0] == 0)
    leaf.activate(i, {o[1], o[2]});
  else if (o[0] == 1)
    x.set(i, {o[1], o[2]}, o[3]);
  else if (o[0] == 2)
    inner0.deactivate(i, {o[1], o[2]});
  else if (o[0] == 3 && levels == 2)
    inner1.deactivate(i, {o[1], o[2]});
  else
    leaf.deactivate(i, {o[1], o[2]});
}
// Cycles of memory_cycles.h: 16 of the 96 x 96 coordinates come, and then go with what holds them.
static void cycle_place(int64_t item, int cycle, int (&at)[2]) {
  const uint32_t r = hash_u32(13, item % 16, cycle);
  at[0] = static_cast<int>(r % 96), at[1] = static_cast<int>(r / 96 % 96);
}
COPPICE_KERNEL(fill_cycle2, Grow<int> x, Item i, int cycle)
{
  int at[2];
  cycle_place(i.index, cycle, at);
  x.set(i, at, cycle);
}
COPPICE_KERNEL(clear_cycle2, Topology node, Item i, int cycle, int cells)
{
  int at[2];
  cycle_place(i.index, cycle, at);
  node.deactivate(i, {at[0] / cells, at[1] / cells});
}
COPPICE_KERNEL(activate_same2, Grow<int> x, Item i, const int* coord)
{ x.set(i, {coord[0], coord[1]}, 1); }
COPPICE_KERNEL(look_up2, Read<int> x, Topology leaf, Item i, const int* coords, int* values, int* active)
{
  const int at[2] = {coords[2 * i.index], coords[2 * i.index + 1]};
  values[i.index] = x.at(i, at);
  active[i.index] = leaf.is_active(i, at);
}
COPPICE_KERNEL(list_origins2, Block2 block, int* origins)
{
  origins[2 * block.number] = block.origin[1];
  origins[2 * block.number + 1] = block.origin[2];
}
COPPICE_KERNEL(count_visits2, Cell2 cell, int* visits, int first_i, int first_j, int extent)
{
  const Coord c = cell.coord();
  coppice_fetch_add_u32(reinterpret_cast<uint32_t*>(visits + (c.y - first_i) * extent + c.z - first_j), 1);
}
COPPICE_KERNEL(grow_three2, Grow<int> a, Grow<int> b, Grow<int> c, Item i, int n)
{
  const int y = static_cast<int>(i.index / 3 % n);
  a.set(i, {static_cast<int>(i.index * 7 % n), y}, 1);
  b.set(i, {static_cast<int>(i.index * 11 % n), y}, 2);
  c.set(i, {static_cast<int>(i.index * 15 % n), y}, 3);
}
// Each block's first value asks for a cell of its own in the other tree; then the block goes.
COPPICE_KERNEL(move_blocks2, Read<int> from, Topology from_block, Grow<int> to, Block2 block)
{
  const int value = from.data(block)[0];
  if (value > 0) to.set(block, {(value - 1) % 64 * 64, (value - 1) / 64 * 64}, value);
  from_block.deactivate(block, {block.origin[1] / 4, block.origin[2] / 4});
}
COPPICE_KERNEL(flicker2, Topology leaf, Topology block, Topology top, Item i, int salt)
{
  const uint32_t r = hash_u32(11, i.index, salt);
  const int x = static_cast<int>(r % 32), y = static_cast<int>(r / 32 % 32);
  if (r >> 10 & 1)
    leaf.activate(i, {x, y});
  else if (r >> 11 & 7)
    block.deactivate(i, {x / 2, y / 2});
  else
    top.deactivate(i, {x / 8, y / 8});
}
COPPICE_KERNEL(leave_and_step_outside2, Topology block, Grow<int> other, Item i)
{
  block.deactivate(i, {static_cast<int>(i.index % 16), static_cast<int>(i.index / 16)});
  other.set(i, {0, 0}, 1);
  if (i.index == 99) other.set(i, {32, 0}, 1);
}
