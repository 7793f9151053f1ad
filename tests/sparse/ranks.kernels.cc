// Kernels of the tests of trees over ranks.
#include "coppice/kernel.h"

using namespace coppice;

struct Smooth {
  Read<float, Box<1>> now;
  Write<float> next;
};
COPPICE_KERNEL(smooth2, Smooth f, Cell2 cell, float k)
{
  float sum = 0;
  for (int x = -1; x <= 1; ++x)
    for (int y = -1; y <= 1; ++y) sum += f.now(cell, x, y);
  f.next[cell] = (1 - k) * f.now[cell] + k * sum / 9;
}
struct Smooth3 {
  Read<float, Star<2>> now;
  Write<float> next;
};
COPPICE_KERNEL(smooth3, Smooth3 f, Cell3 cell, float k)
{
  f.next[cell] =
      (1 - 6 * k) * f.now[cell] + k * (f.now(cell, -2, 0, 0) + f.now(cell, 2, 0, 0) + f.now(cell, 0, -2, 0) +
                                       f.now(cell, 0, 2, 0) + f.now(cell, 0, 0, -2) + f.now(cell, 0, 0, 2));
}
// Sets n x n cells around the origin, from every rank.
COPPICE_KERNEL(start2, Grow<float> u, Item i, int n, int x0, int y0)
{
  const int x = static_cast<int>(i.index) / n, y = static_cast<int>(i.index) % n;
  u.set(i, {x0 + x, y0 + y}, static_cast<float>(hash_u32(7, i.index) & 1023u));
}
COPPICE_KERNEL(start3, Grow<float> u, Item i, int n, int at)
{
  const int x = static_cast<int>(i.index) / (n * n), y = static_cast<int>(i.index) / n % n,
            z = static_cast<int>(i.index) % n;
  u.set(i, {at + x, at + y, at + z}, static_cast<float>(hash_u32(7, i.index) & 1023u));
}
// Activates the cell that lies so far from each warm one, where it is within -half and half - 1.
COPPICE_KERNEL(spread2, Read<float> u, Topology leaf, Cell2 cell, int dx, int dy, int half)
{
  const int x = cell.coord(0) + dx, y = cell.coord(1) + dy;
  if (u[cell] > 1 && x >= -half && x < half && y >= -half && y < half) leaf.activate(cell, {x, y});
}
COPPICE_KERNEL(spread3, Read<float> u, Topology leaf, Cell3 cell, int dx, int dy, int dz)
{
  if (u[cell] > 1) leaf.activate(cell, {cell.coord(0) + dx, cell.coord(1) + dy, cell.coord(2) + dz});
}
COPPICE_KERNEL(age2, Update<int> age, Cell2 cell, int by)
{ age[cell] += by + cell.coord(1); }
COPPICE_KERNEL(mix2, Read<float> u, Read<int> age, Write<float> next, Cell2 cell)
{ next[cell] = u[cell] + static_cast<float>(age[cell]); }

COPPICE_KERNEL(number2, Grow<int> n, Item i)
{ n.set(i, {static_cast<int>(i.index) / 8, static_cast<int>(i.index) % 8}, static_cast<int>(i.index)); }

