// Every pair of roles, on one field: what a cell's two handles do to its value in turns
// (role_table_conformance_test.cc).
#include "coppice/kernel.h"

using namespace coppice;

static int touch(const Read<int>& x, const Cell1& c, int v) { return v + 3 * x[c]; }
static int touch(const Read<int, Star<1>>& x, const Cell1& c, int v) { return v + x[c] + 5 * x(c, 1); }
static int touch(const Write<int>& x, const Cell1& c, int v) {
  x[c] = v + 2;
  return v;
}
static int touch(const Update<int>& x, const Cell1& c, int v) {
  x[c] = 2 * x[c] + v;
  return v;
}
static int touch(const Accumulate<int>& x, const Cell1& c, int v) {
  x.add(c, {c.coord(0)}, v);
  return v + 1;
}
static int touch(const Accumulate<int, Star<1>>& x, const Cell1& c, int v) {
  x.add(c, {0}, v);
  return v + 1;
}
static int touch(const Atomic<int>& x, const Cell1& c, int v) { return x.exchange(c, {c.coord(0)}, v); }
static int touch(const Grow<int>& x, const Cell1& c, int v) {
  x.set(c, {c.coord(0)}, v + 5);
  return v + 1;
}

#define COPPICE_TEST_PAIR(name, first, second)                                                   \
  COPPICE_KERNEL(name, COPPICE_TEST_##first a, COPPICE_TEST_##second b, Write<int> out, Cell1 c) \
  {                                                                                              \
    int v = c.coord(0);                                                                          \
    v = touch(a, c, v);                                                                          \
    v = touch(b, c, v);                                                                          \
    v = touch(a, c, v);                                                                          \
    out[c] = touch(b, c, v);                                                                     \
  }
#define COPPICE_TEST_read Read<int>
#define COPPICE_TEST_reach Read<int, Star<1>>
#define COPPICE_TEST_write Write<int>
#define COPPICE_TEST_update Update<int>
#define COPPICE_TEST_sum Accumulate<int>
#define COPPICE_TEST_tile Accumulate<int, Star<1>>
#define COPPICE_TEST_atomic Atomic<int>
#define COPPICE_TEST_set Grow<int>
#define COPPICE_TEST_ROW(first)                           \
  COPPICE_TEST_PAIR(pair_##first##_read, first, read)     \
  COPPICE_TEST_PAIR(pair_##first##_reach, first, reach)   \
  COPPICE_TEST_PAIR(pair_##first##_write, first, write)   \
  COPPICE_TEST_PAIR(pair_##first##_update, first, update) \
  COPPICE_TEST_PAIR(pair_##first##_sum, first, sum)       \
  COPPICE_TEST_PAIR(pair_##first##_tile, first, tile)     \
  COPPICE_TEST_PAIR(pair_##first##_atomic, first, atomic) \
  COPPICE_TEST_PAIR(pair_##first##_set, first, set)
COPPICE_TEST_ROW(read)
COPPICE_TEST_ROW(reach)
COPPICE_TEST_ROW(write)
COPPICE_TEST_ROW(update)
COPPICE_TEST_ROW(sum)
COPPICE_TEST_ROW(tile)
COPPICE_TEST_ROW(atomic)
COPPICE_TEST_ROW(set)

COPPICE_KERNEL(set_square, Grow<int> x, Item i, int step)
{ x.set(i, {static_cast<int>(i) * step}, static_cast<int>(i * i)); }
// Other cells of a field whose cells are being written.
COPPICE_KERNEL(read_other, Read<int> a, Write<int> b, Cell1 c)
{ b[c] = a.at(c, {c.coord(0) ^ 1}); }
COPPICE_KERNEL(update_from_other, Update<int> b, Read<int> a, Cell1 c)
{ b[c] += a.at(c, {c.coord(0) ^ 1}); }
COPPICE_KERNEL(read_other_block, Read<int> a, Write<int> b, Block1 block)
{ b.data(block)[0] = a.neighbour_data(block, {1})[0]; }
COPPICE_KERNEL(read_other_list, Read<int> a, Write<int> b, Entry1 e)
{ b[e] = a.at(e, {0}, e.index ^ 1); }
COPPICE_KERNEL(append_squares, Append<int> x, Item i)
{ x.append(i, {0}, static_cast<int>(i * i)); }
