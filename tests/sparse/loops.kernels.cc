// Kernels of tests of loops: over the elements of lists, and over items that teams share.
#include "coppice/kernel.h"

using namespace coppice;

// A number for element `index` of the list at a coordinate.
static int code_of(int x, int y, int z, uint32_t index) {
  return (((x * 16 + y) * 16 + z) << 12) + static_cast<int>(index);
}

// Item i fills the list at coords[3 * i] with length[i] elements.
COPPICE_KERNEL(fill_lists1, Append<int> list, Item i, const int* coords, const int* length)
{
  const int* c = coords + 3 * i;
  for (int k = 0; k < length[i]; ++k) list.append(i, {c[0]}, code_of(c[0], 0, 0, static_cast<uint32_t>(k)));
}
COPPICE_KERNEL(fill_lists2, Append<int> list, Item i, const int* coords, const int* length)
{
  const int* c = coords + 3 * i;
  for (int k = 0; k < length[i]; ++k)
    list.append(i, {c[0], c[1]}, code_of(c[0], c[1], 0, static_cast<uint32_t>(k)));
}
COPPICE_KERNEL(fill_lists3, Append<int> list, Item i, const int* coords, const int* length)
{
  const int* c = coords + 3 * i;
  for (int k = 0; k < length[i]; ++k)
    list.append(i, {c[0], c[1], c[2]}, code_of(c[0], c[1], c[2], static_cast<uint32_t>(k)));
}

// Counts elements, those that are not where they say, and turns every element into its negative.
struct CoppiceVisits {
  uint64_t entries, misplaced;
};
static void visit(int& value, int expected, CoppiceVisits* visits) {
  coppice_fetch_add_u64(&visits->entries, 1);
  if (value != expected) coppice_fetch_add_u64(&visits->misplaced, 1);
  value = -value - 1;
}
COPPICE_KERNEL(visit1, Update<int> x, Entry1 e, CoppiceVisits* visits)
{ visit(x[e], code_of(e.coord(0), 0, 0, e.index), visits); }
COPPICE_KERNEL(visit2, Update<int> x, Entry2 e, CoppiceVisits* visits)
{ visit(x[e], code_of(e.coord(0), e.coord(1), 0, e.index), visits); }
COPPICE_KERNEL(visit3, Update<int> x, Entry3 e, CoppiceVisits* visits)
{ visit(x[e], code_of(e.coord(0), e.coord(1), e.coord(2), e.index), visits); }

COPPICE_KERNEL(halve_entries, Read<int> x, Write<double> half, Update<int8_t> visits, Entry1 e)
{
  half[e] = 0.5 * x[e];
  visits[e] = static_cast<int8_t>(visits[e] + 1);
}
// Adds what the cell that has the list holds, and the other list's element of the same index.
COPPICE_KERNEL(gather_for_entries, Read<int> own, Read<int> of_cell, Read<int> other, Write<int> sum,
               Entry1 e)
{ sum[e] = own[e] + 1000 * of_cell[e] + 100 * other[e]; }
COPPICE_KERNEL(set_cells1, Write<int> x, Cell1 c)
{ x[c] = c.coord(0) + 1; }
COPPICE_KERNEL(clear_one_list, Append<int> list, Item i, int at)
{ list.deactivate(i, {at}); }
COPPICE_KERNEL(count_blocks1, Read<int>, Block1, uint64_t* count)
{ coppice_fetch_add_u64(count, 1); }

// ---- teams

// Team i adds up row i of n numbers, and how many threads it had to do so.
COPPICE_KERNEL(sum_rows, Team team, int n, const int* numbers, uint64_t* sums, uint32_t* lanes)
{
  const int* row = numbers + team.index * n;
  uint64_t sum = 0;
  for (int k = static_cast<int>(team.lane()); k < n; k += static_cast<int>(team.lanes()))
    sum += static_cast<uint64_t>(row[k]);
  coppice_fetch_add_u64(&sums[team.index], sum);
  if (team.lane() == team.lanes() - 1) lanes[team.index] = team.lanes();
}
// Every lane writes its place; after the barrier it reads the place of the lane
// behind it. `room` is 1024 per team.
COPPICE_KERNEL(pass_along, Team team, uint32_t* room, uint32_t* wrong)
{
  uint32_t* places = room + team.index * 1024;
  const uint32_t behind = (team.lane() + 1) % team.lanes();
  places[team.lane()] = static_cast<uint32_t>(team.index) * 1024 + team.lane() + 1;
  team.barrier();
  if (places[behind] != static_cast<uint32_t>(team.index) * 1024 + behind + 1)
    coppice_fetch_add_u32(wrong, 1);
}

COPPICE_KERNEL(set_to_coordinate, Write<int> x, Cell1 c)
{ x[c] = c.coord(0); }
// Each block's values the other way round, by way of memory that its threads share.
COPPICE_KERNEL(reverse_blocks, Read<int> from, Write<int> to, BlockTeam<1, 64 * sizeof(int)> block,
               uint32_t* lanes)
{
  auto* const values = reinterpret_cast<int*>(block.fast);
  for (uint32_t i = block.lane(); i < 64; i += block.lanes()) values[i] = from.data(block)[i];
  block.barrier();
  for (uint32_t i = block.lane(); i < 64; i += block.lanes()) to.data(block)[i] = values[63 - i];
  coppice_fetch_add_u32(lanes, 1);
}

// ---- ranges

// Counts that an item or team ran, in the place that its number has behind `first`.
COPPICE_KERNEL(count_item, Item i, int64_t first, uint32_t* runs)
{ coppice_fetch_add_u32(&runs[i.index - first], 1); }
COPPICE_KERNEL(count_team, Team team, int64_t first, uint32_t* runs)
{
  if (team.lane() == 0) coppice_fetch_add_u32(&runs[team.index - first], 1);
}
// The same; and a loop of a kernel that appends remembers where it walked.
COPPICE_KERNEL(append_item, Append<int> list, Item i, int64_t first, uint32_t* runs)
{
  list.append(i, {0}, static_cast<int>(i.index - first));
  coppice_fetch_add_u32(&runs[i.index - first], 1);
}
