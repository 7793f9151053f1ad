// Every function that kernels may call of the host, called: compiled by clang into a kernel
// (library.kernels.cc) and by the host's compiler into the test that compares (library_test.cc).
//
// Device-clean.
#pragma once
#include <cmath>
#include <cstdint>

namespace coppice::library_test {

// The arguments of one call; some functions take a part of them.
struct Input {
  double x, y, z;
  int64_t n;
};

// Calls function number `kCall`, a compile-time count, of both types; a value per call. Results of any kind
// as a double.
#define COPPICE_CALLS_1(call)                                                                              \
  call(acos) call(acosh) call(asin) call(asinh) call(atan) call(atanh) call(cbrt) call(ceil) call(cosh)    \
      call(erf) call(erfc) call(exp) call(exp10) call(exp2) call(expm1) call(fabs) call(floor) call(ilogb) \
          call(j0) call(j1) call(lgamma) call(llrint) call(llround) call(log) call(log10) call(log1p)      \
              call(log2) call(logb) call(lrint) call(lround) call(nearbyint) call(rint) call(round)        \
                  call(roundeven) call(sin) call(sinh) call(sqrt) call(tan) call(tanh) call(tgamma)        \
                      call(trunc) call(y0) call(y1)
#define COPPICE_CALLS_2(call)                                                                        \
  call(atan2) call(copysign) call(fdim) call(fmax) call(fmin) call(fmod) call(hypot) call(nextafter) \
      call(pow) call(remainder)

// Calls visit(name, value) for every one.
template <class Visit>
inline void call_math(const Input& in, Visit&& visit) {
  const double x = in.x, y = in.y, z = in.z;
  const float a = static_cast<float>(x), b = static_cast<float>(y), c = static_cast<float>(z);
  const int k = static_cast<int>(in.n % 40);
#define COPPICE_CALL(name) \
  visit(#name, static_cast<double>(::name(x))), visit(#name "f", static_cast<double>(::name##f(a)));
  COPPICE_CALLS_1(COPPICE_CALL)
#undef COPPICE_CALL
#define COPPICE_CALL(name) visit(#name, ::name(x, y)), visit(#name "f", static_cast<double>(::name##f(a, b)));
  COPPICE_CALLS_2(COPPICE_CALL)
#undef COPPICE_CALL
  // The arguments are others than sin's: LLVM makes one call of both.
  visit("cos", ::cos(y)), visit("cosf", static_cast<double>(::cosf(b)));
  visit("fma", ::fma(x, y, z)), visit("fmaf", static_cast<double>(::fmaf(a, b, c)));
  visit("ldexp", ::ldexp(x, k)), visit("ldexpf", static_cast<double>(::ldexpf(a, k)));
  visit("scalbn", ::scalbn(x, k)), visit("scalbnf", static_cast<double>(::scalbnf(a, k)));
  visit("scalbln", ::scalbln(x, k)), visit("scalblnf", static_cast<double>(::scalblnf(a, k)));
  visit("jn", ::jn(k % 5, x)), visit("jnf", static_cast<double>(::jnf(k % 5, a)));
  visit("yn", ::yn(k % 5, x)), visit("ynf", static_cast<double>(::ynf(k % 5, a)));
}

// These functions give a second value by a pointer. The sum of both is compared, and each alone.
template <class Visit>
inline void call_math_with_pointers(const Input& in, Visit&& visit) {
  const double x = in.x, y = in.y;
  const float a = static_cast<float>(x), b = static_cast<float>(y);
  int i = 0;
  double d = 0, e = 0;
  float f = 0, g = 0;
  visit("frexp", ::frexp(x, &i)), visit("frexp: exponent", i);
  visit("frexpf", static_cast<double>(::frexpf(a, &i))), visit("frexpf: exponent", i);
  visit("modf", ::modf(x, &d)), visit("modf: whole", d);
  visit("modff", static_cast<double>(::modff(a, &f))), visit("modff: whole", static_cast<double>(f));
  // The low three bits of the quotient are all that C promises.
  visit("remquo", ::remquo(x, y, &i)), visit("remquo: quotient", i & 7);
  visit("remquof", static_cast<double>(::remquof(a, b, &i))), visit("remquof: quotient", i & 7);
  ::sincos(x, &d, &e), visit("sincos: sine", d), visit("sincos: cosine", e);
  ::sincosf(a, &f, &g), visit("sincosf: sine", static_cast<double>(f)),
      visit("sincosf: cosine", static_cast<double>(g));
}

// Compilers call these of their own accord.
template <class Visit>
inline void call_helpers(const Input& in, Visit&& visit) {
  const auto unsigned_n = static_cast<unsigned __int128>(in.n);  // wraps where it is too large
  const auto wide = static_cast<__int128>((unsigned_n << 70) + unsigned_n * 12345);
  const __int128 divisor = (static_cast<__int128>(in.n % 977) << 50) + 3;
  const auto uwide = static_cast<unsigned __int128>(wide), udivisor = static_cast<unsigned __int128>(divisor);
  auto low = [&](const char* name, __int128 v) {  // all of its bits, in numbers that a double holds
    for (int at = 0; at < 128; at += 32)
      visit(name, static_cast<double>(static_cast<uint32_t>(static_cast<unsigned __int128>(v) >> at)));
  };
  low("__divti3", wide / divisor), low("__modti3", wide % (divisor + 2));
  low("__udivti3", static_cast<__int128>(uwide / udivisor)),
      low("__umodti3", static_cast<__int128>(uwide % (udivisor + 2)));
  __int128 product = 0;
  visit("an overflow of 128 bits", __builtin_mul_overflow(wide, divisor, &product) ? 1.0 : 0.0),
      low("an overflow of 128 bits", product);
  const double large = in.x * 0x1p70;
  const auto large_float = static_cast<float>(large);
  low("__fixdfti", static_cast<__int128>(large)), low("__fixsfti", static_cast<__int128>(large_float));
  low("__fixunsdfti", static_cast<__int128>(static_cast<unsigned __int128>(::fabs(large)))),
      low("__fixunssfti", static_cast<__int128>(static_cast<unsigned __int128>(::fabsf(large_float))));
  visit("__floattidf", static_cast<double>(wide)),
      visit("__floattisf", static_cast<double>(static_cast<float>(wide)));
  visit("__floatuntidf", static_cast<double>(uwide)),
      visit("__floatuntisf", static_cast<double>(static_cast<float>(uwide)));
  visit("__powidf2", __builtin_powi(in.x, static_cast<int>(in.n % 40))),
      visit("__powisf2",
            static_cast<double>(__builtin_powif(static_cast<float>(in.x), static_cast<int>(in.n % 40))));
}

// How many values a function above gives.
struct Count {
  int values = 0;
  void operator()(const char*, double) { ++values; }
};

}  // namespace coppice::library_test
