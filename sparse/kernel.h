// A kernel as the host names it: its bitcode, its name, and the types of its arguments.
//
// Constants of this type stand in the header that coppice_add_kernels() generates; Program::launch checks
// every launch against them at compile time.
#pragma once
#include <cstddef>
#include <cstring>
#include <string_view>

#include "gpu/jit/bitcode.h"
#include "gpu/jit/kernel_effects.h"
#include "sparse/device/arguments.h"
#include "sparse/device/rank_map.h"

namespace coppice {

namespace detail {

// Makes a default value of the generated headers, which have it as clang laid it out.
template <class T, size_t kBytes>
T value_of_bytes(const unsigned char (&bytes)[kBytes]) {
  static_assert(sizeof(T) == kBytes);
  T value;
  std::memcpy(static_cast<void*>(&value), bytes, kBytes);
  return value;
}

}  // namespace detail

template <class Signature>
struct Kernel;

// This is a pointer to the bitcode, so that the constant needs no dynamic initialisation.
template <class... Args>
struct Kernel<void(Args...)> {
  const KernelBitcode* file;
  std::string_view name;
  // This kernel must not run for an inactive cell, as others do whose results are then dropped:
  // coppice-kernelgen could not prove that it would be harmless there (gpu/jit/inactive_cells.h; the
  // generated header says why).
  bool active_only;
  uint32_t effects;  // kActivatesCells and the like
};

namespace detail {

// Returns the one of a COPPICE_KERNEL_2D_3D's kernels that is for D dimensions.
template <int D, class Two, class Three>
constexpr const auto& kernel_of_dimensions(const Kernel<Two>& two, const Kernel<Three>& three) {
  static_assert(D == 2 || D == 3, "the kernel is for 2 or 3 dimensions");
  if constexpr (D == 2)
    return two;
  else
    return three;
}

}  // namespace detail

}  // namespace coppice
