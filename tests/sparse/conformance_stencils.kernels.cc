// Kernels of the conformance tests of halo tiles: each stencil as a gather within its reach,
// and as a plain walk or a scatter that does not use tiles. A stencil reads zeros beyond the
// domain; a walk must not go there.
#include "coppice/kernel.h"

using namespace coppice;

struct Gather1 {
  Read<int, Star<2>> x;
  Write<int> y;
};
COPPICE_KERNEL(star_sum1, Gather1 g, Cell1 cell)
{
  int sum = 0;
  for (int d = -2; d <= 2; ++d) sum += (d + 3) * g.x(cell, d);
  g.y[cell] = sum;
}
COPPICE_KERNEL(star_scatter1, Read<int> x, Accumulate<int> y, Cell1 cell, int n)
{
  for (int d = -2; d <= 2; ++d) {
    const int at = cell.coord(0) - d;  // what lies d from there
    if (at >= 0 && at < n) y.add(cell, {at}, (d + 3) * x[cell]);
  }
}

COPPICE_KERNEL(box_scatter2, Read<int> x, Accumulate<int> y, Cell2 cell, int n)
{
  for (int i = -2; i <= 2; ++i) {
    for (int j = -2; j <= 2; ++j) {
      const int at[2] = {cell.coord(0) - i, cell.coord(1) - j};
      if (at[0] >= 0 && at[0] < n && at[1] >= 0 && at[1] < n) y.add(cell, at, (5 * i + j) * x[cell]);
    }
  }
}

struct Gather3 {
  Read<int, Box<1>> x;
  Write<int> y;
};
COPPICE_KERNEL(box_sum3, Gather3 g, Cell3 cell)
{
  int sum = 0;
  for (int i = -1; i <= 1; ++i) {
    for (int j = -1; j <= 1; ++j) {
      for (int k = -1; k <= 1; ++k) sum += (9 * i + 3 * j + k) * g.x(cell, i, j, k);
    }
  }
  g.y[cell] = sum;
}
COPPICE_KERNEL(box_scatter3, Read<int> x, Accumulate<int> y, Cell3 cell, int n)
{
  for (int i = -1; i <= 1; ++i) {
    for (int j = -1; j <= 1; ++j) {
      for (int k = -1; k <= 1; ++k) {
        const int at[3] = {cell.coord(0) - i, cell.coord(1) - j, cell.coord(2) - k};
        if (at[0] >= 0 && at[0] < n && at[1] >= 0 && at[1] < n && at[2] >= 0 && at[2] < n)
          y.add(cell, at, (9 * i + 3 * j + k) * x[cell]);
      }
    }
  }
}
COPPICE_KERNEL(set_hashed3, Grow<int> x, Item i, int salt, int n)
{
  const uint32_t r = hash_u32(9, i.index, salt);
  const int at[3] = {static_cast<int>(r % n), static_cast<int>(r / n % n), static_cast<int>(r / n / n % n)};
  x.set(i, at, static_cast<int>(hash_u32(10, (at[0] * n + at[1]) * n + at[2], salt) % 1000));
}
COPPICE_KERNEL(compare2, Read<int> a, Read<int> b, Cell2 cell, uint64_t* different)
{ coppice_fetch_add_u64(different, a[cell] != b[cell]); }
COPPICE_KERNEL(compare3, Read<int> a, Read<int> b, Cell3 cell, uint64_t* different)
{ coppice_fetch_add_u64(different, a[cell] != b[cell]); }

struct ThreeInputs {
  Read<int, Box<1>> a;
  Read<int, Star<2>> b;
  Read<int, Star<1>> c;
  Write<int> y;
};
COPPICE_KERNEL(three_inputs2, ThreeInputs f, Cell2 cell)
{
  f.y[cell] = f.a(cell, -1, 1) + 3 * f.a(cell, 1, 1) + 5 * f.b(cell, 2, 0) + 7 * f.b(cell, 0, -2) +
              11 * f.c(cell, -1, 0) + 13 * f.c(cell, 0, 1);
}
COPPICE_KERNEL(three_inputs_by_walks2, Read<int> a, Read<int> b, Read<int> c, Write<int> y, Cell2 cell,
               const int* domain)
{
  auto at = [&](const auto& x, int i, int j) {
    const int to[2] = {cell.coord(0) + i, cell.coord(1) + j};
    const bool inside = to[0] >= domain[0] && to[0] < domain[1] && to[1] >= domain[2] && to[1] < domain[3];
    return inside ? x.at(cell, to) : 0;
  };
  y[cell] = at(a, -1, 1) + 3 * at(a, 1, 1) + 5 * at(b, 2, 0) + 7 * at(b, 0, -2) + 11 * at(c, -1, 0) +
            13 * at(c, 0, 1);
}

struct Reaching {
  Read<int, Box<4>> x;
  Write<int> y;
};
// Offsets that are computed, in the ways that bounds are usually inferred from; all
// within the reach that is declared.
COPPICE_KERNEL(computed_offsets2, Reaching f, Cell2 cell, int one)
{
  f.y[cell] = f.x(cell, one + 1, -one) + 3 * f.x(cell, one * 4, one - 4) +
              5 * f.x(cell, one << 2, -(one << 1)) + 7 * f.x(cell, -4, cell.coord(1) % 5) +
              11 * f.x(cell, cell.coord(0) / 64 - 4, 0);
}
COPPICE_KERNEL(computed_offsets_by_walks2, Read<int> x, Write<int> y, Cell2 cell, int n)
{
  auto at = [&](int i, int j) {
    const int to[2] = {cell.coord(0) + i, cell.coord(1) + j};
    return to[0] >= 0 && to[0] < n && to[1] >= 0 && to[1] < n ? x.at(cell, to) : 0;
  };
  y[cell] = at(2, -1) + 3 * at(4, -3) + 5 * at(4, -2) + 7 * at(-4, cell.coord(1) % 5) + 11 * at(-4, 0);
}
