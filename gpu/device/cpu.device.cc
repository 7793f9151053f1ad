// Device intrinsics for CPUs (x86-64 bitcode): one thread runs an item alone.
#define COPPICE_HAS_OWN_FLOAT_SUMS
#include "gpu/device/memory_guard.h"
#include "gpu/device/relaxed_atomics.h"
#include "gpu/device_intrinsics.h"

namespace {

// Adds to what no other thread changes meanwhile. Loads and stores are atomic all the same, so that no loop
// over items, which may add to the same place, is vectorised.
template <class T>
inline T add_alone(T* a, T v) {
  T was, sum;
  __atomic_load(a, &was, __ATOMIC_RELAXED);
  sum = was + v;
  __atomic_store(a, &sum, __ATOMIC_RELAXED);
  return was;
}

}  // namespace

extern "C" {
extern const uint32_t coppice_is_alone;  // 1: no two launches of the device run at once
float coppice_fetch_add_f32(float* a, float v) {
  return coppice_is_alone ? add_alone(a, v) : __atomic_fetch_add(a, v, __ATOMIC_RELAXED);
}
double coppice_fetch_add_f64(double* a, double v) {
  return coppice_is_alone ? add_alone(a, v) : __atomic_fetch_add(a, v, __ATOMIC_RELAXED);
}
void coppice_add_two_f32(float* a, float first, float second) {
  if (coppice_is_alone) {
    add_alone(a, first);
    add_alone(a + 1, second);
    return;
  }
  auto* const both = reinterpret_cast<uint64_t*>(a);
  uint64_t was = __atomic_load_n(both, __ATOMIC_RELAXED), sums;
  do {
    float values[2];
    __builtin_memcpy(values, &was, sizeof values);
    values[0] += first, values[1] += second;
    __builtin_memcpy(&sums, values, sizeof sums);
  } while (!__atomic_compare_exchange_n(both, &was, sums, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}
// One `lock cmpxchg16b`. The value before is read in two halves: where another thread changed it between
// them, the exchange fails and says what is there.
void coppice_add_four_f32(float* a, float v0, float v1, float v2, float v3, uint32_t which) {
  if (coppice_is_alone) {
    if (which & 1) add_alone(a, v0);
    if (which & 2) add_alone(a + 1, v1);
    if (which & 4) add_alone(a + 2, v2);
    if (which & 8) add_alone(a + 3, v3);
    return;
  }
  const auto* const halves = reinterpret_cast<const uint64_t*>(a);
  const uint64_t read[2] = {__atomic_load_n(halves, __ATOMIC_RELAXED),
                            __atomic_load_n(halves + 1, __ATOMIC_RELAXED)};
  using Four = float __attribute__((vector_size(16)));
  auto* const all = reinterpret_cast<unsigned __int128*>(a);
  unsigned __int128 was = __builtin_bit_cast(unsigned __int128, read), sums;
  const Four added = {v0, v1, v2, v3};
  do {
    sums = __builtin_bit_cast(unsigned __int128, __builtin_bit_cast(Four, was) + added);
  } while (!__atomic_compare_exchange_n(all, &was, sums, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}
int sched_yield(void);              // the C library's, which the code loader gives to kernels
uint32_t coppice_cpu_worker(void);  // gpu/cpu/worker_number.h
bool coppice_has_workers() { return true; }
uint32_t coppice_worker() { return coppice_cpu_worker(); }
uint32_t coppice_lane() { return 0; }
uint32_t coppice_lane_count() { return 1; }
void coppice_block_barrier() {}
void* coppice_shared_memory() { return nullptr; }
uint32_t coppice_warp_lane() { return 0; }
uint32_t coppice_active_mask() { return 1; }
uint32_t coppice_match_any_u64(uint32_t, uint64_t) { return 1; }
uint32_t coppice_ballot(uint32_t, bool predicate) { return predicate ? 1 : 0; }
uint32_t coppice_shuffle_u32(uint32_t, uint32_t value, uint32_t) { return value; }
void coppice_warp_barrier(uint32_t) {}
bool coppice_has_private_tiles() { return true; }

uint32_t coppice_load_acquire_u32(const uint32_t* a) { return __atomic_load_n(a, __ATOMIC_ACQUIRE); }
uint64_t coppice_load_acquire_u64(const uint64_t* a) { return __atomic_load_n(a, __ATOMIC_ACQUIRE); }
void coppice_store_release_u32(uint32_t* a, uint32_t v) { __atomic_store_n(a, v, __ATOMIC_RELEASE); }
uint32_t coppice_compare_exchange_u32(uint32_t* a, uint32_t expected, uint32_t desired) {
  __atomic_compare_exchange_n(a, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return expected;
}
uint32_t coppice_exchange_u32(uint32_t* a, uint32_t v) { return __atomic_exchange_n(a, v, __ATOMIC_ACQ_REL); }
void coppice_fence() { __atomic_thread_fence(__ATOMIC_ACQ_REL); }
void coppice_fence_seq_cst() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
uint32_t coppice_fresh_u32(uint32_t value) { return value; }
void coppice_pause(uint32_t turn) {
  if (turn < 64)
    __builtin_ia32_pause();
  else
    sched_yield();
}
}
