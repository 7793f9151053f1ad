// The stencil over a plain array (see array_stencil.h). COPPICE_ARRAY_STENCIL names the
// function that this object adds.
#include "benchmarks/peers/array_stencil.h"

#if !defined(COPPICE_ARRAY_STENCIL) || !defined(COPPICE_ARRAY_STENCIL_NAME) || \
    !defined(COPPICE_ARRAY_STENCIL_PORTABLE)
#error "compiled with a name, see benchmarks/CMakeLists.txt"
#endif

namespace coppice::bench {
namespace {

inline float stencil(const float* now, ptrdiff_t i, ptrdiff_t sx, ptrdiff_t sy, float k) {
  const float m = now[i];
  return m + k * (now[i - sx] + now[i + sx] + now[i - sy] + now[i + sy] + now[i - 1] + now[i + 1] - 6.0f * m);
}

void cube(const float* __restrict now, float* __restrict next, ptrdiff_t first, int n, ArrayShape shape,
          float k) {
  const ptrdiff_t sx = shape.sx, sy = shape.sy;
  for (int x = 0; x < n; ++x) {
    for (int y = 0; y < n; ++y) {
      const ptrdiff_t row = first + x * sx + y * sy;
      for (int z = 0; z < n; ++z) next[row + z] = stencil(now, row + z, sx, sy, k);
    }
  }
}

void list(const float* __restrict now, float* __restrict next, const int32_t* __restrict index, size_t count,
          ArrayShape shape, float k) {
  const ptrdiff_t sx = shape.sx, sy = shape.sy;
  for (size_t i = 0; i < count; ++i) next[index[i]] = stencil(now, index[i], sx, sy, k);
}

void runs(const float* __restrict now, float* __restrict next, const Run* __restrict all, size_t count,
          ArrayShape shape, float k) {
  const ptrdiff_t sx = shape.sx, sy = shape.sy;
  for (size_t r = 0; r < count; ++r) {
    const ptrdiff_t end = all[r].start + all[r].length;
    for (ptrdiff_t i = all[r].start; i < end; ++i) next[i] = stencil(now, i, sx, sy, k);
  }
}

}  // namespace

ArrayStencil COPPICE_ARRAY_STENCIL();
ArrayStencil COPPICE_ARRAY_STENCIL() {
  return {COPPICE_ARRAY_STENCIL_NAME, COPPICE_ARRAY_STENCIL_PORTABLE != 0, cube, list, runs};
}

}  // namespace coppice::bench
