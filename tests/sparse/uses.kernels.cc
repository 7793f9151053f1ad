// Kernels that touch more than their uses say, and some that look so and do not, for the checks of uses.
#include <string.h>

#include "coppice/kernel.h"

using namespace coppice;

// A handle of another's bytes, with its number changed: what no kernel gets by honest means.
struct HandleBytes {
  void* tree;
  uint32_t node, field;
};
template <class To, class From>
COPPICE_INLINE To forged(const From& from, int by = 0) {
  auto bytes = __builtin_bit_cast(HandleBytes, from);
  bytes.field += static_cast<uint32_t>(by);
  return __builtin_bit_cast(To, bytes);
}

COPPICE_KERNEL(write_by_read, Read<int> x, Cell1 cell)
{ forged<Write<int>>(x)[cell] = 7; }
COPPICE_KERNEL(update_by_read, Read<int> x, Cell1 cell)
{ forged<Update<int>>(x)[cell] += 7; }
COPPICE_KERNEL(add_by_update, Update<int> x, Cell1 cell)
{ forged<Accumulate<int>>(x).add(cell, {1}, 7); }
COPPICE_KERNEL(read_by_grow, Grow<int> x, Item i, int* out)
{ out[i] = forged<Read<int>>(x).at(i, {0}); }
COPPICE_KERNEL(activate_by_read, Read<int> x, Item i)
{ forged<Topology>(x).activate(i, {1}); }
COPPICE_KERNEL(append_by_read, Read<int> x, Item i)
{ forged<Append<int>>(x).append(i, {0}, 5); }
COPPICE_KERNEL(read_further, Read<int, Star<1>> x, Write<int> out, Cell1 cell)
{ out[cell] = forged<Read<int, Star<3>>>(x)(cell, 3); }
COPPICE_KERNEL(read_wider, Read<int> x, Write<int> out, Cell1 cell)
{ out[cell] = static_cast<int>(forged<Read<int64_t>>(x)[cell]); }
// The handle's number is that of another argument, or of none.
COPPICE_KERNEL(update_other, Update<int> mine, Read<int> theirs, Cell1 cell, int by)
{ forged<Update<int>>(mine, by)[cell] += theirs[cell] + 7; }

COPPICE_KERNEL(grow_and_shrink, Topology node, Item i, int active, int inactive)
{
  node.activate(i, {active});
  node.deactivate(i, {inactive});
}
COPPICE_KERNEL(test_one, Topology node, Item i, int coord, int* out)
{ out[i] = node.is_active(i, {coord}); }
COPPICE_KERNEL(read_one, Read<int> x, Item i, int coord, int* out)
{ out[i] = x.at(i, {coord}); }
COPPICE_KERNEL(append_one, Append<int> x, Item i, int list)
{ x.append(i, {list}, 5); }
// By the runtime's own means.
COPPICE_KERNEL(activate_by_runtime, Read<int> x, Item i, int coord, int* out)
{
  out[i] = x.at(i, {0});
  device::find_or_activate(i.launch, coppice_nodes[0], 0, 0, {0, 0, coord});
}

// ---- pointers

COPPICE_KERNEL(store_at, Item i, int* out, int64_t at)
{ out[at + i] = 5; }
COPPICE_KERNEL(load_at, Item i, const int* in, int64_t at, int* out)
{ out[i] = in[at] + 1; }
COPPICE_KERNEL(change_at, Item i, unsigned* counter, int64_t at)
{ __atomic_fetch_add(counter + at + i, 1u, __ATOMIC_RELAXED); }
COPPICE_KERNEL(copy_at, Item, char* to, const char* from, int64_t at, int64_t bytes)
{ memcpy(to + at, from, static_cast<size_t>(bytes)); }
COPPICE_KERNEL(change_const, Item i, const int* in)
{ const_cast<int*>(in)[i] += 5; }
COPPICE_KERNEL(store_near_read, Read<int> x, Item i, int* out, int64_t at)
{ out[at] = x.at(i, {0}) + 5; }
COPPICE_KERNEL(read_by_pointer, Read<int> x, Write<int> out, Block1 block, int64_t at)
{
  const int* first = x.data(block);
  out.data(block)[0] = first[at];
}
COPPICE_KERNEL(store_by_read, Read<int> x, Block1 block)
{
  const int* first = x.data(block);
  *const_cast<int*>(first) = 5;
}

// ---- no faults

