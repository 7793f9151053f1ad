// Kernels of tests of launches that are replayed: walkers that leave values behind them, and lists of who
// came by.
#include "coppice/kernel.h"

using namespace coppice;

// Item i is a walker: it goes on by 1 to 8 cells, by lot.
COPPICE_KERNEL(walk, Item i, int* at, int cells)
{
  Random random(i);
  at[i.index] = (at[i.index] + 1 + static_cast<int>(random.below(8))) % cells;
}
COPPICE_KERNEL(leave_trace, Grow<int> x, Item i, const int* at)
{ x.set(i, {at[i.index]}, at[i.index] + 1); }
COPPICE_KERNEL(smooth, Read<int, Star<1>> from, Write<int> to, Cell<1> c)
{ to[c] = 2 * from[c] + from(c, -1) + from(c, 1); }
COPPICE_KERNEL(fill_with_coordinates, Write<int> x, Cell<1> c)
{ x[c] = c.coord(0); }
COPPICE_KERNEL(note_visit, Append<int> visits, Item i, const int* at, int cells_per_list)
{ visits.append(i, {at[i.index] / cells_per_list}, at[i.index]); }
COPPICE_KERNEL(sum_visits, Read<int> visits, Entry<1> e, uint64_t* sum)
{ coppice_fetch_add_u64(sum, static_cast<uint64_t>(visits[e] + 1)); }
COPPICE_KERNEL(sum_cells, Read<int> x, Cell<1> c, uint64_t* sum)
{ coppice_fetch_add_u64(sum, static_cast<uint64_t>(x[c]) * static_cast<uint64_t>(c.coord(0) + 1)); }
// Takes away what the step before left at the place that is half way round, and the visits there.
COPPICE_KERNEL(sweep, Topology blocks, Append<int> visits, Item i, const int* at, int cells,
               int cells_per_block, int cells_per_list)
{
  const int cell = (at[i.index] + cells / 2) % cells;
  blocks.deactivate(i, {cell / cells_per_block});
  visits.deactivate(i, {cell / cells_per_list});
}
// One sum after another, so that every step is told of.
COPPICE_KERNEL(keep_sums, Item, uint64_t* sums, uint64_t* kept, uint64_t* steps)
{
  kept[2 * *steps] = sums[0], kept[2 * *steps + 1] = sums[1];
  sums[0] = sums[1] = 0;
  ++*steps;
}
COPPICE_KERNEL(append_more, Append<int> list, Item i, int n)
{
  for (int k = 0; k < n; ++k) list.append(i, {0}, k);
}
COPPICE_KERNEL(count_up, Item, uint64_t* count)
{ ++*count; }
