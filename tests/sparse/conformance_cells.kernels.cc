// Kernels of the conformance tests that watch cells: which are handed out, where they lie, who fills them
// again.
#include "coppice/kernel.h"

using namespace coppice;

// Items as particles that jump about among the first n cells.
COPPICE_KERNEL(scatter1, Grow<int> x, Item i, int salt, int n)
{ x.set(i, {static_cast<int>(hash_u32(7, i.index, salt) % static_cast<uint32_t>(n))}, 1); }

// Particles on closed orbits of n steps in n x n cells.
static int orbit(int64_t particle, int step, int speed, int n) {
  return static_cast<int>((particle * (37 + speed) + int64_t{step} * speed) % n);
}
COPPICE_KERNEL(enter_cells2, Topology cells, Item i, int step, int n)
{ cells.activate(i, {orbit(i.index, step, 3, n), orbit(i.index, step, 5, n)}); }
COPPICE_KERNEL(count_in_cells2, Accumulate<int> count, Item i, int step, int n)
{ count.add(i, {orbit(i.index, step, 3, n), orbit(i.index, step, 5, n)}, 1); }

// The first coordinate of every block and its address.
COPPICE_KERNEL(list_addresses1, Block1 block, uint64_t* out)
{
  out[2 * block.number] = static_cast<uint64_t>(block.coord(0));
  out[2 * block.number + 1] = reinterpret_cast<uint64_t>(block.container);
}

// All threads activate leaves of a tree in which everything has just been
// deactivated, several of them each leaf.
COPPICE_KERNEL(activate_again1, Grow<int> x, Item i, int round, int per_leaf, int n)
{
  const uint32_t r = hash_u32(5, i.index / per_leaf, round);
  const int at = static_cast<int>(r % static_cast<uint32_t>(n));
  x.set(i, {at}, at + 1);
}
// Cells go and come in one launch: those of even top cells go, those of odd ones come.
COPPICE_KERNEL(swap_halves1, Grow<int> x, Topology block, Item i, int cells_of_block, int cells_of_top)
{
  const int at = static_cast<int>(i.index);
  if (at / cells_of_top % 2 == 0)
    block.deactivate(i, {at / cells_of_block});
  else
    x.set(i, {at}, at + 1);
}
COPPICE_KERNEL(add_one1, Update<int> x, Cell1 cell)
{ x[cell] = x[cell] + 1; }
COPPICE_KERNEL(test_active2, Topology node, Item i, const int* coords, int* active)
{ active[i.index] = node.is_active(i, {coords[2 * i.index], coords[2 * i.index + 1]}); }

// Values of an odd size.
struct SevenBytes {
  unsigned char bytes[7];
};
COPPICE_KERNEL(fill_seven_bytes, Grow<SevenBytes> field, Item i, int byte)
{
  SevenBytes value;
  for (unsigned char& b : value.bytes) b = static_cast<unsigned char>(byte);
  field.set(i, {static_cast<int>(i.index)}, value);
}
COPPICE_KERNEL(count_seven_bytes, Read<SevenBytes> field, Item i, uint32_t* set)
{
  const SevenBytes value = field.at(i, {static_cast<int>(i.index)});
  uint32_t n = 0;
  for (const unsigned char b : value.bytes) n += b != 0;
  if (n != 0) __atomic_fetch_add(set, n, __ATOMIC_RELAXED);
}
