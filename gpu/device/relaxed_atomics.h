// Relaxed read-modify-writes, which need no code of a target's own: part of every target's device intrinsics.
//
// Device-clean. Included once by each gpu/device/*.device.cc and by nothing else: these are definitions.
#pragma once
#include "gpu/device_intrinsics.h"

extern "C" {
uint32_t coppice_fetch_add_u32(uint32_t* a, uint32_t v) { return __atomic_fetch_add(a, v, __ATOMIC_RELAXED); }
uint64_t coppice_fetch_add_u64(uint64_t* a, uint64_t v) { return __atomic_fetch_add(a, v, __ATOMIC_RELAXED); }
uint64_t coppice_fetch_or_u64(uint64_t* a, uint64_t v) { return __atomic_fetch_or(a, v, __ATOMIC_RELAXED); }
uint64_t coppice_fetch_and_u64(uint64_t* a, uint64_t v) { return __atomic_fetch_and(a, v, __ATOMIC_RELAXED); }
float coppice_fetch_add_f32(float* a, float v) { return __atomic_fetch_add(a, v, __ATOMIC_RELAXED); }
double coppice_fetch_add_f64(double* a, double v) { return __atomic_fetch_add(a, v, __ATOMIC_RELAXED); }
uint32_t coppice_fetch_max_u32(uint32_t* a, uint32_t v) { return __atomic_fetch_max(a, v, __ATOMIC_RELAXED); }
uint64_t coppice_fetch_max_u64(uint64_t* a, uint64_t v) { return __atomic_fetch_max(a, v, __ATOMIC_RELAXED); }
}
