// Right sides and solutions of tests of the Poisson solver.
#include "coppice/kernel.h"

#include <math.h>

using namespace coppice;

namespace {
constexpr double kPi = 3.14159265358979323846;
}

// u = sin(pi x) sin(pi y) sin(pi z) on the unit cube, whose boundary lies at the centres of cells -1 and n.
COPPICE_KERNEL(set_cube_source, Write<double> f, Cell3 c, double h)
{
  f[c] = 3 * kPi * kPi * sin(kPi * h * (c.coord(0) + 1)) * sin(kPi * h * (c.coord(1) + 1)) *
         sin(kPi * h * (c.coord(2) + 1));
}
// u = 1 / |x| between two spheres, given in the cells around: harmonic, so that they alone are its source.
COPPICE_KERNEL(set_shell_source, Write<double> f, Cell3 c, double h, double inner, double outer)
{
  const auto radius = [&](int dx, int dy, int dz) {
    const double x = h * (c.coord(0) + dx + 0.5), y = h * (c.coord(1) + dy + 0.5),
                 z = h * (c.coord(2) + dz + 0.5);
    return sqrt(x * x + y * y + z * z);
  };
  double sum = 0;
  for (int axis = 0; axis < 3; ++axis) {
    for (int side = -1; side <= 1; side += 2) {
      const double r = radius(axis == 0 ? side : 0, axis == 1 ? side : 0, axis == 2 ? side : 0);
      if (r <= inner || r >= outer) sum += 1 / r;
    }
  }
  f[c] = sum / (h * h);
}
COPPICE_KERNEL(set_random_source, Write<double> f, Cell3 c, uint32_t seed)
{
  uint32_t s = seed + 7919u * static_cast<uint32_t>(c.coord(0)) +
               104729u * static_cast<uint32_t>(c.coord(1)) + 1299709u * static_cast<uint32_t>(c.coord(2));
  for (int k = 0; k < 3; ++k) s = s * 1664525u + 1013904223u, s ^= s >> 15;
  f[c] = static_cast<double>(s) / 4294967296.0 - 0.5;
}
COPPICE_KERNEL(scale_source, Update<double> f, Cell3 c, double factor)
{ f[c] *= factor; }
