// Kernels of tests of temporaries: each with another way to an array.
#include "coppice/kernel.h"
#include "tests/sparse/packed_target.h"

using namespace coppice;

COPPICE_KERNEL(write_ramp, Item i, uint32_t* out, uint32_t base)
{ out[i.index] = base + static_cast<uint32_t>(i.index); }
COPPICE_KERNEL(write_value_first, Item i, uint32_t v, uint32_t* out)
{ out[i.index] = v; }
COPPICE_KERNEL(mix_with, Item i, uint32_t* values, uint32_t by)
{ values[i.index] = values[i.index] * by + static_cast<uint32_t>(i.index); }
COPPICE_KERNEL(sum_of_two, Item i, const uint32_t* a, const uint32_t* b, uint32_t* out)
{ out[i.index] = a[i.index] + 3 * b[i.index]; }
COPPICE_KERNEL(add_to, Item i, const uint32_t* from, uint32_t* to)
{ to[i.index] += from[i.index]; }
struct FromTo {
  const uint32_t* from;
  uint32_t* to;
};
COPPICE_KERNEL(copy_through_struct, Item i, FromTo p)
{ p.to[i.index] = p.from[i.index] + 1; }
COPPICE_KERNEL(copy_view, Item i, View<const uint32_t> from, uint32_t* to)
{ to[i.index] = from[i.index] + static_cast<uint32_t>(from.size); }
COPPICE_KERNEL(set_number, Item, uint64_t* number, uint64_t to)
{ *number = to; }
COPPICE_KERNEL(store_at_place, Item, uint32_t* words, int64_t at)
{ words[at] = 1; }
COPPICE_KERNEL(save_values, Read<int> x, Cell<1> c, int* out)
{ out[c.coord(0)] = x[c]; }
COPPICE_KERNEL(load_values, Write<int> x, Cell<1> c, const int* in)
{ x[c] = in[c.coord(0)] * 2; }
COPPICE_KERNEL(set_flag_below, Item, uint32_t* flag, const uint32_t* values, uint32_t below)
{ *flag = values[0] < below ? 1 : 0; }
COPPICE_KERNEL(write_through_packed, Item i, PackedTarget p)
{ p.to[i.index] = p.base + static_cast<uint32_t>(i.index); }
COPPICE_KERNEL(write_number, Item, uint32_t* out, uint64_t a, int64_t b, uint32_t c, uint32_t d)
{ out[0] = static_cast<uint32_t>(a >> 32) + static_cast<uint32_t>(b) + c + d; }
