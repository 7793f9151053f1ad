// Kernels of tests of sums of vectors and structs, of atomic operations, and of sums that activate.
#include "coppice/kernel.h"
#include "core/math.h"
using namespace coppice;

struct NodeSums {
  float mass;
  Vec2f momentum;
  std::array<double, 2> moments;
  int count;
};
// Floats in aligned groups of four, of which not all are there.
struct alignas(16) ThreeFloats {
  Vec2f momentum;
  float mass;
};
struct alignas(16) FourFloats {
  Vec4f all;
};
struct alignas(32) FiveFloats {  // with gaps between members and behind them
  float mass;
  alignas(8) Vec2f momentum;
  std::array<float, 2> moments;
};

// Several items meet in each cell.
COPPICE_KERNEL(add_vectors, Accumulate<Vec3f> sum, Item i, int cells)
{ sum.add(i, {static_cast<int>(i % cells)}, Vec3f(1, 2, static_cast<float>(i / cells))); }
COPPICE_KERNEL(add_structs, Accumulate<NodeSums> sum, Item i, int cells)
{
  const float x = static_cast<float>(i / cells);
  sum.add(i, {static_cast<int>(i % cells)}, {0.5f, Vec2f(x, -x), {x, 2 * x}, 3});
}
COPPICE_KERNEL(add_three_floats, Accumulate<ThreeFloats> sum, Item i, int cells)
{
  const float x = static_cast<float>(i / cells);
  sum.add(i, {static_cast<int>(i % cells)}, {Vec2f(x, -x), 0.5f});
}
COPPICE_KERNEL(add_five_floats, Accumulate<FiveFloats> sum, Item i, int cells)
{
  const float x = static_cast<float>(i / cells);
  sum.add(i, {static_cast<int>(i % cells)}, {0.5f, Vec2f(x, -x), {2 * x, 1}});
}
COPPICE_KERNEL(add_four_floats, Accumulate<FourFloats> sum, Item i, int cells)
{
  const float x = static_cast<float>(i / cells);
  sum.add(i, {static_cast<int>(i % cells)}, {Vec4f(1, x, -x, 2)});
}
// Items add from no times to `most` times, to cells that differ from one to the next.
struct ManySums {
  Accumulate<float> one;
  Accumulate<Vec3f> three;
  Accumulate<Vec4f> four;
  Accumulate<ThreeFloats> of_four;
};
COPPICE_KERNEL(add_many, ManySums sums, Item i, int cells, int most, float unit)
{
  const int times = static_cast<int>(i * 7919 % (most + 1));
  for (int k = 0; k < times; ++k) {
    const int cell = static_cast<int>((i * 31 + k * k) % cells);
    const float x = unit * static_cast<float>(1 + (i + k) % 5);
    if (k % 4 != 3) sums.one.add(i, {cell}, x);
    if (k % 3 != 2) sums.three.add(i, {cell}, Vec3f(x, -x, 2 * x));
    sums.four.add(i, {cell}, Vec4f(x, 1, 2, 3 * x));
    if (k % 5 != 1) sums.of_four.add(i, {cell}, {Vec2f(-x, x), 1});
  }
}
COPPICE_KERNEL(add_structs_near2, Accumulate<NodeSums, Box<1>> sum, Cell2 c)
{
  for (int dx = -1; dx <= 1; ++dx)
    for (int dy = -1; dy <= 1; ++dy)
      sum.add(c, {dx, dy}, {1, Vec2f(dx, dy), {static_cast<double>(c.coord(0)), 0.5}, 1});
}
// Adds where nothing was active.
COPPICE_KERNEL(grow_sums2, Grow<NodeSums> sum, Item i, int n)
{
  const int x = static_cast<int>(i % n), y = static_cast<int>(i / n % n);
  sum.add(i, {x * 5, y * 3}, {1, Vec2f(x, y), {1, 2}, 1});
}
COPPICE_KERNEL(grow_and_set2, Grow<int> sum, Grow<int> other, Item i, int n)
{
  const int x = static_cast<int>(i % n), y = static_cast<int>(i / n % n);
  sum.add(i, {x * 5, y * 3}, 1);
  other.set(i, {x * 5, y * 3}, x);
}

