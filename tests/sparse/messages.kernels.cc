// Kernels that print and assert.
#include "coppice/kernel.h"

using namespace coppice;

COPPICE_KERNEL(say_all_types, Item i)
{
  print(i, "{} {} {} {} {}", int8_t{-5}, uint64_t{1} << 63, int64_t{-1} << 62, true, 'c');
  print(i, "{} {:.3f} {:>6} {:#x} {{}} {}", 0.1f, 2.0 / 3, "ab", 255u, 1e300);
  print(i, "{1} before {0}", "second", "first");
}
COPPICE_KERNEL(say_index, Item i, int times)
{
  for (int k = 0; k < times; ++k) print(i, "item {} says {}", i.index, k);
}
COPPICE_KERNEL(say_cell, Read<int> x, Write<int> y, Cell2 cell)
{
  y[cell] = x[cell] + 1;
  print(cell, "{} {} {}", cell.coord(0), cell.coord(1), x[cell]);
}
COPPICE_KERNEL(say_block, Block2 block)
{ print(block, "block {} {}", block.coord(0), block.coord(1)); }
COPPICE_KERNEL(say_lines, Item i)
{ print(i, "one\ntwo\n"); }
COPPICE_KERNEL(say_wrongly, Item i)
{ print(i, "{:s}", i.index + 1); }
COPPICE_KERNEL(say_widely, Item i)
{ print(i, "{:>1000000000}", i.index); }
// Fills many blocks, so that the launch is repeated with more room.
COPPICE_KERNEL(grow_and_say, Grow<int> x, Item i)
{
  x.set(i, {static_cast<int32_t>(i.index) * 4, 0}, 1);
  print(i, "set {}", i.index);
}
COPPICE_KERNEL(assert_below, Item i, int n)
{ COPPICE_ASSERT(i, i < n); }
COPPICE_KERNEL(assert_with_words, Item i, int n)
{ COPPICE_ASSERT(i, i < n && "{}"[0] == '{', "n is {}, not {:.1f}", n, 0.5); }
COPPICE_KERNEL(assert_cell, Read<int> x, Cell2 cell)
{ COPPICE_ASSERT(cell, x[cell] != 3); }
COPPICE_KERNEL(say_and_assert, Item i)
{
  print(i, "before");
  COPPICE_ASSERT(i, i < 0);
}
COPPICE_KERNEL(assert_counting, Item i, int* evaluated)
{ COPPICE_ASSERT(i, ++evaluated[i.index] > 0); }
