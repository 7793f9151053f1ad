// Kernels that use handles against their contracts: on trees of other dimensions, or other nodes, than they
// were written for (misuse_conformance_test.cc). On the right trees each is right.
#include "coppice/kernel.h"

using namespace coppice;

// Every method that takes a coordinate, from each kind of place.
#define COPPICE_TEST_METHODS(name, Place, ...)                                  \
  COPPICE_KERNEL(read_at_##name, Read<int> x, Place p, int* out)                \
  { *out = x.at(p, {__VA_ARGS__}); }                                            \
  COPPICE_KERNEL(add_##name, Accumulate<int> x, Place p)                        \
  { x.add(p, {__VA_ARGS__}, 1); }                                               \
  COPPICE_KERNEL(set_##name, Grow<int> x, Place p)                              \
  { x.set(p, {__VA_ARGS__}, 1); }                                               \
  COPPICE_KERNEL(activate_##name, Topology n, Place p)                          \
  { n.activate(p, {__VA_ARGS__}); }                                             \
  COPPICE_KERNEL(deactivate_##name, Topology n, Place p)                        \
  { n.deactivate(p, {__VA_ARGS__}); }                                           \
  COPPICE_KERNEL(is_active_##name, Topology n, Place p, int* out)               \
  { *out = n.is_active(p, {__VA_ARGS__}); }                                     \
  COPPICE_KERNEL(element_##name, Read<int> x, Place p, int* out)                \
  { *out = x.at(p, {__VA_ARGS__}, 0); }                                         \
  COPPICE_KERNEL(length_##name, Read<int> x, Place p, uint32_t* out)            \
  { *out = x.length(p, {__VA_ARGS__}); }                                        \
  COPPICE_KERNEL(append_##name, Append<int> x, Place p)                         \
  { x.append(p, {__VA_ARGS__}, 1); }                                            \
  COPPICE_KERNEL(set_element_##name, Append<int> x, Place p)                    \
  { x.set(p, {__VA_ARGS__}, 2, 1); }                                            \
  COPPICE_KERNEL(appended_##name, Append<int> x, Place p, int* out)             \
  { *out = x.at(p, {__VA_ARGS__}, 0); }                                         \
  COPPICE_KERNEL(appended_length_##name, Append<int> x, Place p, uint32_t* out) \
  { *out = x.length(p, {__VA_ARGS__}); }                                        \
  COPPICE_KERNEL(clear_##name, Append<int> x, Place p)                          \
  { x.deactivate(p, {__VA_ARGS__}); }

COPPICE_TEST_METHODS(item1, Item, 3)
COPPICE_TEST_METHODS(item2, Item, 3, 1)
COPPICE_TEST_METHODS(item3, Item, 0, 3, 1)
COPPICE_TEST_METHODS(team1, Team, 3)
COPPICE_TEST_METHODS(cell1, Cell2, 3)
COPPICE_TEST_METHODS(block1, Block2, 3)
COPPICE_TEST_METHODS(shared_block1, BlockTeam<2>, 3)
COPPICE_TEST_METHODS(entry1, Entry2, 3)

// In a branch that this run does not take, behind others that are right, and in a function.
COPPICE_KERNEL(add_where_told, Accumulate<int> x, Item i, int told)
{
  x.add(i, {3, 1}, 1);
  if (told == 77) x.add(i, {7}, 1);  // the wrong one
}
[[gnu::noinline]] static void add_at(const Accumulate<int>& x, const Item& i, int at) { x.add(i, {at}, 1); }
COPPICE_KERNEL(add_in_function, Accumulate<int> x, Accumulate<int> y, Item i, int at)
{ add_at(x, i, at), add_at(y, i, at + 1); }
// Only the run knows which handle it is.
COPPICE_KERNEL(add_to_either, Accumulate<int> x, Accumulate<int> y, Item i, int at, const int* which)
{
  const Accumulate<int> both[2] = {x, y};
  for (int k = 0; k < which[2]; ++k) both[which[k]].add(i, {at}, 1);
}
// The else is dead, which all of the optimiser finds out, and a part of it does not.
COPPICE_KERNEL(add_in_axes, Accumulate<int> a, Accumulate<int> b, Accumulate<int> plane, Item i,
               const int* which)
{
  const Accumulate<int> both[2] = {a, b};
  both[which[0]].add(i, {3}, 1);
  int axes = 0;
  for (int k = 0; k < 2; ++k) axes += 1;
  if (axes == 2)
    plane.add(i, {3, 1}, 1);
  else
    plane.add(i, {3}, 1);
}
// A kernel that only asks leaves no status, which nobody would look for.
COPPICE_KERNEL(ask_either, Topology a, Topology b, Item i, const int* which, int* out)
{
  const Topology both[2] = {a, b};
  out[i.index] = both[which[0]].is_active(i, {3});
}
COPPICE_KERNEL(ask_either_list, Append<int> a, Append<int> b, Item i, const int* which, int* out)
{
  const Append<int> both[2] = {a, b};
  out[i.index] = static_cast<int>(both[which[0]].length(i, {3})) + both[which[0]].at(i, {3}, 0);
}

// ---- own cells

COPPICE_KERNEL(copy_own2, Read<int> x, Write<int> y, Cell2 c)
{ y[c] = x[c] + 1; }
COPPICE_KERNEL(copy_next2, Read<int, Star<1>> x, Write<int> y, Cell2 c)
{ y[c] = x(c, 0, 1) + 1; }
COPPICE_KERNEL(copy_near2, Read<int, Box<1>> x, Write<int> y, Cell2 c)
{ y[c] = x[c] + 1; }
COPPICE_KERNEL(laplace2, Read<int, Star<1>> x, Write<int> y, Cell2 c)
{ y[c] = laplacian(x, c); }
COPPICE_KERNEL(sum_to_own2, Accumulate<int, Star<1>> y, Cell2 c)
{ y.add(c, {0, 0}, 5); }
COPPICE_KERNEL(copy_by_walk2, Read<int> x, Write<int> y, Cell2 c)
{ y[c] = x.at(c, {c.coord(0), c.coord(1)}) + 1; }
COPPICE_KERNEL(copy_for_entry2, Read<int> x, Write<int> y, Entry2 e)
{ y[e] = x[e] + 1; }
COPPICE_KERNEL(number_cells2, Write<int> x, Cell2 c)
{ x[c] = 100 * c.coord(0) + c.coord(1); }

// ---- the rim of all coordinates

COPPICE_KERNEL(near_the_rim1, Read<int, Star<2>> x, Write<int> y, Cell1 c)
{ y[c] = x(c, -2) + x(c, 2) + x.at(c, {c.coord(0)}); }
COPPICE_KERNEL(set_at1, Grow<int> x, Item i, const int* at)
{ x.set(i, {at[i.index]}, static_cast<int>(i.index) + 1); }
COPPICE_KERNEL(append_at1, Append<int> x, Item i, const int* at)
{ x.append(i, {at[i.index]}, static_cast<int>(i.index) + 1); }
COPPICE_KERNEL(scatter_at_rim1, Accumulate<int, Star<1>> y, Cell1 c)
{ y.add(c, {0}, 1), y.add(c, {c.coord(0) < 0 ? -1 : 1}, 1); }
