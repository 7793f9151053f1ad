// Every pair of things that a kernel may do to its fields, in one launch (matrix_conformance_test.cc).
#include "coppice/kernel.h"

using namespace coppice;

// One macro each: the argument's type, and what cell c does with it. `home` is the cell's coordinate.
#define DO_read(a) v += a[c]
#define DO_write(a) a[c] = home + 1
#define DO_update(a) a[c] += home + 1
#define DO_sum(a) a.add(c, {0}, home + 1)
#define DO_set(a) a.set(c, {home * kMatrixWidth}, home + 1)
#define DO_append(a) a.append(c, {home}, home + 1)
#define DO_activate(a) a.activate(c, {home})
#define DO_deactivate(a) a.deactivate(c, {kMatrixFirstGone + home})
#define DO_test(a) v += a.is_active(c, {kMatrixFirstGone + home})
#define TYPE_read Read<int>
#define TYPE_write Write<int>
#define TYPE_update Update<int>
#define TYPE_sum Accumulate<int>
#define TYPE_set Grow<int>
#define TYPE_append Append<int>
#define TYPE_activate Topology
#define TYPE_deactivate Topology
#define TYPE_test Topology

static constexpr int kMatrixWidth = 1024, kMatrixFirstGone = 1000;

#define PAIR(one, other)                                                                        \
  COPPICE_KERNEL(matrix_##one##_##other, TYPE_##one a, TYPE_##other b, Write<int> out, Cell1 c) \
  {                                                                                             \
    [[maybe_unused]] const int home = c.coord(0);                                               \
    int v = 0;                                                                                  \
    DO_##one(a);                                                                                \
    DO_##other(b);                                                                              \
    out[c] = v;                                                                                 \
  }
#define ROW(one)    \
  PAIR(one, read)   \
  PAIR(one, write)  \
  PAIR(one, update) \
  PAIR(one, sum) PAIR(one, set) PAIR(one, append) PAIR(one, activate) PAIR(one, deactivate) PAIR(one, test)
ROW(read)
ROW(write)
ROW(update)
ROW(sum)
ROW(set)
ROW(append)
ROW(activate)
ROW(deactivate)
ROW(test)
