// Kernels that fill fields for tests of volumes.
#include <cmath>

#include "coppice/kernel.h"
#include "core/half.h"
using namespace coppice;

COPPICE_KERNEL(set_volume_cells_1, Grow<float> field, Item i, const int* coords, const float* values)
{ field.set(i, {coords[3 * i]}, values[i]); }
COPPICE_KERNEL(set_volume_cells_2, Grow<float> field, Item i, const int* coords, const float* values)
{ field.set(i, {coords[3 * i], coords[3 * i + 1]}, values[i]); }
COPPICE_KERNEL(set_volume_cells_3, Grow<float> field, Item i, const int* coords, const float* values)
{ field.set(i, {coords[3 * i], coords[3 * i + 1], coords[3 * i + 2]}, values[i]); }
COPPICE_KERNEL(set_volume_numbers, Grow<Half> half, Grow<double> twice, Grow<int> whole, Item i,
               const int* coords, const float* values)
{
  const int x = coords[3 * i], y = coords[3 * i + 1], z = coords[3 * i + 2];
  half.set(i, {x, y, z}, values[i] / 2);
  twice.set(i, {x, y, z}, 2.0 * values[i]);
  whole.set(i, {x, y, z}, static_cast<int>(values[i]));
}

// A shell with waves: 1 in its middle, 0 at half its width from there.
COPPICE_KERNEL(set_shell, Write<float> field, Cell3 cell, float centre, float radius, float half_width)
{
  const float x = cell.coord(0) + 0.5f - centre, y = cell.coord(1) + 0.5f - centre,
              z = cell.coord(2) + 0.5f - centre;
  const float r = std::sqrt(x * x + y * y + z * z);
  const float wave = radius * 0.04f * std::sin(x * 7.5f / radius) * std::cos(y * 9 / radius);
  const float at = 1 - std::fabs(r - radius - wave) / half_width;
  field[cell] = at > 0 ? at : 0;
}
