// Launching kernels that are there for 2 and for 3 dimensions, and waiting for them.
#pragma once
#include "core/async_value.h"
#include "sparse/kernel.h"

namespace coppice::mpm {

// Returns the one of two kernels that is for D dimensions.
template <int D, class Two, class Three>
constexpr const auto& kernel_of(const Kernel<Two>& two, const Kernel<Three>& three) {
  static_assert(D == 2 || D == 3);
  if constexpr (D == 2)
    return two;
  else
    return three;
}

// Errors: the value's own.
inline void wait_done(const AsyncValueRef<Chain>& done) {
  wait(done);
  if (done.is_error()) throw done.error();
}

}  // namespace coppice::mpm
