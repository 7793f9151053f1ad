// Kernels that call every function of C's math library, and what compilers call of their own accord.
#include <string.h>

#include "coppice/kernel.h"
#include "tests/sparse/library_functions.h"

using namespace coppice;
using namespace coppice::library_test;

// Values lie one after another, `stride` for each input.
struct Store {
  double* at;
  COPPICE_INLINE void operator()(const char*, double value) { *at++ = value; }
};

COPPICE_KERNEL(math, Item i, const Input* in, double* out, int stride)
{ call_math(in[i.index], Store{out + i.index * stride}); }
COPPICE_KERNEL(math_with_pointers, Item i, const Input* in, double* out, int stride)
{ call_math_with_pointers(in[i.index], Store{out + i.index * stride}); }
COPPICE_KERNEL(helpers, Item i, const Input* in, double* out, int stride)
{ call_helpers(in[i.index], Store{out + i.index * stride}); }

// Types that the host's compiler may lack. Each is stored as the 16 bits that it is.
template <class T>
COPPICE_INLINE uint16_t bits_of(T value) {
  uint16_t bits = 0;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
COPPICE_KERNEL(halves, Item i, const Input* in, uint16_t* out)
{
  const double x = in[i.index].x;
  const auto a = static_cast<_Float16>(x);
  out[5 * i.index] = bits_of(a), out[5 * i.index + 1] = bits_of(static_cast<_Float16>(static_cast<float>(x)));
  out[5 * i.index + 2] = bits_of(static_cast<_Float16>(static_cast<float>(a) * 3));
  out[5 * i.index + 3] = bits_of(static_cast<__bf16>(x));
  out[5 * i.index + 4] = bits_of(static_cast<__bf16>(static_cast<float>(x)));
}

// Memory of a size that only the run knows: calls, and no instructions.
COPPICE_KERNEL(memory, Item i, unsigned char* to, const unsigned char* from, uint64_t n, int* same)
{
  unsigned char* const row = to + 3 * n * i.index;
  memset(row, static_cast<int>(7 + i.index), 3 * n);
  memcpy(row, from + n * i.index, n);
  memmove(row + n / 2, row, n);
  same[2 * i.index] = memcmp(row + n / 2, from + n * i.index, n);
  same[2 * i.index + 1] = memcmp(row, from + n * i.index, n) == 0;
}
