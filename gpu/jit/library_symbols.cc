// The functions of the host that kernels may call (see library_symbols.h).
#include "gpu/jit/library_symbols.h"

#include <math.h>  // not <cmath>: sincos, exp10 and others are no standard functions
#include <string.h>
#include <strings.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

// These are helpers of the compilers' runtime library. Only their addresses are taken, so their types do
// not matter: some are no types of GCC 12's C++ (_Float16).
extern "C" {
void __divti3(), __modti3(), __udivti3(), __umodti3();
void __fixsfti(), __fixdfti(), __fixunssfti(), __fixunsdfti();
void __floattisf(), __floattidf(), __floatuntisf(), __floatuntidf();
void __extendhfsf2(), __truncsfhf2(), __truncdfhf2();
void __powisf2(), __powidf2();
}

namespace coppice::jit {
namespace {

// These have LLVM's names for conversions to bfloat16, which GCC 12's library lacks: round to nearest,
// ties to even. The caller finds the result's 16 bits in the low ones of xmm0, as those of a float.
uint16_t bfloat_bits(float x) {
  uint32_t bits = 0;
  memcpy(&bits, &x, sizeof bits);
  if (x != x) return static_cast<uint16_t>(bits >> 16 | 0x40);  // stays a quiet NaN
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
float in_low_bits(uint16_t bits) {
  const uint32_t word = bits;
  float register_value = 0;
  memcpy(&register_value, &word, sizeof word);
  return register_value;
}
float float_to_bfloat(float x) { return in_low_bits(bfloat_bits(x)); }
// Rounding twice would be wrong: what a float cannot hold is made odd, so that the second rounding sees it.
float double_to_bfloat(double x) {
  float near = static_cast<float>(x);
  if (static_cast<double>(near) != x && x == x) {
    uint32_t bits = 0;
    memcpy(&bits, &near, sizeof bits);
    if (fabs(static_cast<double>(near)) > fabs(x)) --bits;  // towards zero
    bits |= 1;
    memcpy(&near, &bits, sizeof bits);
  }
  return in_low_bits(bfloat_bits(near));
}

struct Table {
  template <class R, class... Args>
  void add(const char* name, R (*function)(Args...)) {
    symbols.push_back({name, reinterpret_cast<const void*>(function)});
  }

  void add_memory() {
    add("memcpy", &::memcpy), add("memmove", &::memmove), add("memset", &::memset), add("memcmp", &::memcmp);
    add("bcmp", &::bcmp);  // what LLVM makes of memcmp() == 0
  }

  // Adds every function of <math.h> in C17 for float and double, but those with a long double; and of
  // glibc's others those that NVIDIA's library has, too.
  void add_math() {
#define COPPICE_BOTH(name) add(#name, static_cast<D>(&::name)), add(#name "f", static_cast<F>(&::name##f))
    {
      using D = double (*)(double);
      using F = float (*)(float);
      COPPICE_BOTH(acos), COPPICE_BOTH(acosh), COPPICE_BOTH(asin), COPPICE_BOTH(asinh), COPPICE_BOTH(atan),
          COPPICE_BOTH(atanh), COPPICE_BOTH(cbrt), COPPICE_BOTH(ceil), COPPICE_BOTH(cos), COPPICE_BOTH(cosh),
          COPPICE_BOTH(erf), COPPICE_BOTH(erfc), COPPICE_BOTH(exp), COPPICE_BOTH(exp10), COPPICE_BOTH(exp2),
          COPPICE_BOTH(expm1), COPPICE_BOTH(fabs), COPPICE_BOTH(floor), COPPICE_BOTH(j0), COPPICE_BOTH(j1),
          COPPICE_BOTH(lgamma), COPPICE_BOTH(log), COPPICE_BOTH(log10), COPPICE_BOTH(log1p),
          COPPICE_BOTH(log2), COPPICE_BOTH(logb), COPPICE_BOTH(nearbyint), COPPICE_BOTH(rint),
          COPPICE_BOTH(round), COPPICE_BOTH(roundeven), COPPICE_BOTH(sin), COPPICE_BOTH(sinh),
          COPPICE_BOTH(sqrt), COPPICE_BOTH(tan), COPPICE_BOTH(tanh), COPPICE_BOTH(tgamma),
          COPPICE_BOTH(trunc), COPPICE_BOTH(y0), COPPICE_BOTH(y1);
    }
    {
      using D = double (*)(double, double);
      using F = float (*)(float, float);
      COPPICE_BOTH(atan2), COPPICE_BOTH(copysign), COPPICE_BOTH(fdim), COPPICE_BOTH(fmax), COPPICE_BOTH(fmin),
          COPPICE_BOTH(fmod), COPPICE_BOTH(hypot), COPPICE_BOTH(nextafter), COPPICE_BOTH(pow),
          COPPICE_BOTH(remainder);
    }
    {
      using D = double (*)(double, double, double);
      using F = float (*)(float, float, float);
      COPPICE_BOTH(fma);
    }
    add_math_with_integers();
    add_math_with_pointers();
  }
  void add_math_with_integers() {
    {
      using D = double (*)(double, int);
      using F = float (*)(float, int);
      COPPICE_BOTH(ldexp), COPPICE_BOTH(scalbn);
    }
    {
      using D = double (*)(double, long);
      using F = float (*)(float, long);
      COPPICE_BOTH(scalbln);
    }
    {
      using D = double (*)(int, double);
      using F = float (*)(int, float);
      COPPICE_BOTH(jn), COPPICE_BOTH(yn);
    }
    {
      using D = int (*)(double);
      using F = int (*)(float);
      COPPICE_BOTH(ilogb);
    }
    {
      using D = long (*)(double);
      using F = long (*)(float);
      COPPICE_BOTH(lrint), COPPICE_BOTH(lround);
    }
    {
      using D = long long (*)(double);
      using F = long long (*)(float);
      COPPICE_BOTH(llrint), COPPICE_BOTH(llround);
    }
  }
  void add_math_with_pointers() {
    {
      using D = double (*)(double, int*);
      using F = float (*)(float, int*);
      COPPICE_BOTH(frexp);
    }
    {
      using D = double (*)(double, double*);
      using F = float (*)(float, float*);
      COPPICE_BOTH(modf);
    }
    {
      using D = double (*)(double, double, int*);
      using F = float (*)(float, float, int*);
      COPPICE_BOTH(remquo);
    }
    {
      using D = void (*)(double, double*, double*);
      using F = void (*)(float, float*, float*);
      COPPICE_BOTH(sincos);  // what LLVM makes of sin and cos of one number
    }
#undef COPPICE_BOTH
  }

  void add_compiler_helpers() {
#define COPPICE_HELPER(name) add(#name, &name)
    // Integers of 128 bits, and floats from and to them.
    COPPICE_HELPER(__divti3), COPPICE_HELPER(__modti3), COPPICE_HELPER(__udivti3), COPPICE_HELPER(__umodti3);
    COPPICE_HELPER(__fixsfti), COPPICE_HELPER(__fixdfti), COPPICE_HELPER(__fixunssfti),
        COPPICE_HELPER(__fixunsdfti);
    COPPICE_HELPER(__floattisf), COPPICE_HELPER(__floattidf), COPPICE_HELPER(__floatuntisf),
        COPPICE_HELPER(__floatuntidf);
    // Floats of 16 bits.
    COPPICE_HELPER(__extendhfsf2), COPPICE_HELPER(__truncsfhf2), COPPICE_HELPER(__truncdfhf2);
    add("__truncsfbf2", &float_to_bfloat), add("__truncdfbf2", &double_to_bfloat);
    // Whole powers.
    COPPICE_HELPER(__powisf2), COPPICE_HELPER(__powidf2);
#undef COPPICE_HELPER
  }

  std::vector<LibrarySymbol> sorted() {
    std::sort(symbols.begin(), symbols.end(), [](const LibrarySymbol& a, const LibrarySymbol& b) {
      return std::string_view(a.name) < b.name;
    });
    return std::move(symbols);
  }

  std::vector<LibrarySymbol> symbols;
};

}  // namespace

std::span<const LibrarySymbol> library_symbols() {
  static const auto& symbols = *new std::vector<LibrarySymbol>([] {  // never destroyed: see host_target()
    Table table;
    table.add_memory();
    table.add_math();
    table.add_compiler_helpers();
    return table.sorted();
  }());
  return symbols;
}

}  // namespace coppice::jit
