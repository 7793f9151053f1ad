// Kernels whose effects would be seen if a launch ran twice, or one of its items not at all.
#include "coppice/kernel.h"

using namespace coppice;

// Appends to one tree, activates in another.
COPPICE_KERNEL(append_and_grow, Append<int> list, Topology block, Item i, int spread)
{
  list.append(i, {0}, static_cast<int>(i.index));
  block.activate(i, {static_cast<int>(i.index) * spread});
}
COPPICE_KERNEL(append_one_each2, Append<int> list, Item i, int n)
{
  const auto k = static_cast<int>(i.index);
  list.append(i, {k / n, k % n}, k);
}
// One more at the own cell, beside growth of another tree.
COPPICE_KERNEL(increase_and_grow, Read<int> now, Write<int> next, Topology block, Cell1 c, int spread)
{
  next[c] = now[c] + 1;
  block.activate(c, {c.coord(0) * spread});
}
COPPICE_KERNEL(update_and_grow, Update<int> x, Topology block, Cell1 c, int spread)
{
  x[c] += 1;
  block.activate(c, {c.coord(0) * spread});
}
COPPICE_KERNEL(add_and_grow, Accumulate<int> sum, Topology block, Item i, int spread)
{
  sum.add(i, {0}, 1);
  block.activate(i, {static_cast<int>(i.index) * spread});
}
COPPICE_KERNEL(count_and_grow, Topology block, Item i, int spread, uint32_t* counter)
{
  __atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED);
  block.activate(i, {static_cast<int>(i.index) * spread});
}
COPPICE_KERNEL(halve_and_grow, Topology block, Item i, int spread, int* values)
{
  values[i] /= 2;
  block.activate(i, {static_cast<int>(i.index) * spread});
}
COPPICE_KERNEL(halve_until_and_grow, Topology block, Item i, int spread, int* values)
{
  while (values[i] > 3) values[i] /= 2;
  block.activate(i, {static_cast<int>(i.index) * spread});
}
// Where the item goes is known only once it has drawn a number.
COPPICE_KERNEL(draw_and_grow, Topology block, Item i, int spread, uint32_t* counter)
{
  const uint32_t mine = __atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED);
  block.activate(i, {static_cast<int>(mine) * spread});
}
COPPICE_KERNEL(activate_all, Topology block, Item i, int spread)
{ block.activate(i, {static_cast<int>(i.index) * spread}); }
// Uses its range up: the next launch over it has nothing to do.
COPPICE_KERNEL(activate_and_empty, Topology block, Item i, uint64_t* count)
{
  block.activate(i, {static_cast<int>(i.index)});
  if (i.index == 0) *count = 0;
}
// Moves an active block by so many blocks.
COPPICE_KERNEL(move_block, Topology block, Item i, int by)
{
  const auto k = static_cast<int>(i.index);
  if (!block.is_active(i, {k})) return;
  block.deactivate(i, {k});
  block.activate(i, {k + by});
}
// The same without asking, since the host knows which are active.
COPPICE_KERNEL(move_known_block, Topology block, Item i, int by)
{
  const auto k = static_cast<int>(i.index);
  block.deactivate(i, {k});
  block.activate(i, {k + by});
}
COPPICE_KERNEL(move_value, Read<int> from, Grow<int> to, Topology block, Item i, int width, int by)
{
  const auto k = static_cast<int>(i.index);
  const int v = from.at(i, {k * width});
  block.deactivate(i, {k});
  to.set(i, {(k + by) * width}, v);
}
COPPICE_KERNEL(set_numbers, Grow<int> to, Item i, int width)
{ to.set(i, {static_cast<int>(i.index) * width}, static_cast<int>(i.index) + 1); }
// Cells of a bitmasked leaf that go, and come in another tree.
COPPICE_KERNEL(move_to_tree, Topology from, Topology to, Cell1 c, int spread)
{
  from.deactivate(c, {c.coord(0)});
  to.activate(c, {c.coord(0) * spread});
}
COPPICE_KERNEL(append_random_and_grow, Append<float> list, Topology block, Item i, int spread)
{
  Random random(i);
  list.append(i, {0}, random.uniform());
  block.activate(i, {static_cast<int>(i.index) * spread});
}
COPPICE_KERNEL(clear_and_append, Append<int> list, Item i)
{
  const auto k = static_cast<int>(i.index);
  list.deactivate(i, {k});
  for (int n = 0; n < 3; ++n) list.append(i, {k}, 10 * k + n);
}

// ---- what decides which cells are activated

