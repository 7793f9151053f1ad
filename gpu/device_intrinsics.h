// The few operations whose machine code differs between devices: one declaration here, one definition per target.
//
// Device-clean. Definitions: gpu/device/cpu.device.cc (x86) and gpu/device/nvptx.device.cc (PTX); the specializer
// links the one that belongs to its target, so another device supplies its own file and nothing else changes.
#pragma once
#include <stdint.h>  // not <cstdint>: the NVPTX compile has no C++ library

extern "C" {
// Threads that share one loop item: 1 on a CPU, the thread block on a GPU.
uint32_t coppice_lane();
uint32_t coppice_lane_count();
void coppice_block_barrier();
// True where an item's halo is copied to a private tile first; a GPU reads through its L1 instead.
bool coppice_has_private_tiles();

// Memory orders are spelled out because LLVM 19 drops them on NVPTX read-modify-writes.
uint32_t coppice_load_acquire_u32(const uint32_t* address);
void coppice_store_release_u32(uint32_t* address, uint32_t value);
uint32_t coppice_compare_exchange_u32(uint32_t* address, uint32_t expected,
                                      uint32_t desired);            // acq_rel; the old value
uint32_t coppice_exchange_u32(uint32_t* address, uint32_t value);   // acq_rel
uint32_t coppice_fetch_add_u32(uint32_t* address, uint32_t value);  // relaxed
uint64_t coppice_fetch_add_u64(uint64_t* address, uint64_t value);  // relaxed
uint64_t coppice_fetch_or_u64(uint64_t* address, uint64_t value);   // relaxed
uint64_t coppice_fetch_and_u64(uint64_t* address, uint64_t value);  // relaxed
float coppice_fetch_add_f32(float* address, float value);           // relaxed
double coppice_fetch_add_f64(double* address, double value);        // relaxed
uint32_t coppice_fetch_max_u32(uint32_t* address, uint32_t value);  // relaxed
void coppice_pause();                                               // in a spin loop
}
