// One kernel for each promise of docs/floating-point.md.
#include <math.h>

#include "coppice/kernel.h"

using namespace coppice;

COPPICE_KERNEL(fuse_products, Item i, const float* a, const float* b, const float* c, float* o)
{
  const float product = a[i] * b[i];
  o[i] = product + c[i];
}
// The error of a product, and a sum with a correction, need operations that stay as they are written.
COPPICE_KERNEL(keep_products, Item i, const float* a, const float* b, const float* c, float* o)
{
#pragma clang fp contract(off)
  const float product = a[i] * b[i];
  o[i] = product + c[i];
}
COPPICE_KERNEL(compensate, Item i, const float* a, int n, float* o)
{
  float sum = 0, lost = 0;
  for (int k = 0; k < n; ++k) {
    const float value = a[k] - lost, next = sum + value;
    lost = (next - sum) - value;
    sum = next;
  }
  o[i] = sum;
}
COPPICE_KERNEL(round_exactly, Item i, const float* a, const float* b, float* quotient, float* root)
{
  quotient[i] = a[i] / b[i];
  root[i] = sqrtf(a[i]);
}
COPPICE_KERNEL(round_doubles, Item i, const double* a, const double* b, double* quotient, double* root)
{
  quotient[i] = a[i] / b[i];
  root[i] = sqrt(a[i]);
}
COPPICE_KERNEL(halve_denormals, Item i, const float* a, float* o)
{ o[i] = a[i] * 0.5f; }
COPPICE_KERNEL(keep_signs, Item i, const float* a, float* o)
{ o[i] = a[i] * 0.0f + -0.0f; }
COPPICE_KERNEL(order_numbers, Item i, const float* a, const float* b, float* least, float* most)
{
  least[i] = fminf(a[i], b[i]);
  most[i] = fmaxf(a[i], b[i]);
}
COPPICE_KERNEL_FAST_MATH(fast_inverse_roots, Item i, const float* a, const float* b, float* o) {
  o[i] = a[i] / sqrtf(b[i]);
}
COPPICE_KERNEL_FAST_MATH(fast_inverse_roots_of_doubles, Item i, const double* a, const double* b, double* o) {
  o[i] = a[i] / sqrt(b[i]);
}
COPPICE_KERNEL(call_library, Item i, const float* a, float* s, float* e, float* l, float* p, float* t)
{
  const float x = a[i];
  s[i] = sinf(x), e[i] = expf(x), l[i] = logf(x), p[i] = powf(x, 1.7f), t[i] = tanhf(x);
}
COPPICE_KERNEL(round_halves, Item i, const float* a, float* o)
{
  const auto x = static_cast<_Float16>(a[i]), y = static_cast<_Float16>(1.0009765625f);
  o[i] = static_cast<float>(static_cast<_Float16>(x * y * y));
}
