// Kernels that must compute what C++ says, whatever the loop around them does (meaning_conformance_test.cc).
#include "tests/sparse/meaning.h"

#include "coppice/kernel.h"
#include "core/math.h"

using namespace coppice;

[[gnu::noinline]] static void fill_apart(float* v, float x) { v[0] = x, v[1] = 2 * x, v[2] = 3 * x; }

// By number: pick, tally, point, middle, a vector of Eigen's, and a variable whose address another function
// is given.
static float compute(int which, float x, int axis) {
  switch (which) {
    case 0:
      return meaning::pick(x, axis);
    case 1:
      return meaning::tally(x, axis);
    case 2:
      return meaning::point(x, axis);
    case 3:
      return meaning::middle(x, axis);
    case 4:
      return Vec3f(x, 2 * x, 3 * x)[axis];
    default:
      float v[3];
      fill_apart(v, x);
      return v[axis];
  }
}

template <int which>
struct Own {  // every loop's kernel
  template <class Place>
  static void run(const Read<float>& x, const Read<int>& axis, const Write<float>& o, const Place& place) {
    o[place] = compute(which, x[place], axis[place]);
  }
  static void run(const float* x, const int* axis, float* o, Item i) { o[i] = compute(which, x[i], axis[i]); }
};

#define COPPICE_TEST_OWN(which)                                                             \
  COPPICE_KERNEL(own_item##which, const float* x, const int* axis, float* o, Item i)        \
  { Own<which>::run(x, axis, o, i); }                                                       \
  COPPICE_KERNEL(own_cell##which, Read<float> x, Read<int> axis, Write<float> o, Cell1 c)   \
  { Own<which>::run(x, axis, o, c); }                                                       \
  COPPICE_KERNEL(own_entry##which, Read<float> x, Read<int> axis, Write<float> o, Entry1 e) \
  { Own<which>::run(x, axis, o, e); }
COPPICE_TEST_OWN(0)
COPPICE_TEST_OWN(1)
COPPICE_TEST_OWN(2)
COPPICE_TEST_OWN(3)
COPPICE_TEST_OWN(4)
COPPICE_TEST_OWN(5)

COPPICE_KERNEL(set_own_cells, Grow<float> x, Grow<int> axis, Item i, const float* from, const int* which,
               int step)
{
  x.set(i, {static_cast<int>(i) * step}, from[i]);
  axis.set(i, {static_cast<int>(i) * step}, which[i]);
}
COPPICE_KERNEL(append_own, Append<float> x, Append<int> axis, Item i, const float* from, const int* which)
{
  if (i != 0) return;  // one item, for the sake of the order
  for (int k = 0; k < 64; ++k) {
    const int64_t at = x.append(i, {0}, from[k]);
    axis.set(i, {0}, at, which[k]);
  }
}

// Strided accesses with one between them that may be to the same place.
COPPICE_KERNEL(through_pairs, meaning::Pair* pairs, const float* same, const int* axis, const float* x,
               float* o, Item i)
{ o[i] = meaning::through(pairs[i], same + 2 * i.index + axis[i], x[i]); }
COPPICE_KERNEL(scale_and_pick, Vec3f* v, const int* axis, float* o, Item i)
{
  v[i][0] = 2 * o[i];
  v[i][1] = 3 * o[i];
  o[i] = v[i][axis[i]];
  v[i][2] = o[i] + 1;
}

COPPICE_KERNEL(write_number_at, Grow<int> n, Item i, const int* coords)
{ n.set(i, {coords[i]}, static_cast<int>(i) + 1); }
// The same by indices of 32 bits, of which the vectoriser assumes that they do not wrap.
COPPICE_KERNEL(through_pairs_by_int, meaning::Pair* a, const meaning::Pair* same, float* o, Item i)
{
  const int k = i.index;
  a[k].first = 5;
  const float seen = same[k].first;
  a[k].second = 6;
  o[i] = seen + same[k].second;
}
COPPICE_KERNEL(through_pairs_by_cell, meaning::Pair* a, const meaning::Pair* same, Write<float> o, Cell1 c)
{
  const uint32_t k = c.coord(0);
  a[k].first = 5;
  const float seen = same[k].first;
  a[k].second = 6;
  o[c] = seen + same[k].second;
}
COPPICE_KERNEL(chain_by_cell, Write<float> o, Cell2 c, float* p)
{
  const int own = (c.coord(0) * 8 + c.coord(1)) * 4;  // four values of the buffer are this cell's
  for (int k = 1; k < 4; ++k) p[own + k] = p[own + k - 1] + 1;
  o[c] = p[own + 3];
}
// An item's own arrays by way of a pointer that all items compute alike, and an argument that is changed.
COPPICE_KERNEL(own_by_choice, const float* x, const int* axis, const int* flag, float* o, Item i)
{
  float a[3], b[3];
  float* const p = flag[0] > 3 ? a : b;
  p[0] = x[i], p[1] = 2 * x[i], p[2] = 3 * x[i];
  o[i] = p[axis[i]];
}
COPPICE_KERNEL(own_aligned, const float* x, const int* axis, float* o, Item i)
{
  char raw[80];
  auto* const p = reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(raw) + 63) & ~uintptr_t{63});
  p[0] = x[i], p[1] = 2 * x[i], p[2] = 3 * x[i];
  o[i] = p[axis[i]];
}
COPPICE_KERNEL(own_argument, const float* x, const int* axis, meaning::Scratch s, float* o, Item i)
{
  s.v[0] = x[i], s.v[1] = 2 * x[i], s.v[2] = 3 * x[i];
  o[i] = s.v[axis[i]];
}
COPPICE_KERNEL(own_mutable, const float* x, const int* axis, const meaning::Scratch& s, float* o, Item i)
{
  s.v[0] = x[i], s.v[1] = 2 * x[i], s.v[2] = 3 * x[i];
  o[i] = s.v[axis[i]];
}
// An argument that nothing constructs by default.
COPPICE_KERNEL(add_measure, meaning::Measure m, float* o, Item i)
{ o[i] = m.value + static_cast<float>(i); }

// These must not run for an inactive cell, whose values are zero.
COPPICE_KERNEL(double_up, Read<int> n, Write<int> o, Cell1 c)
{
  int rounds = 0;
  for (int v = n[c]; v < 1000; v *= 2) ++rounds;
  o[c] = rounds;
}
static constexpr int kTable[64] = {7, 9, 11, 13};
COPPICE_KERNEL(look_up, Read<int> n, Write<int> o, Cell1 c)
{ o[c] = kTable[(n[c] - 1) * 1000000 % 3]; }
// Where nothing is active, n is 0.
COPPICE_KERNEL(look_far, Read<int> n, Write<int> o, Cell1 c)
{ o[c] = kTable[n[c] == 0 ? 1 << 28 : n[c] % 3]; }
COPPICE_KERNEL(write_by_address, Write<int> o, Cell1 c, uint64_t counts)
{
  reinterpret_cast<int*>(counts)[c.coord(0)] += 1;
  o[c] = 1;
}
COPPICE_KERNEL(stop_where_zero, Read<int> n, Write<int> o, Cell1 c)
{
  if (n[c] == 0) __builtin_unreachable();
  o[c] = 100 / n[c];
}
struct Offsets {
  int by[3];
};
// These are proved to be harmless: constant rounds, tables in bounds, arguments by reference, a reach of
// constants.
COPPICE_KERNEL(smooth_all, Read<float, Star<2>> x, Read<int> n, Write<float> o, Cell1 c,
               const Offsets& offsets)
{
  constexpr float kWeights[5] = {1, 4, 6, 4, 1};
  float sum = offsets.by[1] * n[c];
  for (int d = -2; d <= 2; ++d) sum += kWeights[d + 2] * x(c, d);
  o[c] = sum;
}
// Bounds that hold only where C++ defines the value: not for an inactive cell's zero.
COPPICE_KERNEL(count_zeros, Read<int> n, Write<int> o, Cell1 c)
{
  int own[32] = {};
  own[__builtin_ctz(n[c])] = 7;
  own[31 - __builtin_clz(n[c])] += 5;
  int sum = 0;
  for (int k = 0; k < 32; ++k) sum += own[k] * (k + 1);
  o[c] = sum;
}
COPPICE_KERNEL(count_down, Read<int> n, Write<int> o, Cell1 c)
{
  const uint32_t rounds = static_cast<uint32_t>(n[c]) - 1;
  uint32_t s = 1;
  for (uint32_t k = 0; k < rounds; ++k) s = (s * 1664525u) ^ (s >> 7);
  o[c] = static_cast<int>(s & 0xffff);
}
