// Stencils that many kernels need.
//
// Device-clean.
#pragma once
#include "sparse/device/handles.h"

namespace coppice {

// Returns the discrete Laplacian times dx^2: sum of the 2 D neighbours minus 2 D times the cell.
template <class T, class Reach, int D>
COPPICE_INLINE T laplacian(const Read<T, Reach>& f, const Cell<D>& c) {
  static_assert(Reach::kRadius >= 1, "laplacian needs a handle with reach, such as Read<float, Star<1>>");
  if constexpr (D == 1)
    return f(c, -1) + f(c, 1) - T(2) * f[c];
  else if constexpr (D == 2)
    return f(c, -1, 0) + f(c, 1, 0) + f(c, 0, -1) + f(c, 0, 1) - T(4) * f[c];
  else
    return f(c, -1, 0, 0) + f(c, 1, 0, 0) + f(c, 0, -1, 0) + f(c, 0, 1, 0) + f(c, 0, 0, -1) + f(c, 0, 0, 1) -
           T(6) * f[c];
}

}  // namespace coppice