struct PointerValue {
  int* to;
  int by;
};
struct TwoBuffers {
  int* a;
  int by;
  int* b;
};
COPPICE_KERNEL(use_struct, Item i, TwoBuffers two)
{ two.b[i] = two.a[i] + two.by; }
// Pointers in a variable, to a variable and to memory, and behind memory.
COPPICE_KERNEL(use_chosen, Item i, int* out, int* const* rows, int n)
{
  int local[4] = {1, 2, 3, static_cast<int>(i.index)};
  int* chosen[2] = {local, out};
  int* p = n > 3 ? local : out;
  p[n % 4] = 4;
  chosen[n % 2][n % 3] += 1;
  rows[i][0] = local[3] + p[n % 4] + 10;
}
COPPICE_KERNEL(use_update, Update<int> x, Read<int> y, Cell1 cell)
{
  int& own = x[cell];
  own = own * 2 + y[cell];
}
COPPICE_KERNEL(use_blocks, Update<int> x, Block1 block, int n)
{
  int* first = x.data(block);
  for (int k = 0; k < n; ++k) first[k] += k;
}
COPPICE_KERNEL(use_fast_memory, BlockTeam<1, 64> team, int* out)
{
  auto* fast = reinterpret_cast<int*>(team.fast);
  for (uint32_t k = team.lane(); k < 16; k += team.lanes()) fast[k] = static_cast<int>(k);
  team.barrier();
  if (team.lane() == 0) out[0] = fast[15];
}
// Pointers that may lead to one of several things.
COPPICE_KERNEL(use_table_or_buffer, Item i, const int* in, int* out)
{
  static constexpr int kTable[4] = {10, 20, 30, 40};
  const int* const p = i.index % 3 == 0 ? in : kTable;
  out[i] = p[i.index % 4];
}
COPPICE_KERNEL(use_fast_memory_or_field, Read<int> x, BlockTeam<1, 4096> team, int* out)
{
  auto* fast = reinterpret_cast<int*>(team.fast);
  const int* from = x.data(team);
  for (int round = 0; round < 3; ++round) {
    for (uint32_t k = team.lane(); k < 8; k += team.lanes()) fast[8 * round + k] = from[k] + 1;
    team.barrier();
    from = fast + 8 * round;
  }
  if (team.lane() == 0) out[0] = from[1];
}
COPPICE_KERNEL(use_ends, Item i, const int* end, int* out)
{ out[i] = end[-1 - i.index]; }
COPPICE_KERNEL(store_const, Item i, const int* in)
{ const_cast<int*>(in)[i] = 5; }
COPPICE_KERNEL(use_default_table, Item i, const int* given, int* out)
{
  static constexpr int kDefault[3] = {5, 8, 5};
  const int* const table = given != nullptr ? given : kDefault;
  int sum = 0;
  for (int k = 0; k < 3; ++k) sum += table[k];
  out[i] = sum;
}
COPPICE_KERNEL(use_moving_pointer, Item i, int* buffer, const int* index, int n)
{
  int local[8] = {};
  int* at = local;
  for (int k = 0; k < n; ++k) {
    at = (index[k] & 1) != 0 ? buffer + 8 * i.index + (k & 7) : local + (k & 7);
    *at += k;
  }
  buffer[8 * i.index] += local[0] + local[1] + local[2];
}
COPPICE_KERNEL(set_pointer, Grow<PointerValue> x, Item i, int* to)
{ x.set(i, {static_cast<int>(i.index)}, PointerValue{to, 2}); }
COPPICE_KERNEL(use_pointer_values, Read<PointerValue> x, Cell1 cell)
{
  const PointerValue value = x[cell];
  if (value.to != nullptr) *value.to += value.by;
}
// As std::max.
static const int& larger(const int& a, const int& b) { return a < b ? b : a; }
COPPICE_KERNEL(use_larger, Update<int> x, Cell1 cell, const int* index)
{
  static constexpr int kTable[4] = {50, 60, 70, 80};
  x[cell] = larger(x[cell], kTable[index[cell.coord(0) - 8] & 3]);
}
COPPICE_KERNEL(use_table_of_tables, Item i, int which, int* out)
{
  static constexpr int kA[4] = {1, 2, 3, 4}, kB[4] = {10, 20, 30, 40};
  const int* const both[2] = {kA, kB};
  out[i] = both[which & 1][i.index & 3];
}
COPPICE_KERNEL(fill_either, Item i, int* a, int* b, int which)
{
  int* const both[2] = {a, b};
  both[(which + static_cast<int>(i.index)) & 1][i.index] = 1;
}
COPPICE_KERNEL(append_where, Append<int> list, Item i, const int* where)
{ list.append(i, {where[i.index + (1 << 20)] & 1}, 1); }
