// The loops of all kernels of one shape, compiled once: what COPPICE_KERNEL makes, around a body that is not
// there yet (tests/gpu/jit/kernel_assembly.h).
//
// Device-clean.
#pragma once
#include "coppice/kernel.h"
#include "tests/kernel_fuzz/signature.h"

namespace coppice::kernel_fuzz {

// The call of a body for one cell, by which a kernel is proved harmless for inactive ones
// (gpu/jit/inactive_cells.h). Kernels over anything else are not looked at.
template <auto kBody, class Signature>
struct OneCell;
template <auto kBody, class... Args>
struct OneCell<kBody, void (*)(Args...)> {
  static constexpr bool kIsCell = (false || ... || requires(Args a) { a.context->added_base; });
  static COPPICE_INLINE void run([[maybe_unused]] const void* pack, [[maybe_unused]] const void* place) {
    if constexpr (kIsCell) {
      using Loop = device::CellLoop<kBody, Args...>;
      Loop::call(*static_cast<const typename Loop::Pack*>(pack),
                 *static_cast<const typename Loop::LoopItem*>(place));
    }
  }
};

}  // namespace coppice::kernel_fuzz

// A loop as COPPICE_KERNEL defines it, and the call for one cell as if it were a kernel's entry.
#define KERNEL_FUZZ_SHAPE(number, table, ...)                                                            \
  extern "C" coppice::kernel_fuzz::Signature<table, __VA_ARGS__>::Type fuzz_body_##number;               \
  extern "C" [[gnu::used]] void coppice_kernel_loop_##number(const coppice::LaunchBlock* block,          \
                                                             uint64_t begin, uint64_t end) {             \
    coppice::device::Runner<&fuzz_body_##number, decltype(&fuzz_body_##number)>::run(block, begin, end); \
  }                                                                                                      \
  extern "C" [[gnu::used]] void coppice_kernel_cell_##number(const void* pack, const void* place) {      \
    coppice::kernel_fuzz::OneCell<&fuzz_body_##number, decltype(&fuzz_body_##number)>::run(pack, place); \
  }
