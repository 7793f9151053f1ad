// One body with precise and with fast math.
#include <math.h>

#include "coppice/kernel.h"

using namespace coppice;

[[gnu::noinline]] static float divide(float a, float b) { return a / b; }

COPPICE_KERNEL(precise_thirds, Item i, const float* in, float* out)
{ out[i.index] = in[i.index] / 3.0f; }
COPPICE_KERNEL_FAST_MATH(fast_thirds, Item i, const float* in, float* out) {
  out[i.index] = in[i.index] / 3.0f;
}

COPPICE_KERNEL(precise_functions, Item i, const float* in, float* out)
{
  const float x = in[i.index];
  out[i.index] = divide(x, out[i.index]) + sqrtf(x) + expf(x) + exp2f(x) + sinf(x);
}
COPPICE_KERNEL_FAST_MATH(fast_functions, Item i, const float* in, float* out) {
  const float x = in[i.index];
  out[i.index] = divide(x, out[i.index]) + sqrtf(x) + expf(x) + exp2f(x) + sinf(x);
}
COPPICE_KERNEL_FAST_MATH(fast_is_nan, Item i, const float* in, int* out) {
  out[i.index] = in[i.index] * 2.0f != in[i.index] * 2.0f || in[i.index] > 1e38f;
}
COPPICE_KERNEL_FAST_MATH(fast_doubles, Item i, const double* in, double* out) {
  out[i.index] = exp(in[i.index]) / sqrt(in[i.index]);
}
// Every function that a GPU has from libdevice.
COPPICE_KERNEL(all_libdevice, Item i, const float* in, float* out, double* d)
{
  const float x = in[i.index];
  float a[] = {acosf(x),     acoshf(x),        asinf(x),      asinhf(x),    atanf(x),         atan2f(x, 2),
               atanhf(x),    cbrtf(x),         coshf(x),      cosf(x),      erff(x),          erfcf(x),
               exp10f(x),    exp2f(x),         expm1f(x),     expf(x),      fdimf(x, 2),      fmodf(x, 2),
               hypotf(x, 2), lgammaf(x),       log10f(x),     log1pf(x),    log2f(x),         logbf(x),
               logf(x),      nextafterf(x, 2), powf(x, d[0]), sinhf(x),     remainderf(x, 3), sinf(x),
               tanf(x),      tanhf(x),         tgammaf(x),    ldexpf(x, 3), floorf(x)};
  float sum = static_cast<float>(ilogbf(x));
  for (float v : a) sum += v;
  int exponent = 0, quotient = 0;
  float whole = 0;
  sum += frexpf(x, &exponent) + modff(x, &whole) + remquof(x, 3, &quotient);
  out[i.index] = sum + whole + static_cast<float>(exponent + quotient);
  const double y = d[i.index];
  double b[] = {acos(y),         acosh(y), asin(y),    asinh(y),   atan(y),         atan2(y, 2), atanh(y),
                cbrt(y),         cosh(y),  cos(y),     erf(y),     erfc(y),         exp10(y),    exp2(y),
                expm1(y),        exp(y),   fdim(y, 2), fmod(y, 2), hypot(y, 2),     lgamma(y),   log10(y),
                log1p(y),        log2(y),  logb(y),    log(y),     nextafter(y, 2), pow(y, x),   sinh(y),
                remainder(y, 3), sin(y),   tan(y),     tanh(y),    tgamma(y)};
  double total = ilogb(y);
  for (double v : b) total += v;
  d[i.index] = total;
}
