// Kernels of tests of tiles: what stencils gather and scatter through them, beside the same by tree walks.
#include "coppice/kernel.h"

using namespace coppice;

template <int D>
using Offset = int32_t[D];

// Calls visit(d) for the offsets of a reach in D dimensions.
template <class Reach, int D, class Visit>
COPPICE_INLINE void each_offset(Visit&& visit) {
  constexpr int r = Reach::kRadius;
  for (int x = D > 2 ? -r : 0; x <= (D > 2 ? r : 0); ++x) {
    for (int y = D > 1 ? -r : 0; y <= (D > 1 ? r : 0); ++y) {
      for (int z = -r; z <= r; ++z) {
        if (Reach::kStar && (x != 0) + (y != 0) + (z != 0) > 1) continue;
        if constexpr (D == 1)
          visit(Offset<1>{z});
        else if constexpr (D == 2)
          visit(Offset<2>{y, z});
        else
          visit(Offset<3>{x, y, z});
      }
    }
  }
}

template <class T, int D>
COPPICE_INLINE T weight_of(const Cell<D>& cell, const Offset<D>& d) {
  uint32_t hash = 17;
  for (int a = 0; a < D; ++a) hash = hash * 31 + static_cast<uint32_t>(cell.coord(a) * 7 + d[a] * 5 + 40);
  return static_cast<T>(hash % 1000);
}
template <int D>
COPPICE_INLINE void sum_coord(Offset<D>& at, const Cell<D>& cell, const Offset<D>& d) {
  for (int a = 0; a < D; ++a) at[a] = cell.coord(a) + d[a];
}

template <class T, int D>
COPPICE_INLINE void number(const Write<T>& x, const Cell<D>& cell) {
  x[cell] = weight_of<T, D>(cell, Offset<D>{}) + 1;
}
COPPICE_KERNEL(number1, Write<int> x, Cell1 c)
{ number(x, c); }
COPPICE_KERNEL(number2, Write<int> x, Cell2 c)
{ number(x, c); }
COPPICE_KERNEL(number3, Write<int> x, Cell3 c)
{ number(x, c); }
COPPICE_KERNEL(number_wide3, Write<double> x, Cell3 c)
{ number(x, c); }

// Counts the cells within the reach that read otherwise than by a walk.
template <class T, class Reach, int D>
COPPICE_INLINE void compare(const Read<T, Reach>& x, const Read<T>& same, const Cell<D>& cell,
                            uint32_t* wrong) {
  each_offset<Reach, D>([&](const Offset<D>& d) {
    T near;
    if constexpr (D == 1)
      near = x(cell, d[0]);
    else if constexpr (D == 2)
      near = x(cell, d[0], d[1]);
    else
      near = x(cell, d[0], d[1], d[2]);
    Offset<D> at;
    sum_coord<D>(at, cell, d);
    if (near != same.at(cell, at)) coppice_fetch_add_u32(wrong, 1);
  });
}
COPPICE_KERNEL(gather1, Read<int, Box<3>> x, Read<int> same, Cell1 c, uint32_t* wrong)
{ compare(x, same, c, wrong); }
COPPICE_KERNEL(gather2, Read<int, Box<2>> x, Read<int> same, Cell2 c, uint32_t* wrong)
{ compare(x, same, c, wrong); }
COPPICE_KERNEL(gather3, Read<int, Box<1>> x, Read<int> same, Cell3 c, uint32_t* wrong)
{ compare(x, same, c, wrong); }
COPPICE_KERNEL(gather_wide3, Read<double, Box<1>> x, Read<double> same, Cell3 c, uint32_t* wrong)
{ compare(x, same, c, wrong); }
// Two fields with two reaches, and one that is written.
COPPICE_KERNEL(gather_two3, Read<int, Star<2>> x, Read<int, Box<1>> y, Read<int> same_x, Read<int> same_y,
               Write<int> z, Cell3 c, uint32_t* wrong)
{
  compare(x, same_x, c, wrong), compare(y, same_y, c, wrong);
  z[c] = x(c, 0, 0, -2) + y(c, 1, 1, 1);
}