// Particles at whole cells, which each rank has some of: `at` is i32[n][2].
COPPICE_KERNEL(cover2, Topology leaf, Item i, const int* at, int half)
{
  for (int x = -1; x <= 1; ++x)
    for (int y = -1; y <= 1; ++y) {
      const int cx = at[2 * i.index] + x, cy = at[2 * i.index + 1] + y;
      if (cx >= -half && cx < half && cy >= -half && cy < half) leaf.activate(i, {cx, cy});
    }
}
struct Momentum {
  double x, y;
};
COPPICE_KERNEL(scatter2, Accumulate<int> count, Accumulate<Momentum> momentum, Item i, const int* at,
               int half)
{
  for (int x = -1; x <= 1; ++x)
    for (int y = -1; y <= 1; ++y) {
      const int cx = at[2 * i.index] + x, cy = at[2 * i.index + 1] + y;
      if (cx < -half || cx >= half || cy < -half || cy >= half) continue;
      count.add(i, {cx, cy}, 2 - x * x + 3 * y);
      momentum.add(i, {cx, cy}, {0.25 * x, 0.5 * y});
    }
}
// Every particle goes on by what is around it.
COPPICE_KERNEL(step2, Read<int> count, Item i, int* at, int half)
{
  int sum = 0;
  for (int x = -1; x <= 1; ++x)
    for (int y = -1; y <= 1; ++y) {
      const int cx = at[2 * i.index] + x, cy = at[2 * i.index + 1] + y;
      if (cx >= -half && cx < half && cy >= -half && cy < half) sum = 3 * sum + count.at(i, {cx, cy});
    }
  const int x = at[2 * i.index] + sum % 5 - 2, y = at[2 * i.index + 1] + sum / 5 % 5 - 2;
  at[2 * i.index] = x < -half ? half - 1 : x >= half ? -half : x;
  at[2 * i.index + 1] = y < -half ? half - 1 : y >= half ? -half : y;
}
COPPICE_KERNEL(empty2, Write<int> count, Write<Momentum> momentum, Cell2 cell)
{ count[cell] = 0, momentum[cell] = {0, 0}; }
COPPICE_KERNEL(owners2, Item i, const int* at, device::RankMap map, unsigned* owners)
{
  const int cell[2] = {at[2 * i.index], at[2 * i.index + 1]};
  owners[i.index] = map.owner<2>(cell);
}

COPPICE_KERNEL(fill2, Grow<int> u, Item i, int half)
{
  const int n = 2 * half;
  u.set(i, {static_cast<int>(i.index) / n - half, static_cast<int>(i.index) % n - half},
        static_cast<int>(hash_u32(3, i.index) & 7u));
}
// Gives to the cells around, of which all are active.
COPPICE_KERNEL(give2, Read<int> from, Accumulate<int, Box<2>> to, Cell2 cell, int half)
{
  for (int x = -2; x <= 2; ++x)
    for (int y = -2; y <= 2; ++y) {
      const int cx = cell.coord(0) + x, cy = cell.coord(1) + y;
      if (cx >= -half && cx < half && cy >= -half && cy < half)
        to.add(cell, {x, y}, from[cell] * (3 * x + y));
    }
}
// Reads the first cells of the blocks around.
COPPICE_KERNEL(around2, Read<int> from, Write<int> to, Block2 block)
{
  int sum = 0;
  for (int x = -1; x <= 1; ++x)
    for (int y = -1; y <= 1; ++y) sum = (7 * sum + from.neighbour_data(block, {x, y})[5]) % 1009;
  for (int i = 0; i < 16; ++i) to.data(block)[i] = (sum + i * from.data(block)[i]) % 1009;
}