COPPICE_KERNEL(add_ten, Item i, int* x)
{ x[i] += 10; }
COPPICE_KERNEL(grow_where_told, Topology block, Item i, const int* x, uint32_t* counter)
{
  __atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED);
  block.activate(i, {x[i]});
}
__attribute__((noinline)) static void place_for(int k, int& out) { out = 7 * k; }
struct EightInts {
  int at[8];
};
__attribute__((noinline)) static EightInts places_for(int k) {
  EightInts places{};
  for (int j = 0; j < 8; ++j) places.at[j] = 7 * k + j;
  return places;
}
COPPICE_KERNEL(grow_by_helpers, Topology block, Item i, uint32_t* counter)
{
  __atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED);
  int at = 5000;
  place_for(static_cast<int>(i.index), at);
  block.activate(i, {at});
  block.activate(i, {places_for(static_cast<int>(i.index)).at[0]});
}
COPPICE_KERNEL(age_and_grow, Update<int> x, Topology block, Cell1 c)
{
  x[c] -= 1;
  if (x[c] > 0) block.activate(c, {c.coord(0)});
}
COPPICE_KERNEL(age_and_grow_by_pointer, Topology block, Item i, int* x, int* y)
{
  x[i] -= 1;
  y[i] += 1;
  if (x[i] > 0) block.activate(i, {static_cast<int>(i.index)});
}
COPPICE_KERNEL(first_grows, Append<int> list, Topology block, Item i)
{
  const auto k = static_cast<int>(i.index);
  if (list.append(i, {0}, k) == 0) block.activate(i, {k});
}
COPPICE_KERNEL(empty_grows, Append<int> list, Topology block, Item i)
{
  const auto k = static_cast<int>(i.index);
  list.append(i, {k}, k);
  if (list.length(i, {k}) == 0) block.activate(i, {k});
}
COPPICE_KERNEL(own_value_grows, Read<int> now, Write<int> next, Topology block, Cell1 c)
{
  next[c] = now[c] - 1;
  if (now[c] > 0) block.activate(c, {c.coord(0)});
}
COPPICE_KERNEL(split_and_grow, Topology block, Item i, double* whole, double* part)
{
  part[i] = __builtin_modf(part[i], &whole[i]);
  block.activate(i, {static_cast<int>(i.index)});
}
COPPICE_KERNEL(renew_some, Topology block, Item i, Read<int> n, uint32_t* counter)
{
  const auto k = static_cast<int>(i.index);
  if (k >= n.at(i, {0})) return;
  __atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED);
  block.deactivate(i, {k});
  block.activate(i, {k});
}
COPPICE_KERNEL(append_to_parts, Append<int> list, Item i, int each)
{ list.append(i, {static_cast<int>(i.index) / each, 0}, static_cast<int>(i.index)); }
// Tests and activates, so that no run makes room for it.
COPPICE_KERNEL(set_far_and_grow, Append<int> list, Topology block, Item i, int far)
{
  if (!block.is_active(i, {static_cast<int>(i.index)})) list.set(i, {0}, far, 1);
  block.activate(i, {static_cast<int>(i.index)});
}
COPPICE_KERNEL(count_elements1, Read<int> x, Entry1 e, uint32_t* found, uint32_t* sum)
{
  __atomic_fetch_add(found, 1u, __ATOMIC_RELAXED);
  __atomic_fetch_add(sum, static_cast<uint32_t>(x[e]), __ATOMIC_RELAXED);
}
COPPICE_KERNEL(append_to_one_each, Append<int> list, Item i, int lists)
{ list.append(i, {static_cast<int>(i.index) % lists}, static_cast<int>(i.index)); }
// An index that no list has, in a launch that must not be repeated.
COPPICE_KERNEL(set_outside_and_add, Append<int> list, Topology block, Accumulate<int> sum, Item i, int index,
               int* out)
{
  (void)sum;  // an argument whose role alone counts
  list.set(i, {0}, index, 5);
  block.activate(i, {0});
  *out += 1;
}
// As if in a header of the author's, whose include folder is the library's, too: no header of the library's.
#line 1 "../../../core/authors_own.h"
COPPICE_INLINE void count_one(int* n) { *n += 1; }
#line 180 "../../../tests/sparse/effects.kernels.cc"
COPPICE_KERNEL(count_elsewhere_and_grow, Topology block, Item i, int* n)
{
  count_one(n);
  block.activate(i, {static_cast<int>(i.index)});
}
// The stores are left out of the run that makes room, which therefore does not fault.
COPPICE_KERNEL(fault_then_append, Append<int> list, Item i, int* out)
{
  out[i.index + (1 << 20)] = 1;
  list.append(i, {0}, 1);
}
COPPICE_KERNEL(miss_then_fault, Grow<int> x, Item i, int* out)
{
  x.set(i, {-1}, 1);
  out[i.index + (1 << 20)] = 1;
}