// Returns whether all cells of a box around a cell are active.
template <int R, int D>
COPPICE_INLINE void mark(const Topology& leaf, const Write<int>& inner, const Cell<D>& cell) {
  int all = 1;
  each_offset<Box<R>, D>([&](const Offset<D>& d) {
    Offset<D> at;
    sum_coord<D>(at, cell, d);
    all = all && leaf.is_active(cell, at);
  });
  inner[cell] = all;
}
COPPICE_KERNEL(mark1, Topology leaf, Write<int> inner, Cell1 c)
{ mark<3>(leaf, inner, c); }
COPPICE_KERNEL(mark2, Topology leaf, Write<int> inner, Cell2 c)
{ mark<2>(leaf, inner, c); }
COPPICE_KERNEL(mark3, Topology leaf, Write<int> inner, Cell3 c)
{ mark<1>(leaf, inner, c); }

template <class T, class Reach, int D>
COPPICE_INLINE void scatter(const Accumulate<T, Reach>& tiled, const Accumulate<T>& plain,
                            const Read<int>& inner, const Cell<D>& cell) {
  if (inner[cell] == 0) return;
  each_offset<Reach, D>([&](const Offset<D>& d) {
    const T v = weight_of<T, D>(cell, d);
    Offset<D> at;
    sum_coord<D>(at, cell, d);
    tiled.add(cell, d, v);
    plain.add(cell, at, v);
  });
}
COPPICE_KERNEL(scatter1, Accumulate<int, Box<3>> tiled, Accumulate<int> plain, Read<int> inner, Cell1 c)
{ scatter(tiled, plain, inner, c); }
COPPICE_KERNEL(scatter2, Accumulate<int, Star<2>> tiled, Accumulate<int> plain, Read<int> inner, Cell2 c)
{ scatter(tiled, plain, inner, c); }
COPPICE_KERNEL(scatter3, Accumulate<int, Box<1>> tiled, Accumulate<int> plain, Read<int> inner, Cell3 c)
{ scatter(tiled, plain, inner, c); }
COPPICE_KERNEL(scatter_u32, Accumulate<uint32_t, Box<1>> tiled, Accumulate<uint32_t> plain, Read<int> inner,
               Cell2 c)
{ scatter(tiled, plain, inner, c); }
COPPICE_KERNEL(scatter_i64, Accumulate<int64_t, Box<1>> tiled, Accumulate<int64_t> plain, Read<int> inner,
               Cell2 c)
{ scatter(tiled, plain, inner, c); }
COPPICE_KERNEL(scatter_u64, Accumulate<uint64_t, Box<1>> tiled, Accumulate<uint64_t> plain, Read<int> inner,
               Cell2 c)
{ scatter(tiled, plain, inner, c); }
COPPICE_KERNEL(scatter_f32, Accumulate<float, Box<1>> tiled, Accumulate<float> plain, Read<int> inner,
               Cell2 c)
{ scatter(tiled, plain, inner, c); }
COPPICE_KERNEL(scatter_f64, Accumulate<double, Box<1>> tiled, Accumulate<double> plain, Read<int> inner,
               Cell2 c)
{ scatter(tiled, plain, inner, c); }
// Gathers and scatters in one launch.
COPPICE_KERNEL(gather_and_scatter2, Read<int, Star<1>> x, Accumulate<int, Star<1>> tiled,
               Accumulate<int> plain, Read<int> inner, Cell2 c)
{
  if (inner[c] == 0) return;
  const int v = x(c, -1, 0) + 3 * x(c, 0, 1);
  tiled.add(c, {1, 0}, v), tiled.add(c, {0, -1}, -v), tiled.add(c, {0, 0}, 2);
  const int i = c.coord(0), j = c.coord(1);
  plain.add(c, {i + 1, j}, v), plain.add(c, {i, j - 1}, -v), plain.add(c, {i, j}, 2);
}

// The cell at `from` adds `value` and then `more` at an offset.
COPPICE_KERNEL(add_from2, Accumulate<int, Star<1>> x, Cell2 c, const int* from, int dx, int dy, int value,
               int more)
{
  if (c.coord(0) != from[0] || c.coord(1) != from[1]) return;
  x.add(c, {dx, dy}, value);
  x.add(c, {dx, dy}, more);
}
