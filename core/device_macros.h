// Attributes of code that runs on devices: always inlined, loops fully unrolled, and calls that must not come
// to depend on more branches than they are written under: in two copies of a barrier, threads would wait for
// each other for ever. Three marks are for coppice-kernelgen (gpu/jit/inactive_cells.h): COPPICE_ONE_CELL
// runs a kernel for one cell; COPPICE_HARMLESS comes to an end, traps nowhere and harms no memory, whatever
// it is given and whichever cell it is for; COPPICE_HARMLESS_NEAR does so as long as its numbers are offsets
// that do not depend on data. Seven more are for its list of a kernel's effects (gpu/jit/kernel_effects.h):
// COPPICE_ACCESS is for what a handle's role or the runtime itself answers for, COPPICE_MEMORY for what leads
// to memory that the launch was given; COPPICE_ACTIVATES, COPPICE_DEACTIVATES and COPPICE_TESTS say what else
// it does to or asks of the topology, and COPPICE_ANYWHERE that it reads elsewhere than a handle's reach
// says, COPPICE_NEIGHBOURS that it does so in blocks beside its own.
//
// Device-clean. The host compiles the same headers, so each macro has a form for it too.
#pragma once

#define COPPICE_INLINE inline __attribute__((always_inline))
#if defined(__clang__)
#define COPPICE_UNROLL _Pragma("clang loop unroll(full)")
#define COPPICE_CONVERGENT __attribute__((convergent))
#define COPPICE_ONE_CELL [[omp::assume("ext_coppice_one_cell")]]
#define COPPICE_HARMLESS [[omp::assume("ext_coppice_harmless")]]
#define COPPICE_HARMLESS_NEAR [[omp::assume("ext_coppice_harmless_near")]]
#define COPPICE_ACCESS [[omp::assume("ext_coppice_access")]]
#define COPPICE_MEMORY [[omp::assume("ext_coppice_memory")]]
#define COPPICE_ACTIVATES [[omp::assume("ext_coppice_activates")]]
#define COPPICE_DEACTIVATES [[omp::assume("ext_coppice_deactivates")]]
#define COPPICE_TESTS [[omp::assume("ext_coppice_tests")]]
#define COPPICE_ANYWHERE [[omp::assume("ext_coppice_anywhere")]]
#define COPPICE_NEIGHBOURS [[omp::assume("ext_coppice_neighbours")]]
#else
#define COPPICE_ACCESS
#define COPPICE_MEMORY
#define COPPICE_ACTIVATES
#define COPPICE_DEACTIVATES
#define COPPICE_TESTS
#define COPPICE_ANYWHERE
#define COPPICE_NEIGHBOURS
#define COPPICE_ONE_CELL
#define COPPICE_HARMLESS
#define COPPICE_HARMLESS_NEAR
#define COPPICE_CONVERGENT
#define COPPICE_UNROLL _Pragma("GCC unroll 16")
#endif
