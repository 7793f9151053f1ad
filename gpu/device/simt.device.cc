// Device intrinsics for the emulated GPU (x86-64 bitcode): an item is shared by the threads of a block, each
// of them a fiber of gpu/simt/machine.h, which does what the hardware would.
#include "gpu/device/memory_guard.h"
#include "gpu/device/relaxed_atomics.h"
#include "gpu/device_intrinsics.h"
#include "gpu/simt/symbols.h"

extern "C" {
uint32_t coppice_lane() { return coppice_simt_lane(); }
uint32_t coppice_lane_count() { return coppice_simt_lane_count(); }
void coppice_block_barrier() { coppice_simt_block_barrier(); }
void* coppice_shared_memory() { return coppice_simt_shared_memory(); }
uint32_t coppice_warp_lane() { return coppice_simt_warp_lane(); }
uint32_t coppice_active_mask() { return coppice_simt_active_mask(); }
uint32_t coppice_match_any_u64(uint32_t mask, uint64_t v) { return coppice_simt_match_any_u64(mask, v); }
uint32_t coppice_ballot(uint32_t mask, bool predicate) { return coppice_simt_ballot(mask, predicate); }
uint32_t coppice_shuffle_u32(uint32_t mask, uint32_t v, uint32_t lane) {
  return coppice_simt_shuffle_u32(mask, v, lane);
}
void coppice_warp_barrier(uint32_t mask) { coppice_simt_warp_barrier(mask); }
bool coppice_has_private_tiles() { return false; }
bool coppice_has_workers() { return false; }
uint32_t coppice_worker() { return 0; }

// The place that these are inlined to becomes their site (gpu/jit/simt_passes.cc).
uint32_t coppice_load_acquire_u32(const uint32_t* a) { return coppice_simt_load_acquire_u32(a); }
uint64_t coppice_load_acquire_u64(const uint64_t* a) { return coppice_simt_load_acquire_u64(a); }
void coppice_store_release_u32(uint32_t* a, uint32_t v) { coppice_simt_store_release_u32(a, v); }
uint32_t coppice_compare_exchange_u32(uint32_t* a, uint32_t expected, uint32_t desired) {
  return coppice_simt_compare_exchange_u32(a, expected, desired);
}
uint32_t coppice_exchange_u32(uint32_t* a, uint32_t v) { return coppice_simt_exchange_u32(a, v); }
void coppice_fence() { coppice_simt_fence(); }
void coppice_fence_seq_cst() { coppice_simt_fence_sequentially(); }
uint32_t coppice_fresh_u32(uint32_t value) { return value; }
void coppice_pause(uint32_t) { coppice_simt_pause(); }

// Stands for memcmp and bcmp, which would read past the thread's view (gpu/jit/simt_passes.cc).
int coppice_view_memcmp(const void* a, const void* b, size_t bytes) {
  const auto* const p = static_cast<const unsigned char*>(a);
  const auto* const q = static_cast<const unsigned char*>(b);
  for (size_t i = 0; i < bytes; ++i) {
    if (p[i] != q[i]) return p[i] < q[i] ? -1 : 1;
  }
  return 0;
}
}
