// Kernels of random functions (random_functions.h): what each leaves does not depend on the order of its
// items.
#include "coppice/kernel.h"

using namespace coppice;

COPPICE_INLINE int wrapped(uint32_t value) { return static_cast<int>(value); }

// ---- cells of one tree
COPPICE_KERNEL(assign, Write<int> x, Cell<1> c, int value)
{ x[c] = wrapped(static_cast<uint32_t>(value) + static_cast<uint32_t>(c.coord(0))); }
COPPICE_KERNEL(copy_scaled, Read<int> from, Write<int> to, Cell<1> c, int by)
{ to[c] = wrapped(static_cast<uint32_t>(from[c]) * static_cast<uint32_t>(by) + 1u); }
COPPICE_KERNEL(change, Update<int> x, Cell<1> c, int by)
{ x[c] = wrapped(static_cast<uint32_t>(x[c]) * 3u + static_cast<uint32_t>(by)); }
COPPICE_KERNEL(sum_near, Read<int, Star<1>> from, Write<int> to, Cell<1> c)
{
  to[c] = wrapped(static_cast<uint32_t>(from(c, -1)) + 2u * static_cast<uint32_t>(from(c, 0)) +
                  5u * static_cast<uint32_t>(from(c, 1)));
}
COPPICE_KERNEL(deposit, Read<int> from, Accumulate<int> to, Cell<1> c, int flip)
{ to.add(c, {c.coord(0) ^ flip}, from[c]); }
COPPICE_KERNEL(deposit_near, Read<int> from, Accumulate<int, Star<1>> to, Cell<1> c, int flip)
{ to.add(c, {(c.coord(0) ^ flip) - c.coord(0)}, from[c]); }
COPPICE_KERNEL(noise, Update<int> x, Cell<1> c)
{
  Random random(c);
  x[c] = wrapped(static_cast<uint32_t>(x[c]) + random.u32());
}

// ---- cells and memory
COPPICE_KERNEL(gather, Read<int> x, Cell<1> c, uint32_t* sums)
{ coppice_fetch_add_u32(sums + c.coord(0) % 16, static_cast<uint32_t>(x[c])); }
COPPICE_KERNEL(load, Write<int> x, Cell<1> c, const uint32_t* words)
{ x[c] = wrapped(words[c.coord(0) % 256]); }

// ---- several trees
COPPICE_KERNEL(mirror, Read<int> from, Write<int> to, Cell<1> c)
{ to[c] = from.at(c, {511 - c.coord(0)}); }
COPPICE_KERNEL(spread, Read<int> from, Grow<int> to, Cell<1> c, int by)
{
  const int at = wrapped((static_cast<uint32_t>(c.coord(0) * by) + static_cast<uint32_t>(from[c])) % 512u);
  to.set(c, {at}, at * 7 + by);
}
COPPICE_KERNEL(shrink, Read<int> from, Topology to, Cell<1> c)
{
  if (static_cast<uint32_t>(from[c]) % 3u == 0) to.deactivate(c, {c.coord(0)});
}

// ---- growth and removal by items
COPPICE_KERNEL(grow_at, Grow<int> x, Item i, const uint32_t* at, int stride)
{
  const int where = wrapped(at[i.index] * static_cast<uint32_t>(stride) % 512u);
  x.set(i, {where}, where * 5 + stride);
}
COPPICE_KERNEL(grow_drawn, Grow<int> x, Item i, int below)
{
  Random random(i);
  const int where = wrapped(random.below(static_cast<uint32_t>(below)));
  x.set(i, {where}, where * 3 + below);
}
// Where it activates does not follow from memory, for the count may be there.
COPPICE_KERNEL(activate_and_count, Topology cells, Item i, int stride, uint32_t* count)
{
  cells.activate(i, {wrapped(static_cast<uint32_t>(i.index * stride) % 512u)});
  coppice_fetch_add_u32(count, 1);
}
COPPICE_KERNEL(deactivate_at, Topology cells, Item i, const uint32_t* at, uint32_t domain)
{ cells.deactivate(i, {wrapped(at[i.index] % domain)}); }

// ---- lists
COPPICE_KERNEL(append_at, Append<int> v, Item i, const uint32_t* at, int value)
{ v.append(i, {wrapped(at[i.index] % 32u)}, value + wrapped(static_cast<uint32_t>(i.index))); }
COPPICE_KERNEL(append_cells, Read<int> x, Append<int> v, Cell<1> c)
{ v.append(c, {c.coord(0) % 32}, x[c]); }
COPPICE_KERNEL(clear_lists_at, Append<int> v, Item i, const uint32_t* at)
{ v.deactivate(i, {wrapped(at[i.index] % 32u)}); }
COPPICE_KERNEL(sum_lists, Read<int> v, Accumulate<int> sums, Entry<1> e)
{ sums.add(e, {e.coord(0)}, v[e]); }
COPPICE_KERNEL(change_entries, Update<int> v, Entry<1> e, int by)
{ v[e] = wrapped(static_cast<uint32_t>(v[e]) * 5u + static_cast<uint32_t>(by)); }

// ---- memory alone
COPPICE_KERNEL(first_words, Item i, uint32_t* to, uint32_t salt)
{ to[i.index] = static_cast<uint32_t>(i.index * i.index * 31 + i.index) + salt * 7u; }
COPPICE_KERNEL(mix_words, Item i, uint32_t* to, const uint32_t* from, int by)
{ to[i.index] = from[i.index] * static_cast<uint32_t>(by) + static_cast<uint32_t>(i.index); }
COPPICE_KERNEL(shuffle_words, Item i, uint32_t* to, const uint32_t* from, int by)
{ to[i.index] = from[(i.index * by) % 256]; }
COPPICE_KERNEL(draw_numbers, Item i, uint32_t* to)
{
  Random random(i);
  to[i.index] = random.u32();
}
COPPICE_KERNEL(count_words, Item i, const uint32_t* words, uint32_t* counts)
{ coppice_fetch_add_u32(counts + words[i.index] % 13u, 1); }
struct CoppiceWords {
  uint32_t* to;
  const uint32_t* from;
  uint32_t by;
};
COPPICE_KERNEL(mix_behind_members, Item i, CoppiceWords words)
{ words.to[i.index] = words.from[i.index] ^ words.by; }

// ---- flags and counts
COPPICE_KERNEL(set_word, Item, uint32_t* word, uint32_t value)
{ *word = value; }
COPPICE_KERNEL(lower_word, Item, uint32_t* word)
{
  if (*word > 0) --*word;
}
COPPICE_KERNEL(choose, Item, const uint32_t* words, uint32_t* flag)
{ *flag = words[0] & 1u; }
COPPICE_KERNEL(choose_count, Item, const uint32_t* words, uint64_t* count)
{ *count = words[0] % 200u; }

// ---- what the tests look at
COPPICE_KERNEL(mark_cells, Cell<1> c, uint32_t* active)
{ active[c.coord(0)] = 1; }
COPPICE_KERNEL(mark_entries, Read<int> v, Entry<1> e, uint32_t* lists)
{
  uint32_t value = static_cast<uint32_t>(v[e]);
  coppice_fetch_add_u32(lists + 3 * e.coord(0), 1);
  coppice_fetch_add_u32(lists + 3 * e.coord(0) + 1, value);
  value ^= value >> 15, value *= 0x2c1b3c6du, value ^= value >> 12;
  coppice_fetch_add_u32(lists + 3 * e.coord(0) + 2, value);
}
