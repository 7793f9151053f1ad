// Kernels of launches that need room, or find no more (room_conformance_test.cc).
#include "coppice/kernel.h"

using namespace coppice;

struct Wide {
  int at[256];
};
COPPICE_KERNEL(append_wide, Append<Wide> list, Item i, int from)
{
  Wide wide{};
  wide.at[0] = from + static_cast<int>(i.index);
  list.append(i, {0}, wide);
}
COPPICE_KERNEL(add_neighbours, Read<int, Star<1>> x, Write<int> y, Cell1 c)
{ y[c] = 2 * x[c] + x(c, -1) + x(c, 1); }
// Four chunks of a list, which is emptied before.
COPPICE_KERNEL(renew_list, Append<Wide> list, Item i)
{
  const auto k = static_cast<int>(i.index);
  list.deactivate(i, {k});
  for (int n = 0; n < 16; ++n) list.append(i, {k}, Wide{});
}
COPPICE_KERNEL(visit_entries, Read<int> x, Entry1 e, uint32_t* visits)
{ __atomic_fetch_add(visits, x[e] >= 0 ? 1u : 1000u, __ATOMIC_RELAXED); }
COPPICE_KERNEL(count_entries, Read<Wide> v, Entry1 e, uint32_t* visits)
{ __atomic_fetch_add(visits, v[e].at[1] == 0 ? 1u : 1000u, __ATOMIC_RELAXED); }
COPPICE_KERNEL(write_element, Append<int> list, Item i, int at, int index)
{ list.set(i, {at}, index, 1); }

COPPICE_KERNEL(tell_new, Topology block, Item i, int* was_new)
{
  const auto k = static_cast<int>(i.index);
  was_new[i] = !block.is_active(i, {k});
  block.activate(i, {k});
}
COPPICE_KERNEL(ask_and_grow, Topology asked, Topology grown, Item i)
{
  const auto k = static_cast<int>(i.index);
  if (!asked.is_active(i, {k})) grown.activate(i, {k});
}
COPPICE_KERNEL(teams_grow, Topology block, BlockTeam<1, 64> team, uint32_t* counter)
{
  if (team.lane() != 0) return;
  __atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED);
  block.activate(team, {team.coord(0)});
}
COPPICE_KERNEL(renew, Topology block, Item i)
{
  const auto k = static_cast<int>(i.index);
  block.deactivate(i, {k});
  block.activate(i, {k});
}
// The cell below goes with the one above it.
COPPICE_KERNEL(renew_below, Topology above, Topology below, Item i, int per)
{
  const auto k = static_cast<int>(i.index);
  above.deactivate(i, {k});
  below.activate(i, {per * k});
}
COPPICE_KERNEL(shift_and_grow, Topology block, Item i, Wide* a, Wide* b, Wide* c)
{
  c[i] = b[i];
  b[i] = a[i];
  block.activate(i, {static_cast<int>(i.index)});
}
// The launch decides what is activated by what it changes, and nothing branches on it.
COPPICE_KERNEL(age_and_move, Update<int> x, Topology block, Cell1 c)
{
  x[c] += 10;
  block.activate(c, {x[c]});
}
// The same by way of a variable that stays in memory.
COPPICE_KERNEL(age_by_array, Update<int> x, Topology block, Cell1 c, int which)
{
  int ages[4] = {};
  x[c] += 10;
  ages[(which + c.coord(0)) & 3] = x[c];
  int oldest = 0;
  for (const int age : ages) oldest = age > oldest ? age : oldest;
  if (oldest < 10) block.activate(c, {c.coord(0)});
}
// Asks for a cell that the launch has written.
COPPICE_KERNEL(write_then_ask, Read<int> now, Write<int> next, Topology block, Cell1 c)
{
  next[c] = now[c] - 1;
  if (now[c] > 0) block.activate(c, {c.coord(0)});
}
// Nothing but a function of a library stores.
COPPICE_KERNEL(split_to, Topology block, Item i, const double* x, double* whole)
{
  const double part = __builtin_modf(x[i], &whole[i]);
  if (part < 2) block.activate(i, {static_cast<int>(i.index)});
}

struct CountedBy {
  uint32_t* counter;
};
COPPICE_KERNEL(count_behind_a_member, Topology block, Item i, CountedBy by, uint32_t* counter,
               const int* from)
{
  __atomic_fetch_add(by.counter, 1u, __ATOMIC_RELAXED);
  __atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED);
  block.activate(i, {from[i]});
}

// All cells of a block may give it up, and few make others active.
COPPICE_KERNEL(drop_or_go_on, Read<int> x, Topology block, Cell1 c)
{
  const int at = c.coord(0) / 1024;
  if (x[c] == 0)
    block.deactivate(c, {at});
  else
    block.activate(c, {at + 100});
}
COPPICE_KERNEL(set_one, Grow<int> x, Item i, int at)
{ x.set(i, {at}, 1); }
