// Kernels to step through, and kernels with planted faults: run by planted_program.cc. Tests find lines by the marks
// behind them.
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
