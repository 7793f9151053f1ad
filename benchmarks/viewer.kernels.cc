// A wavy shell of values for the viewer's benchmark.
#include <cmath>

#include "coppice/kernel.h"
using namespace coppice;

// 1 on a sphere of the given radius in cells around (centre, centre, centre), falling to 0 at `half_width`
// from it.
COPPICE_KERNEL(set_bench_shell, Write<float> field, Cell3 cell, float centre, float radius, float half_width)
{
  const float x = cell.coord(0) + 0.5f - centre, y = cell.coord(1) + 0.5f - centre,
              z = cell.coord(2) + 0.5f - centre;
  const float r = std::sqrt(x * x + y * y + z * z);
  const float wave = radius * 0.04f * std::sin(x * 7.5f / radius) * std::cos(y * 9 / radius);
  const float at = 1 - std::fabs(r - radius - wave) / half_width;
  field[cell] = at > 0 ? at : 0;
}
