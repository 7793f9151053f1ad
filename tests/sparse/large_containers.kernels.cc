// Kernels of tests of loops over containers that are large enough to be cut into pieces.
#include "coppice/kernel.h"

using namespace coppice;

// A number for every coordinate, whole and small enough for a float.
COPPICE_INLINE int code_at(Coord c) { return (c.x * 61 + c.y * 31 + c.z * 7) % 4093 + 1; }

// Counts the visits of its cell, and writes what the cell is to be. The harmless one can be blended.
template <class C>
static void note_visit(const Update<int>& visits, const Write<int>& code, const C& c) {
  visits[c] = visits[c] + 1;
  code[c] = code_at(c.coord());
}
COPPICE_KERNEL(visit_large1, Update<int> visits, Write<int> code, Cell1 c)
{ note_visit(visits, code, c); }
COPPICE_KERNEL(visit_large2, Update<int> visits, Write<int> code, Cell2 c)
{ note_visit(visits, code, c); }
COPPICE_KERNEL(visit_large3, Update<int> visits, Write<int> code, Cell3 c)
{ note_visit(visits, code, c); }
COPPICE_KERNEL(write_large1, Read<int> code, Write<int> twice, Cell1 c)
{ twice[c] = 2 * code[c] + 1; }
COPPICE_KERNEL(write_large2, Read<int> code, Write<int> twice, Cell2 c)
{ twice[c] = 2 * code[c] + 1; }
COPPICE_KERNEL(write_large3, Read<int> code, Write<int> twice, Cell3 c)
{ twice[c] = 2 * code[c] + 1; }
using Near = Read<int, Star<1>>;
COPPICE_KERNEL(sum_near1, Near code, Write<int> sum, Cell1 c)
{ sum[c] = code(c, -1) + code(c, 1); }
COPPICE_KERNEL(sum_near2, Near code, Write<int> sum, Cell2 c)
{ sum[c] = code(c, -1, 0) + code(c, 1, 0) + code(c, 0, -1) + code(c, 0, 1); }
COPPICE_KERNEL(sum_near3, Near code, Write<int> sum, Cell3 c)
{
  sum[c] = code(c, -1, 0, 0) + code(c, 1, 0, 0) + code(c, 0, -1, 0) + code(c, 0, 1, 0) + code(c, 0, 0, -1) +
           code(c, 0, 0, 1);
}
COPPICE_KERNEL(sum_near_long, Read<int64_t, Star<1>> code, Write<int> sum, Cell2 c)
{ sum[c] = static_cast<int>(code(c, -1, 0) + code(c, 1, 0) + code(c, 0, -1) + code(c, 0, 1)); }
COPPICE_KERNEL(write_long, Write<int64_t> code, Cell2 c)
{ code[c] = code_at(c.coord()); }

// The first and the last cell of [0, n) wait for each other, but not for ever.
COPPICE_KERNEL(meet_at_ends, Write<int> x, Cell1 c, int n, uint32_t* here, uint32_t* met)
{
  const int at = c.coord(0);
  x[c] = at;
  if (at != 0 && at != n - 1) return;
  coppice_fetch_add_u32(here, 1);
  for (uint32_t turn = 0; turn < 2'000'000; ++turn) {
    if (coppice_load_acquire_u32(here) == 2) {
      coppice_fetch_add_u32(met, 1);
      return;
    }
    coppice_pause(turn);
  }
}
// By which lane of its thread block a cell is computed.
COPPICE_KERNEL(note_lane, Write<uint32_t> lane, Cell3 c)
{ lane[c] = coppice_lane(); }

COPPICE_KERNEL(draw_large, Write<uint32_t> drawn, Cell2 c)
{
  Random random(c);
  drawn[c] = random.u32();
}
// Adds numbers whose sum depends on their order.
COPPICE_KERNEL(add_up_large, Read<int> code, Accumulate<float> sum, Cell2 c)
{ sum.add(c, {0, 0}, 1.0f / static_cast<float>(code[c])); }
COPPICE_KERNEL(add_one_large, Update<int> x, Cell1 c)
{ x[c] = x[c] + 1; }
COPPICE_KERNEL(activate_large1, Topology node, Item i, const int* coords)
{ node.activate(i, {coords[i.index]}); }
