// Kernels of tests of bitmasked cells that come and go at the same time.
#include "coppice/kernel.h"

using namespace coppice;

struct CoppicePair {
  Grow<int> a, b;
};
COPPICE_INLINE int tag_of(int64_t item, int cell) { return static_cast<int>(item) * 128 + cell + 1; }

// Items come in as many thirds as there are roles: those of the first deactivate cell `item % n`, then of one
// the items set a, and b of the other.
COPPICE_KERNEL(race_pairs1, CoppicePair x, Topology gone, Item i, int n, int cells_per_gone)
{
  const int cell = static_cast<int>(i.index % n), role = static_cast<int>(i.index / n);
  if (role == 0)
    gone.deactivate(i, {cell / cells_per_gone});
  else if (role == 1)
    x.a.set(i, {cell}, tag_of(1, cell % 128));
  else
    x.b.set(i, {cell}, tag_of(2, cell % 128));
}
// An outer cell has two inner ones of `values` each: a third of the items deactivates the outer cell, and
// the others set the last value of the first inner cell and the first of the second.
COPPICE_KERNEL(race_inner1, Grow<int> x, Topology outer, Item i, int n, int values)
{
  const int cell = static_cast<int>(i.index % n), role = static_cast<int>(i.index / n);
  if (role == 0)
    outer.deactivate(i, {cell});
  else
    x.set(i, {2 * values * cell + (role == 1 ? values - 1 : values)}, role);
}
// All cells from `first` on, every `step`th.
COPPICE_KERNEL(set_pairs1, CoppicePair x, Item i, int first, int step)
{
  const int cell = first + step * static_cast<int>(i.index);
  x.a.set(i, {cell}, -1), x.b.set(i, {cell}, -1);
}
// Many on few cells: sets of either field, and as many deactivations.
COPPICE_KERNEL(flicker_pairs1, CoppicePair x, Topology gone, Item i, int n, int cells_per_gone, int salt)
{
  const uint32_t r = hash_u32(29, i.index, salt);
  const int cell = static_cast<int>(r % static_cast<uint32_t>(n));
  if (r >> 20 & 1)
    gone.deactivate(i, {cell / cells_per_gone});
  else if (r >> 21 & 1)
    x.a.set(i, {cell}, tag_of(i.index, cell % 128));
  else
    x.b.set(i, {cell}, tag_of(i.index, cell % 128));
}
// One item's own: a cell that went and came again holds what was set since.
COPPICE_KERNEL(come_again1, CoppicePair x, Topology leaf, Item i, uint32_t* wrong)
{
  const int cell = static_cast<int>(i.index);
  x.a.set(i, {cell}, 1), x.b.set(i, {cell}, 2);
  leaf.deactivate(i, {cell});
  if (leaf.is_active(i, {cell})) coppice_fetch_add_u32(wrong, 1);
  if (cell % 2 == 0) x.a.set(i, {cell}, 3);
  if (leaf.is_active(i, {cell}) != (cell % 2 == 0)) coppice_fetch_add_u32(wrong, 1);
}
COPPICE_KERNEL(look_at_pairs1, Read<int> a, Read<int> b, Topology leaf, Item i, int* values)
{
  const int cell = static_cast<int>(i.index);
  values[3 * i.index] = a.at(i, {cell}), values[3 * i.index + 1] = b.at(i, {cell});
  values[3 * i.index + 2] = leaf.is_active(i, {cell}) ? 1 : 0;
}
// Stores each outer cell's two values that are set, and whether their inner cells are active.
COPPICE_KERNEL(look_at_inner1, Read<int> x, Topology leaf, Item i, int values, int* found)
{
  const int first = 2 * values * static_cast<int>(i.index) + values - 1;
  for (int k = 0; k < 2; ++k) {
    found[4 * i.index + 2 * k] = x.at(i, {first + k});
    found[4 * i.index + 2 * k + 1] = leaf.is_active(i, {first + k}) ? 1 : 0;
  }
}
// Deactivates every third cell of a loop, and what it writes to a cell that it deactivates is not seen.
COPPICE_KERNEL(leave_loop1, Write<int> a, Topology leaf, Cell1 c)
{
  const int at = c.coord(0);
  if (at % 3 == 0) leaf.deactivate(c, {at});
  a[c] = at + 1;
}
// Appends to lists in cells that go.
COPPICE_KERNEL(race_lists1, Append<int> list, Topology gone, Item i, int n)
{
  const int cell = static_cast<int>(i.index % n);
  if (i.index < n)
    gone.deactivate(i, {cell});
  else
    list.append(i, {cell}, cell + 1);
}
