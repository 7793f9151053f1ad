// Kernels of tests of functions: small ones, each with another use of what it is given.
#include "coppice/kernel.h"
#include "core/math.h"

using namespace coppice;

COPPICE_KERNEL(set_to, Write<int> x, Cell<1> c, int value)
{ x[c] = value; }
COPPICE_KERNEL(copy_cells, Read<int> from, Write<int> to, Cell<1> c)
{ to[c] = from[c]; }
COPPICE_KERNEL(add_cells, Read<int> from, Accumulate<int> to, Cell<1> c)
{ to.add(c, {c.coord(0)}, from[c]); }
COPPICE_KERNEL(grow_at, Grow<int> x, Item i, int at)
{ x.set(i, {at}, 1); }
COPPICE_KERNEL(add_one, Item, uint32_t* word)
{ ++*word; }
// Stores outside of every buffer of 64 bytes when the count is so high.
COPPICE_KERNEL(store_beside_at, Item, uint32_t* words, uint32_t count)
{ words[words[0] == count ? 4096 : 2] = 1; }
COPPICE_KERNEL(store_at_both, Item, uint64_t address, uint32_t* word, uint32_t value)
{ *reinterpret_cast<uint32_t*>(address) = *word = value; }
COPPICE_KERNEL(store_behind_table, Item, uint64_t* addresses, uint32_t* word)
{ *reinterpret_cast<uint32_t*>(addresses[0]) = *word = 1; }
COPPICE_KERNEL(copy_word, Item, uint32_t* to, const uint32_t* from)
{ *to = *from; }
// Views whose memory is an argument's: as they come, as parts and copies, and given to a function.
static COPPICE_INLINE uint32_t sum_of(View<const uint32_t> values) {
  uint32_t sum = 0;
  for (int64_t k = 0; k < values.size; ++k) sum += values[k];
  return sum;
}
COPPICE_KERNEL(copy_viewed, Item i, View<uint32_t> to, View<const uint32_t> from)
{ to[i] = from[i]; }
COPPICE_KERNEL(sum_viewed, Item, View<uint32_t> to, View<const uint32_t> from)
{ to[0] = sum_of(from); }
COPPICE_KERNEL(sum_rest_of_viewed, Item, View<uint32_t> to, View<const uint32_t> from)
{ to.items[0] = sum_of(View<const uint32_t>(from.items + 1, from.size - 1)); }
COPPICE_KERNEL(add_behind_viewed, Item i, View<uint32_t> to, int64_t first)
{
  to.items += first;
  __atomic_fetch_add(&to[i], 1u, __ATOMIC_RELAXED);
}
// Views whose memory is not.
COPPICE_KERNEL(sum_of_address, Item, View<uint32_t> to, uint64_t address)
{ to[0] = sum_of(View<const uint32_t>(reinterpret_cast<const uint32_t*>(address), 1)); }
COPPICE_KERNEL(turn_view, Item, View<uint32_t> to, uint64_t address)
{
  to.items = reinterpret_cast<uint32_t*>(address);
  to[0] = 1;
}
COPPICE_KERNEL(sum_of_viewed_address, Item, View<uint32_t> to, View<const uint64_t> addresses)
{ to[0] = sum_of(View<const uint32_t>(reinterpret_cast<const uint32_t*>(addresses[0]), 1)); }
// Arrays of pointers: of arguments; with one that is put together as a number, or byte by byte; and with one
// that is a View's size.
COPPICE_KERNEL(store_at_either, Item, uint32_t* a, uint32_t* b, int at)
{
  uint32_t* places[2] = {a, b};
  *places[at & 1] = 1;
}
COPPICE_KERNEL(store_at_number, Item, uint32_t* a, uint64_t address, int at)
{
  uint32_t* places[2] = {a, a};
  __builtin_memcpy(&places[1], &address, sizeof address);
  *places[at & 1] = 1;
}
COPPICE_KERNEL(store_at_bytes, Item, uint32_t* a, uint64_t address, int at)
{
  uint32_t* places[2] = {a, a};
  unsigned char* const bytes = reinterpret_cast<unsigned char*>(places);
  for (int k = 0; k < 8; ++k) bytes[8 + (k ^ (at & 4))] = static_cast<unsigned char>(address >> 8 * k);
  *places[1] = 1;
}
COPPICE_KERNEL(store_at_size, Item, View<uint32_t> to, int at)
{
  uint32_t* places[2] = {to.items, to.items};
  __builtin_memcpy(places, &to, sizeof to);
  *places[at & 1] = 1;
}
COPPICE_KERNEL(subtract_one, Item, uint32_t* word)
{
  if (*word > 0) --*word;
}
COPPICE_KERNEL(draw_word, Item i, uint32_t* word)
{
  Random random(i);
  *word = random.u32();
}
COPPICE_KERNEL(scale_cells, Update<int> x, Cell<1> c, int by, float factor)
{ x[c] = static_cast<int>(static_cast<float>(x[c] * by) * factor); }

struct CoppiceForce {
  int add[3];
  double factor;
};
COPPICE_KERNEL(push_by_vector, Update<int> x, Cell<1> c, Vec3f by)
{ x[c] += static_cast<int>(by.x() + 10 * by.y() + 100 * by.z()); }
COPPICE_KERNEL(push_cells, Update<int> x, Cell<1> c, CoppiceForce force, int weight)
{ x[c] = static_cast<int>((x[c] + force.add[c.coord(0) % 3] * weight) * force.factor); }
COPPICE_KERNEL(grow_at_all, Grow<int> x, Item i, const int* at, int value)
{ x.set(i, {at[i.index]}, value); }
COPPICE_KERNEL(bump_or_grow, Grow<int> x, Item i, const int* at, uint32_t* count, int stride)
{
  x.activate(i, {at[i.index] * stride});
  coppice_fetch_add_u32(count, 1);
}
