// Attributes of code that runs on devices: always inlined, loops fully unrolled, and calls that must not come to depend on
// more branches than they are written under: in two copies of a barrier, threads would wait for each other for ever.
//
// Device-clean. The host compiles the same headers, so each macro has a form for it too.
#pragma once

#define COPPICE_INLINE inline __attribute__((always_inline))
#if defined(__clang__)
#define COPPICE_UNROLL _Pragma("clang loop unroll(full)")
#define COPPICE_CONVERGENT __attribute__((convergent))
#else
#define COPPICE_CONVERGENT
#define COPPICE_UNROLL _Pragma("GCC unroll 16")
#endif
