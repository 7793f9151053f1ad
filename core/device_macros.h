// Attributes of code that runs on devices: always inlined, loops fully unrolled.
//
// Device-clean. The host compiles the same headers, so each macro has a form for it too.
#pragma once

#define COPPICE_INLINE inline __attribute__((always_inline))
#if defined(__clang__)
#define COPPICE_UNROLL _Pragma("clang loop unroll(full)")
#else
#define COPPICE_UNROLL _Pragma("GCC unroll 16")
#endif
