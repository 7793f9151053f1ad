// Kernels of the tests of reductions.
#include "coppice/kernel.h"
using namespace coppice;

// A field of each type.
struct AllTypes {
  Accumulate<float> f32;
  Accumulate<double> f64;
  Accumulate<int32_t> i32;
  Accumulate<uint32_t> u32;
  Accumulate<int64_t> i64;
  Accumulate<uint64_t> u64;
};
struct AllNumbers {
  double f64;
  int64_t i64;
  uint64_t u64;
  float f32;
  int32_t i32;
  uint32_t u32;
};

COPPICE_INLINE void add_all(const AllTypes& to, const Item& i, const int* c, const AllNumbers& n) {
  const device::Padded from(i);
  to.f32.add(from, {c[0], c[1], c[2]}, n.f32), to.f64.add(from, {c[0], c[1], c[2]}, n.f64);
  to.i32.add(from, {c[0], c[1], c[2]}, n.i32), to.u32.add(from, {c[0], c[1], c[2]}, n.u32);
  to.i64.add(from, {c[0], c[1], c[2]}, n.i64), to.u64.add(from, {c[0], c[1], c[2]}, n.u64);
}
// Item i adds to the cell coords[3 i], ..., which is active; missing leading coordinates are 0.
COPPICE_KERNEL(add_numbers, AllTypes a, AllTypes b, Item i, const int* coords, const AllNumbers* to_a,
               const AllNumbers* to_b)
{
  add_all(a, i, coords + 3 * i.index, to_a[i.index]);
  add_all(b, i, coords + 3 * i.index, to_b[i.index]);
}
COPPICE_KERNEL(add_floats, Accumulate<float> x, Item i, const int* coords, const float* values)
{
  x.add(device::Padded(i), {coords[3 * i.index], coords[3 * i.index + 1], coords[3 * i.index + 2]},
        values[i.index]);
}
COPPICE_KERNEL(add_doubles, Accumulate<double> x, Item i, const int* coords, const double* values)
{
  x.add(device::Padded(i), {coords[3 * i.index], coords[3 * i.index + 1], coords[3 * i.index + 2]},
        values[i.index]);
}

// Divides what is there by the sum of all.
COPPICE_KERNEL(divide_by_sum, Update<float> x, Cell2 c, const double* sum)
{ x[c] = static_cast<float>(x[c] / *sum); }
// Activates the leaf behind the last one of row 0, where the fields' sum has the number of cells.
COPPICE_KERNEL(grow_a_leaf, Grow<float> x, Item i, const uint64_t* cells)
{ x.set(i, {0, static_cast<int>(*cells / 8)}, 2.0f); }
COPPICE_KERNEL(fill_numbers, Item i, View<float> values)
{ values[i] = static_cast<float>(i.index + 1); }
COPPICE_KERNEL(store_whole, Write<float> field, Cell2 c)
{ field[c] = static_cast<float>(c.coord(0) * 8 + c.coord(1)); }
