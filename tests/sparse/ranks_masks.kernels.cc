// Kernels of the tests of bitmasked nodes over ranks, for 1 to 3 axes.
#include "coppice/kernel.h"

using namespace coppice;

// The cells of a cube, and which of them are inside of the domain: [low, high) along each axis.
struct MaskCube {
  int at[3], size;
  int low[3], high[3];
};
template <int D>
COPPICE_INLINE bool is_inside(const MaskCube& cube, const int (&coord)[D]) {
  bool is_inside = true;
  for (int a = 0; a < D; ++a) is_inside = is_inside && coord[a] >= cube.low[a] && coord[a] < cube.high[a];
  return is_inside;
}

// Calls visit(offset) for the cells around one, itself included.
template <int D, class Visit>
COPPICE_INLINE void each_around(Visit visit) {
  for (int i = 0; i < (D == 1 ? 3 : D == 2 ? 9 : 27); ++i) {
    int d[D];
    for (int a = 0, rest = i; a < D; ++a, rest /= 3) d[a] = rest % 3 - 1;
    visit(d);
  }
}
template <int D, class Reader>
COPPICE_INLINE auto value_at(const Reader& f, const Cell<D>& cell, const int (&d)[D]) {
  if constexpr (D == 1) return f(cell, d[0]);
  if constexpr (D == 2) return f(cell, d[0], d[1]);
  if constexpr (D == 3) return f(cell, d[0], d[1], d[2]);
}

// Sets some of a cube's cells, from every rank.
template <int D>
COPPICE_INLINE void set_some(Grow<float> u, Item i, MaskCube cube, unsigned seed) {
  int coord[D];
  int rest = static_cast<int>(i.index);
  for (int a = 0; a < D; ++a, rest /= cube.size) coord[a] = cube.at[a] + rest % cube.size;
  const unsigned draw = hash_u32(seed, i.index);
  if ((draw & 3u) == 0 && is_inside(cube, coord)) u.set(i, coord, static_cast<float>(draw >> 3 & 1023u));
}
COPPICE_KERNEL_OF(set_some_1d, set_some<1>)
COPPICE_KERNEL_OF(set_some_2d, set_some<2>)
COPPICE_KERNEL_OF(set_some_3d, set_some<3>)

// Activates cells that each rank has some of: `at` is i32[n][D].
template <int D>
COPPICE_INLINE void cover_some(Topology leaf, Item i, const int* at, MaskCube cube) {
  each_around<D>([&](const int(&d)[D]) {
    int coord[D];
    for (int a = 0; a < D; ++a) coord[a] = at[D * i.index + a] + d[a];
    if (is_inside(cube, coord)) leaf.activate(i, coord);
  });
}
COPPICE_KERNEL_OF(cover_some_1d, cover_some<1>)
COPPICE_KERNEL_OF(cover_some_2d, cover_some<2>)
COPPICE_KERNEL_OF(cover_some_3d, cover_some<3>)

// Activates the cell that lies at[] from each warm one, in the same or another block.
template <int D>
COPPICE_INLINE void spread_some(Read<float> u, Topology leaf, Cell<D> cell, MaskCube cube) {
  int coord[D];
  for (int a = 0; a < D; ++a) coord[a] = cell.coord(a) + cube.at[a];
  if (u[cell] > 1 && is_inside(cube, coord)) leaf.activate(cell, coord);
}
COPPICE_KERNEL_OF(spread_some_1d, spread_some<1>)
COPPICE_KERNEL_OF(spread_some_2d, spread_some<2>)
COPPICE_KERNEL_OF(spread_some_3d, spread_some<3>)

struct SmoothSome {
  Read<float, Box<1>> now;
  Write<float> next;
};
template <int D>
COPPICE_INLINE void smooth_some(SmoothSome f, Cell<D> cell, float k) {
  float sum = 0;
  each_around<D>([&](const int(&d)[D]) { sum += value_at<D>(f.now, cell, d); });
  f.next[cell] = (1 - k) * f.now[cell] + k * sum / 9;
}
COPPICE_KERNEL_OF(smooth_some_1d, smooth_some<1>)
COPPICE_KERNEL_OF(smooth_some_2d, smooth_some<2>)
COPPICE_KERNEL_OF(smooth_some_3d, smooth_some<3>)

// Marks active cells: who reads a mark knows that there is one.
template <int D>
COPPICE_INLINE void mark_all(Write<int> mark, Update<int> age, Cell<D> cell, int by) {
  mark[cell] = 1;
  age[cell] += by + cell.coord(D - 1);
}
COPPICE_KERNEL_OF(mark_all_1d, mark_all<1>)
COPPICE_KERNEL_OF(mark_all_2d, mark_all<2>)
COPPICE_KERNEL_OF(mark_all_3d, mark_all<3>)

// Gives to the marked cells around: an error where one of them is inactive.
template <int D>
COPPICE_INLINE void give_around(Read<int, Box<1>> mark, Read<float> u, Accumulate<int, Box<1>> to,
                                Cell<D> cell) {
  int n = 0;
  each_around<D>([&](const int(&d)[D]) {
    ++n;
    if (value_at<D>(mark, cell, d) != 0) to.add(cell, d, n * (1 + static_cast<int>(u[cell])));
  });
}
COPPICE_KERNEL_OF(give_around_1d, give_around<1>)
COPPICE_KERNEL_OF(give_around_2d, give_around<2>)
COPPICE_KERNEL_OF(give_around_3d, give_around<3>)

// Sums up the values of the blocks around, inactive cells included, for the marked cells of its own.
template <int D>
COPPICE_INLINE void sum_blocks(Read<int> mark, Read<int> from, Write<int> to, Block<D> block, int n) {
  unsigned sum = 0;
  each_around<D>([&](const int(&d)[D]) {
    for (int k = 0; k < n; ++k) sum = 7 * sum + static_cast<unsigned>(from.neighbour_data(block, d)[k]);
  });
  for (int k = 0; k < n; ++k)
    if (mark.data(block)[k] != 0) to.data(block)[k] = static_cast<int>(sum % 1009u);
}
COPPICE_KERNEL_OF(sum_blocks_1d, sum_blocks<1>)
COPPICE_KERNEL_OF(sum_blocks_2d, sum_blocks<2>)
COPPICE_KERNEL_OF(sum_blocks_3d, sum_blocks<3>)

// Activates a cell and adds to it, which two launches do.
COPPICE_KERNEL(activate_and_add, Topology leaf, Accumulate<int> to, Item i, int at)
{
  leaf.activate(i, {at, at});
  to.add(i, {at, at}, 1);
}