template <class T>
COPPICE_INLINE void take_extremes(const Atomic<T>& least, const Atomic<T>& most, const Item& i,
                                  const T* values, int cells) {
  least.min(i, {static_cast<int>(i % cells)}, values[i.index]);
  most.max(i, {static_cast<int>(i % cells)}, values[i.index]);
}
COPPICE_KERNEL(extremes_f32, Atomic<float> least, Atomic<float> most, Item i, const float* v, int cells)
{ take_extremes(least, most, i, v, cells); }
COPPICE_KERNEL(extremes_f64, Atomic<double> least, Atomic<double> most, Item i, const double* v, int cells)
{ take_extremes(least, most, i, v, cells); }
COPPICE_KERNEL(extremes_i32, Atomic<int32_t> least, Atomic<int32_t> most, Item i, const int32_t* v, int cells)
{ take_extremes(least, most, i, v, cells); }
COPPICE_KERNEL(extremes_u32, Atomic<uint32_t> least, Atomic<uint32_t> most, Item i, const uint32_t* v,
               int cells)
{ take_extremes(least, most, i, v, cells); }
COPPICE_KERNEL(extremes_i64, Atomic<int64_t> least, Atomic<int64_t> most, Item i, const int64_t* v, int cells)
{ take_extremes(least, most, i, v, cells); }
COPPICE_KERNEL(extremes_u64, Atomic<uint64_t> least, Atomic<uint64_t> most, Item i, const uint64_t* v,
               int cells)
{ take_extremes(least, most, i, v, cells); }

struct Bits {
  Atomic<uint32_t> any, all, odd;
  Atomic<uint64_t> wide;
};
COPPICE_KERNEL(collect_bits, Bits bits, Item i)
{
  bits.any.bit_or(i, {0}, 1u << (i.index % 20));
  bits.all.bit_and(i, {0}, ~(1u << (i.index % 20)));
  bits.odd.bit_xor(i, {0}, 1u << (i.index % 20));
  bits.wide.bit_or(i, {0}, uint64_t{1} << (i.index % 60));
}
// Each item gets another number, and each number stands where its item is.
COPPICE_KERNEL(draw_numbers, Atomic<int> next, Item i, int* drawn)
{ drawn[i.index] = next.add(i, {0}, 1); }
// All but one find that somebody was there before.
COPPICE_KERNEL(claim, Atomic<float> owner, Item i, float nobody, int cells, int* won)
{
  const float before =
      owner.compare_exchange(i, {static_cast<int>(i % cells)}, nobody, static_cast<float>(i.index));
  if (before == nobody) won[i.index] = 1;
}
// An item is given what another one has left: nothing is lost.
COPPICE_KERNEL(pass_on, Atomic<int64_t> hand, Item i, int64_t* given)
{ given[i.index] = hand.exchange(i, {0}, i.index + 1); }
COPPICE_KERNEL(read_by_atomic, Atomic<int> from, Item i, int* to)
{ to[i.index] = from.at(i, {static_cast<int>(i.index)}); }
// Decides by what an atomic operation gave it which cells it activates.
COPPICE_KERNEL(activate_drawn, Atomic<int> next, Topology leaf, Item i)
{ leaf.activate(i, {next.add(i, {0}, 1) * 4}); }
// Counts, and activates by the item alone.
COPPICE_KERNEL(count_and_activate, Atomic<int> next, Topology leaf, Item i)
{
  next.add(i, {0}, 1);
  leaf.activate(i, {static_cast<int>(i.index) * 4});
}

COPPICE_KERNEL(tell_active, Read<int> field, Item2 i, int* is_active, int n)
{ is_active[(i.coord(0) + 1) * n + i.coord(1) + 1] = field.is_active(i, {i.coord(0), i.coord(1)}) ? 1 : 0; }
COPPICE_KERNEL(set_where_active, Read<int> field, Grow<int> other, Item2 i)
{
  if (field.is_active(i, {i.coord(0), i.coord(1)})) other.set(i, {i.coord(0), i.coord(1)}, 1);
}

COPPICE_KERNEL(number_plane, Grow<int> at, Item2 i, int64_t* number)
{
  at.set(i, {i.coord(0), i.coord(1)}, static_cast<int>(i.index) + 1);
  number[i.index] = i.coord(0) * 1000 + i.coord(1);
}
COPPICE_KERNEL(number_room, Item3 i, int64_t* number)
{ number[i.index] = (i.coord(0) * int64_t{1000} + i.coord(1)) * 1000 + i.coord(2); }
COPPICE_KERNEL(draw_in_plane, Item2 i, uint32_t* drawn)
{
  Random random(i);
  drawn[i.index] = random.u32();
}
COPPICE_KERNEL(print_vectors, Item2 i, Vec3f v)
{
  Eigen::Matrix<int, 2, 2> m;
  m << i.coord(0), 1, 2, i.coord(1);
  if (i.index == 5) print(i, "{:.2f} and {} of {:+}", v, m, Eigen::Matrix<double, 1, 2>(1.5, -2));
}
