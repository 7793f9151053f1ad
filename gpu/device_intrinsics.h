// The few operations whose machine code differs between devices: one declaration here, one definition per
// target.
//
// Device-clean. Definitions: gpu/device/cpu.device.cc (x86), nvptx.device.cc (PTX) and simt.device.cc (the
// emulated GPU); the specializer links the one that belongs to its target.
#pragma once
#include <stdint.h>  // not <cstdint>: the NVPTX compile has no C++ library

#include "core/device_macros.h"

extern "C" {
// These number and count the threads that share one loop item: 1 on a CPU, the thread block on a GPU.
uint32_t coppice_lane();
uint32_t coppice_lane_count();
COPPICE_CONVERGENT void coppice_block_barrier();
// Returns the thread block's fast memory, Launch::shared_bytes of it; null on a CPU, where an item has its
// thread's stack.
void* coppice_shared_memory();

// Returns whether threads keep things for themselves by the number of their worker: a CPU's do. Numbers
// are dense and mostly not shared by threads that run a launch at once; nothing but speed may depend on
// that.
bool coppice_has_workers();
uint32_t coppice_worker();

// These are for warps; a CPU thread is a warp of one. Threads of a warp run independently of each other:
// nothing may depend on when they meet. `mask` names the lanes that take part, its caller among them, and
// all of these must make the same call.
uint32_t coppice_warp_lane();  // 0 to 31
// Returns the lanes that run this call together: the caller and any others. Call it right before what
// takes its mask, in one straight line of code.
uint32_t coppice_active_mask();
uint32_t coppice_match_any_u64(uint32_t mask, uint64_t value);  // lanes of the mask that gave this value
uint32_t coppice_ballot(uint32_t mask, bool predicate);         // lanes of the mask that said yes
COPPICE_CONVERGENT uint32_t coppice_shuffle_u32(uint32_t mask, uint32_t value,
                                                uint32_t lane);  // what that lane gave
COPPICE_CONVERGENT void coppice_warp_barrier(uint32_t mask);
// Returns true where an item's halo is copied to a private tile first; a GPU reads through its L1 instead.
bool coppice_has_private_tiles();

// Memory orders are spelled out because LLVM 19 drops them on NVPTX read-modify-writes. These are for the
// device's memory, not for a thread block's fast memory.
uint32_t coppice_load_acquire_u32(const uint32_t* address);
uint64_t coppice_load_acquire_u64(const uint64_t* address);
void coppice_store_release_u32(uint32_t* address, uint32_t value);
uint32_t coppice_compare_exchange_u32(uint32_t* address, uint32_t expected,
                                      uint32_t desired);           // acq_rel; the old value
uint32_t coppice_exchange_u32(uint32_t* address, uint32_t value);  // acq_rel
void coppice_fence();  // acq_rel, between all threads of the device
// Does the same, and all of these have one order: for what each of two threads writes and the other reads.
void coppice_fence_seq_cst();
uint32_t coppice_fetch_add_u32(uint32_t* address, uint32_t value);  // relaxed
uint64_t coppice_fetch_add_u64(uint64_t* address, uint64_t value);  // relaxed
uint32_t coppice_fetch_or_u32(uint32_t* address, uint32_t value);   // relaxed
uint64_t coppice_fetch_or_u64(uint64_t* address, uint64_t value);   // relaxed
uint32_t coppice_fetch_and_u32(uint32_t* address, uint32_t value);  // relaxed
uint64_t coppice_fetch_and_u64(uint64_t* address, uint64_t value);  // relaxed
uint32_t coppice_fetch_xor_u32(uint32_t* address, uint32_t value);  // relaxed
uint64_t coppice_fetch_xor_u64(uint64_t* address, uint64_t value);  // relaxed
float coppice_fetch_add_f32(float* address, float value);           // relaxed
double coppice_fetch_add_f64(double* address, double value);        // relaxed
uint32_t coppice_fetch_min_u32(uint32_t* address, uint32_t value);  // relaxed
uint64_t coppice_fetch_min_u64(uint64_t* address, uint64_t value);  // relaxed
int32_t coppice_fetch_min_i32(int32_t* address, int32_t value);     // relaxed
int64_t coppice_fetch_min_i64(int64_t* address, int64_t value);     // relaxed
uint32_t coppice_fetch_max_u32(uint32_t* address, uint32_t value);  // relaxed
uint64_t coppice_fetch_max_u64(uint64_t* address, uint64_t value);  // relaxed
int32_t coppice_fetch_max_i32(int32_t* address, int32_t value);     // relaxed
int64_t coppice_fetch_max_i64(int64_t* address, int64_t value);     // relaxed
// Add to numbers side by side, each atomically, by one operation on a CPU; the address is a multiple of all
// their bytes. Of four, bit i of `which` tells whether there is a number i; else v_i is 0.
void coppice_add_two_f32(float* address, float first, float second);
void coppice_add_four_f32(float* address, float v0, float v1, float v2, float v3, uint32_t which);
uint32_t coppice_exchange_relaxed_u32(uint32_t* address, uint32_t value);
uint64_t coppice_exchange_relaxed_u64(uint64_t* address, uint64_t value);
// These return the old value.
uint32_t coppice_compare_exchange_relaxed_u32(uint32_t* address, uint32_t expected, uint32_t desired);
uint64_t coppice_compare_exchange_relaxed_u64(uint64_t* address, uint64_t expected, uint64_t desired);
// Returns its argument. To a GPU's optimiser the result is a new value in every round of a loop: it computes
// what depends on it there, instead of keeping it in registers that there are too few of.
uint32_t coppice_fresh_u32(uint32_t value);
// Stands in a loop that waits for another thread; `turn` counts its rounds. A CPU's thread soon lets
// others run: the one that it waits for may not be running at all.
void coppice_pause(uint32_t turn);

// Stands where a kernel uses handle `binding` against its contract, behind the test for that. No target
// defines it: once the optimiser has folded what the layouts decide, the specializer refuses the kernel if a
// call is left whose handle is known, and drops the others (gpu/jit/misuse.cc). Right code has none left.
void coppice_misuse(uint32_t what, uint32_t binding, uint32_t given);
}
