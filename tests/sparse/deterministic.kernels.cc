// Kernels whose results depend on the order of their items.
#include "coppice/kernel.h"

using namespace coppice;

COPPICE_KERNEL(add_fractions, Accumulate<float> sum, Item i, int cells)
{ sum.add(i, {static_cast<int32_t>(i.index % cells)}, 1.0f / static_cast<float>(1 + i.index % 1013)); }
// More sums for an item than a thread notes at a time.
COPPICE_KERNEL(add_many_fractions, Accumulate<float> sum, Item i, int cells)
{
  for (int k = 0; k < 75; ++k)
    sum.add(i, {static_cast<int32_t>((i.index + k * k) % cells)},
            1.0f / static_cast<float>(1 + (i.index + k) % 1013));
}
COPPICE_KERNEL(add_integers, Accumulate<int> sum, Item i, int cells)
{ sum.add(i, {static_cast<int32_t>(i.index % cells)}, static_cast<int>(i.index)); }
// All items write the same few cells.
COPPICE_KERNEL(set_last, Grow<int> x, Item i, int cells)
{ x.set(i, {static_cast<int32_t>(i.index % cells)}, static_cast<int>(i.index)); }
// An item finds what those have left that were there before.
COPPICE_KERNEL(note_first, Topology node, Item i, int cells, unsigned char* found)
{
  const int32_t at[1]{static_cast<int32_t>(i.index % cells)};
  found[i.index] = node.is_active(i, at);
  node.activate(i, at);
}
// Notes which item comes after which, of a launch that the host marks.
COPPICE_KERNEL(take_turns, Item i, uint64_t* turn, uint64_t* out)
{ out[i.index] = coppice_fetch_add_u64(turn, 1); }
