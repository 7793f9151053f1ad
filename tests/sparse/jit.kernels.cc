// Kernels of the specializer's tests: plain ranges, and calls that the compiler makes of its own accord.
#include <math.h>
#include <string.h>

#include "coppice/kernel.h"

using namespace coppice;

struct Link {
  const Link* next;
  int value;
};
COPPICE_KERNEL(follow_links, Item i, const Link* first, int* sums)
{
  int sum = 0;
  for (const Link* l = first; l != nullptr; l = l->next) sum += l->value;
  sums[i.index] = sum;
}
// Item i writes to its thread's own memory or to the device's.
COPPICE_KERNEL(pick_memory, Item i, int* out, int n)
{
  volatile int own[2] = {1, 2};
  const uint64_t at[2] = {reinterpret_cast<uint64_t>(own), reinterpret_cast<uint64_t>(out + i.index)};
  reinterpret_cast<volatile int*>(at[n & 1])[0] = 3;
  out[i.index + 1] = own[0];
}

COPPICE_KERNEL(write_index, Item i, int* out)
{ out[i.index] = static_cast<int>(i.index); }
COPPICE_KERNEL(add_one, Item i, int* out)
{ out[i.index] += 1; }
// sin and cos of one argument become one call of sincosf, and memcmp() == 0 one of bcmp.
COPPICE_KERNEL(sine_and_cosine, Item i, const float* in, float* out)
{
  out[2 * i.index] = sinf(in[i.index]);
  out[2 * i.index + 1] = cosf(in[i.index]);
}
COPPICE_KERNEL(powers_of_ten, Item i, const double* in, double* out)
{ out[i.index] = pow(10.0, in[i.index]); }
COPPICE_KERNEL(equal_rows, Item i, const unsigned char* a, const unsigned char* b, uint64_t n, int* out)
{ out[i.index] = memcmp(a + n * i.index, b + n * i.index, n) == 0; }
extern "C" const uint32_t coppice_debug_checks;
COPPICE_KERNEL(write_checks, Item i, uint32_t* out)
{ out[i.index] = coppice_debug_checks; }
