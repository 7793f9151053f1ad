// Kernels to step through, and kernels with planted faults: run by planted_program.cc. Tests find
// lines by the marks behind them.
#include "coppice/kernel.h"

using namespace coppice;

COPPICE_KERNEL(square_all, Item i, const float* in, float* out)
{
  const float x = in[i.index];        // mark: load
  const float squared = x * x;        // mark: square
  const float shifted = squared + 1;  // mark: shift
  out[i.index] = shifted;             // mark: store
}

struct Smooth {
  Read<float, Star<1>> now;
  Write<float> next;
};
COPPICE_KERNEL(smooth, Smooth s, Cell3 cell)
{
  const float sum = laplacian(s.now, cell);  // mark: gather
  const float middle = s.now[cell];          // mark: middle
  s.next[cell] = middle + 0.1f * sum;        // mark: result
}

// Returns when items of both halves of the range are under way, and so two threads
// are; at the latest after a while.
COPPICE_INLINE void meet(const Item& i, int64_t half, uint32_t* halves) {
  coppice_fetch_add_u32(halves + (i.index < half), 1);
  for (int k = 0; k < 1 << 26 && __atomic_load_n(halves + (i.index >= half), __ATOMIC_RELAXED) == 0; ++k)
    coppice_pause(0);
}
// Every item writes where all others do.
COPPICE_KERNEL(write_one_place, Item i, int64_t half, uint32_t* halves, int* place)
{
  meet(i, half, halves);
  *place = static_cast<int>(i.index);  // mark: race
}
// A sum that all items add to, and that one half reads as if nobody did.
COPPICE_KERNEL(add_and_read, Item i, int64_t half, uint32_t* halves, float* sum, float* read)
{
  meet(i, half, halves);
  if (i.index < half)
    coppice_fetch_add_f32(sum, 1);  // mark: add
  else
    read[i.index] = *sum;  // mark: read
}
// All of it is right: each item has a place of its own, and the sum is atomic.
COPPICE_KERNEL(add_right, Item i, int64_t half, uint32_t* halves, float* sum, int* own)
{
  meet(i, half, halves);
  coppice_fetch_add_f32(sum, 1);
  own[i.index] += static_cast<int>(i.index);
}
// One item more than there is room for.
COPPICE_KERNEL(write_past_the_end, Item i, int* out, int n)
{
  const int last = n;
  out[last] = static_cast<int>(i.index);  // mark: overrun
}
// An array of the kernel's own, and beyond.
COPPICE_KERNEL(write_past_a_local_array, Item i, int n, int* out)
{
  int local[8];
  for (int k = 0; k < n; ++k) local[k] = out[k];  // mark: stack overrun
  out[i.index] = local[out[0] & 7];
}
// The memory's bytes go through a library function.
COPPICE_KERNEL(copy_past_the_end, Item i, const char* in, char* out, uint64_t n)
{
  __builtin_memcpy(out, in + i.index, n);  // mark: copy
}