// Trees over ranks refuse these.
struct Mixed {
  int n;
  float sum;
};
COPPICE_KERNEL(add_mixed2, Accumulate<Mixed> u, Item i)
{ u.add(i, {static_cast<int>(i.index), 0}, {1, 1.0f}); }
COPPICE_KERNEL(give_far2, Accumulate<float, Star<9>> u, Cell2 cell)
{ u.add(cell, {9, 0}, 1.0f); }
COPPICE_KERNEL(set_own2, Grow<float> u, Item i)
{ u.set(i, {static_cast<int>(i.index), 0}, 1.0f); }
COPPICE_KERNEL(add_range2, Accumulate<float> u, Item i)
{ u.add(i, {static_cast<int>(i.index), 0}, 1.0f); }
COPPICE_KERNEL(sum_elsewhere2, Read<float> u, Grow<float> sum, Cell2 cell)
{ sum.add(cell, {0, 0}, u[cell]); }
COPPICE_KERNEL(read_anywhere2, Read<float> u, Write<float> next, Cell2 cell)
{ next[cell] = u.at(cell, {0, 0}); }
COPPICE_KERNEL(store_anywhere2, Grow<float> u, Cell2 cell)
{ u.set(cell, {cell.coord(0) + 1, cell.coord(1)}, 1.0f); }
COPPICE_KERNEL(deactivate2, Topology leaf, Cell2 cell)
{ leaf.deactivate(cell, {cell.coord(0), cell.coord(1)}); }
COPPICE_KERNEL(test2, Topology leaf, Write<float> next, Cell2 cell)
{ next[cell] = leaf.is_active(cell, {cell.coord(0) + 1, cell.coord(1)}) ? 1.0f : 0.0f; }
COPPICE_KERNEL(read_range2, Read<float> u, Item i, float* out)
{ out[i.index] = u.at(i, {static_cast<int>(i.index), 0}); }
struct Far {
  Read<float, Star<9>> now;
  Write<float> next;
};
COPPICE_KERNEL(far2, Far f, Cell2 cell)
{ f.next[cell] = f.now(cell, 9, 0); }

// Launches of trees over ranks are given in parts.
COPPICE_KERNEL(noise2, Smooth f, Cell2 cell, float k)
{
  Random random(cell);
  f.next[cell] = k * (f.now(cell, -1, 0) + f.now(cell, 0, 1)) + random.uniform<float>();
}
COPPICE_KERNEL(halve2, Update<float> now, Cell2 cell)
{ now[cell] *= 0.5f; }
// Says that it has begun.
COPPICE_KERNEL(smooth_told2, Smooth f, Cell2 cell, unsigned* begun)
{
  f.next[cell] = f.now(cell, -1, -1) + f.now(cell, 1, 1);
  __atomic_store_n(begun, 1u, __ATOMIC_RELAXED);
}
// Note the turn of each block, on one thread; the second ones read around their own.
COPPICE_KERNEL(turns_of_stores2, Write<float> now, Block2 block, unsigned* turns)
{
  now.data(block)[0] = 1;
  turns[1 + block.number] = ++turns[0];
}
COPPICE_KERNEL(turns_of_reads2, Read<float> now, Write<float> next, Block2 block, unsigned* turns)
{
  next.data(block)[0] = now.neighbour_data(block, {1, 0})[0];
  turns[1 + block.number] = ++turns[0];
}
// Adds outside of the domain at its end.
COPPICE_KERNEL(smooth_and_add2, Smooth f, Accumulate<float, Box<1>> sum, Cell2 cell)
{
  f.next[cell] = f.now(cell, -1, -1) + f.now(cell, 1, 1);
  sum.add(cell, {1, 0}, 1.0f);
}

// Where it fails, which is an assertion's, it has stored all the same.
COPPICE_KERNEL(store_or_fail2, Write<float> u, Block2 block, unsigned fails, float value)
{
  for (int i = 0; i < 16; ++i) u.data(block)[i] = value + static_cast<float>(i);
  COPPICE_ASSERT(block, fails == 0 || block.coord(0) < 60 || block.coord(1) < 60);
}
COPPICE_KERNEL(beside2, Read<float> now, Write<float> next, Block2 block, int dx, int dy)
{ next.data(block)[0] = now.neighbour_data(block, {dx, dy})[0]; }
COPPICE_KERNEL(add_to_own2, Accumulate<float, Box<1>> sum, Cell2 cell)
{ sum.add(cell, {0, 0}, 1.0f); }
struct ReadTwo {
  Read<float, Box<1>> a, b;
  Write<float> c;
};
COPPICE_KERNEL(read_two2, ReadTwo f, Cell2 cell)
{ f.c[cell] = f.a(cell, 1, 1) + f.b(cell, -1, -1); }
struct StoreTwo {
  Update<float> a, b;
};
COPPICE_KERNEL(store_two2, StoreTwo f, Cell2 cell)
{ f.a[cell] += 1, f.b[cell] += 2; }
