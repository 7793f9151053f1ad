// Device intrinsics for NVIDIA GPUs: an item is shared by a thread block; orders are written as PTX.
//
// LLVM 19's NVPTX back end drops orderings on read-modify-writes and aborts on acquire loads, release stores and
// fences, so every ordered operation here is its own line of PTX.
#include "gpu/device/relaxed_atomics.h"
#include "gpu/device_intrinsics.h"

extern "C" {
uint32_t coppice_lane() { return __nvvm_read_ptx_sreg_tid_x(); }
uint32_t coppice_lane_count() { return __nvvm_read_ptx_sreg_ntid_x(); }
void coppice_block_barrier() { __syncthreads(); }
bool coppice_has_private_tiles() { return false; }

uint32_t coppice_load_acquire_u32(const uint32_t* a) {
  uint32_t v;
  asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(v) : "l"(a) : "memory");
  return v;
}
void coppice_store_release_u32(uint32_t* a, uint32_t v) {
  asm volatile("st.release.gpu.u32 [%0], %1;" ::"l"(a), "r"(v) : "memory");
}
uint32_t coppice_compare_exchange_u32(uint32_t* a, uint32_t expected, uint32_t desired) {
  uint32_t old;
  asm volatile("atom.acq_rel.gpu.cas.b32 %0, [%1], %2, %3;"
               : "=r"(old)
               : "l"(a), "r"(expected), "r"(desired)
               : "memory");
  return old;
}
uint32_t coppice_exchange_u32(uint32_t* a, uint32_t v) {
  uint32_t old;
  asm volatile("atom.acq_rel.gpu.exch.b32 %0, [%1], %2;" : "=r"(old) : "l"(a), "r"(v) : "memory");
  return old;
}
void coppice_pause() { __nvvm_nanosleep(32); }
}
