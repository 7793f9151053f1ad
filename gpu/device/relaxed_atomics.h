// Relaxed read-modify-writes, which need no code of a target's own: part of every target's device intrinsics.
//
// Device-clean. Included once by each gpu/device/*.device.cc and by nothing else: these are definitions.
#pragma once
#include "gpu/device_intrinsics.h"

extern "C" {
uint32_t coppice_fetch_add_u32(uint32_t* a, uint32_t v) { return __atomic_fetch_add(a, v, __ATOMIC_RELAXED); }
uint64_t coppice_fetch_add_u64(uint64_t* a, uint64_t v) { return __atomic_fetch_add(a, v, __ATOMIC_RELAXED); }
#ifndef COPPICE_HAS_OWN_FLOAT_SUMS
float coppice_fetch_add_f32(float* a, float v) { return __atomic_fetch_add(a, v, __ATOMIC_RELAXED); }
double coppice_fetch_add_f64(double* a, double v) { return __atomic_fetch_add(a, v, __ATOMIC_RELAXED); }
void coppice_add_two_f32(float* a, float first, float second) {
  coppice_fetch_add_f32(a, first);
  coppice_fetch_add_f32(a + 1, second);
}
void coppice_add_four_f32(float* a, float v0, float v1, float v2, float v3, uint32_t which) {
  if (which & 1) coppice_fetch_add_f32(a, v0);
  if (which & 2) coppice_fetch_add_f32(a + 1, v1);
  if (which & 4) coppice_fetch_add_f32(a + 2, v2);
  if (which & 8) coppice_fetch_add_f32(a + 3, v3);
}
#endif
uint32_t coppice_fetch_or_u32(uint32_t* a, uint32_t v) { return __atomic_fetch_or(a, v, __ATOMIC_RELAXED); }
uint64_t coppice_fetch_or_u64(uint64_t* a, uint64_t v) { return __atomic_fetch_or(a, v, __ATOMIC_RELAXED); }
uint32_t coppice_fetch_and_u32(uint32_t* a, uint32_t v) { return __atomic_fetch_and(a, v, __ATOMIC_RELAXED); }
uint64_t coppice_fetch_and_u64(uint64_t* a, uint64_t v) { return __atomic_fetch_and(a, v, __ATOMIC_RELAXED); }
uint32_t coppice_fetch_xor_u32(uint32_t* a, uint32_t v) { return __atomic_fetch_xor(a, v, __ATOMIC_RELAXED); }
uint64_t coppice_fetch_xor_u64(uint64_t* a, uint64_t v) { return __atomic_fetch_xor(a, v, __ATOMIC_RELAXED); }
uint32_t coppice_fetch_min_u32(uint32_t* a, uint32_t v) { return __atomic_fetch_min(a, v, __ATOMIC_RELAXED); }
uint64_t coppice_fetch_min_u64(uint64_t* a, uint64_t v) { return __atomic_fetch_min(a, v, __ATOMIC_RELAXED); }
int32_t coppice_fetch_min_i32(int32_t* a, int32_t v) { return __atomic_fetch_min(a, v, __ATOMIC_RELAXED); }
int64_t coppice_fetch_min_i64(int64_t* a, int64_t v) { return __atomic_fetch_min(a, v, __ATOMIC_RELAXED); }
uint32_t coppice_fetch_max_u32(uint32_t* a, uint32_t v) { return __atomic_fetch_max(a, v, __ATOMIC_RELAXED); }
uint64_t coppice_fetch_max_u64(uint64_t* a, uint64_t v) { return __atomic_fetch_max(a, v, __ATOMIC_RELAXED); }
int32_t coppice_fetch_max_i32(int32_t* a, int32_t v) { return __atomic_fetch_max(a, v, __ATOMIC_RELAXED); }
int64_t coppice_fetch_max_i64(int64_t* a, int64_t v) { return __atomic_fetch_max(a, v, __ATOMIC_RELAXED); }
uint32_t coppice_exchange_relaxed_u32(uint32_t* a, uint32_t v) {
  return __atomic_exchange_n(a, v, __ATOMIC_RELAXED);
}
uint64_t coppice_exchange_relaxed_u64(uint64_t* a, uint64_t v) {
  return __atomic_exchange_n(a, v, __ATOMIC_RELAXED);
}
uint32_t coppice_compare_exchange_relaxed_u32(uint32_t* a, uint32_t expected, uint32_t desired) {
  __atomic_compare_exchange_n(a, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
uint64_t coppice_compare_exchange_relaxed_u64(uint64_t* a, uint64_t expected, uint64_t desired) {
  __atomic_compare_exchange_n(a, &expected, desired, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
}
