// Generated kernels without their loops: each is a function, which is put into its shape's loop (loops.h)
// later.
#pragma once
#include "tests/kernel_fuzz/prelude.h"

#undef COPPICE_KERNEL
#undef COPPICE_KERNEL_FAST_MATH
#define COPPICE_KERNEL(name, ...) extern "C" [[gnu::always_inline]] void name(__VA_ARGS__)
#define COPPICE_KERNEL_FAST_MATH(name, ...)                                  \
  extern "C" [[gnu::used]] const unsigned char coppice_fast_math_##name = 1; \
  COPPICE_KERNEL(name, __VA_ARGS__)
