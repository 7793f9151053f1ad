// Kernels that draw random numbers.
#include "coppice/kernel.h"

using namespace coppice;

COPPICE_KERNEL(draw_words, Item i, int n, uint32_t* out)
{
  Random random(i);
  for (int k = 0; k < n; ++k) out[i.index * n + k] = random.u32();
}
COPPICE_KERNEL(draw_uniform, Item i, float* floats, double* doubles)
{
  Random random(i);
  floats[i.index] = random.uniform();
  doubles[i.index] = random.uniform<double>();
}
COPPICE_KERNEL(draw_normal, Item i, float* floats, double* doubles)
{
  Random random(i);
  floats[2 * i.index] = random.normal(), floats[2 * i.index + 1] = random.normal();
  doubles[2 * i.index] = random.normal<double>(), doubles[2 * i.index + 1] = random.normal<double>();
}
COPPICE_KERNEL(draw_below, Item i, uint32_t n, uint32_t* out)
{
  Random random(i);
  out[i.index] = random.below(n);
}
COPPICE_KERNEL(draw_with_key, Item i, uint64_t seed, uint64_t b, uint32_t* out)
{
  Random random(seed, static_cast<uint64_t>(i.index), b);
  out[i.index] = random.u32();
}
struct Noise {
  Write<float> uniform, normal;
};
COPPICE_KERNEL(fill_noise, Noise noise, Cell3 cell)
{
  Random random(cell);
  noise.uniform[cell] = random.uniform();
  noise.normal[cell] = random.normal();
}
