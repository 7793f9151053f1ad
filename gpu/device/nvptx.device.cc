// Device intrinsics for NVIDIA GPUs: an item is shared by a thread block; orders are written as PTX.
//
// LLVM 19's NVPTX back end drops orderings on read-modify-writes and aborts on acquire loads, release stores
// and fences, so every ordered operation here is its own line of PTX.
#include "gpu/device/memory_guard.h"
#include "gpu/device/relaxed_atomics.h"
#include "gpu/device_intrinsics.h"
#include "gpu/launch_block.h"

// It has as many bytes as the launch asks for.
extern __attribute__((address_space(3), aligned(16))) unsigned char coppice_dynamic_shared[];

namespace {
// Ordered operations are for the device's memory.
template <class T>
__attribute__((always_inline)) inline __attribute__((address_space(1))) T* to_global(T* address) {
  return (__attribute__((address_space(1))) T*)address;
}
}  // namespace

extern "C" {
uint32_t coppice_lane() { return __nvvm_read_ptx_sreg_tid_x(); }
uint32_t coppice_lane_count() { return coppice::kGpuThreadsPerBlock; }
void coppice_block_barrier() { __syncthreads(); }
void* coppice_shared_memory() { return (void*)coppice_dynamic_shared; }
uint32_t coppice_warp_lane() {
  uint32_t lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}
uint32_t coppice_active_mask() {
  uint32_t mask;
  asm volatile("activemask.b32 %0;" : "=r"(mask));
  return mask;
}
uint32_t coppice_match_any_u64(uint32_t mask, uint64_t value) {
  return static_cast<uint32_t>(__nvvm_match_any_sync_i64(mask, static_cast<long long>(value)));
}
uint32_t coppice_ballot(uint32_t mask, bool predicate) { return __nvvm_vote_ballot_sync(mask, predicate); }
uint32_t coppice_shuffle_u32(uint32_t mask, uint32_t value, uint32_t lane) {
  return static_cast<uint32_t>(
      __nvvm_shfl_sync_idx_i32(mask, static_cast<int>(value), static_cast<int>(lane), 31));
}
void coppice_warp_barrier(uint32_t mask) { __nvvm_bar_warp_sync(mask); }
bool coppice_has_private_tiles() { return false; }
bool coppice_has_workers() { return false; }
uint32_t coppice_worker() { return 0; }

uint32_t coppice_load_acquire_u32(const uint32_t* a) {
  uint32_t v;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(to_global(a)) : "memory");
  return v;
}
uint64_t coppice_load_acquire_u64(const uint64_t* a) {
  uint64_t v;
  asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(to_global(a)) : "memory");
  return v;
}
void coppice_store_release_u32(uint32_t* a, uint32_t v) {
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(to_global(a)), "r"(v) : "memory");
}
uint32_t coppice_compare_exchange_u32(uint32_t* a, uint32_t expected, uint32_t desired) {
  uint32_t old;
  asm volatile("atom.acq_rel.gpu.global.cas.b32 %0, [%1], %2, %3;"
               : "=r"(old)
               : "l"(to_global(a)), "r"(expected), "r"(desired)
               : "memory");
  return old;
}
uint32_t coppice_exchange_u32(uint32_t* a, uint32_t v) {
  uint32_t old;
  asm volatile("atom.acq_rel.gpu.global.exch.b32 %0, [%1], %2;"
               : "=r"(old)
               : "l"(to_global(a)), "r"(v)
               : "memory");
  return old;
}
void coppice_fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }
void coppice_fence_seq_cst() { asm volatile("fence.sc.gpu;" ::: "memory"); }
uint32_t coppice_fresh_u32(uint32_t value) {
  asm volatile("" : "+r"(value));
  return value;
}
void coppice_pause(uint32_t) { __nvvm_nanosleep(32); }

// Returns whether a recorded launch is to be skipped: asked once by every thread, when the kernel begins.
__attribute__((always_inline)) bool coppice_skips(const coppice::LaunchBlock* block) {
  if ((block->flags & coppice::kRecorded) == 0) return false;
  const coppice::DeviceContext* context = block->context;
  const uint32_t status = *static_cast<const volatile uint32_t*>(&context->status);
  return coppice::is_skipped(*block, status, context->replayed_from);
}

// Kernels may call these of C's library beside math, and clang calls them of its own accord.
int memcmp(const void* a, const void* b, __SIZE_TYPE__ n) {
  const auto *x = static_cast<const unsigned char*>(a), *y = static_cast<const unsigned char*>(b);
  for (__SIZE_TYPE__ i = 0; i < n; ++i) {
    if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
  }
  return 0;
}
int bcmp(const void* a, const void* b, __SIZE_TYPE__ n) { return memcmp(a, b, n); }

// libdevice has these for an exponent that is an int: no more than 2^13 changes anything.
double scalbn(double x, int n);
float scalbnf(float x, int n);
double scalbln(double x, long n) {
  return scalbn(x, static_cast<int>(n < -8192 ? -8192 : n > 8192 ? 8192 : n));
}
float scalblnf(float x, long n) {
  return scalbnf(x, static_cast<int>(n < -8192 ? -8192 : n > 8192 ? 8192 : n));
}
}
