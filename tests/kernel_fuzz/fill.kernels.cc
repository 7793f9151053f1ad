// Values into fields, from arrays over the tree's domain.
#include "tests/kernel_fuzz/fill.h"

#include "coppice/kernel.h"

using namespace coppice;

#define FUZZ_FILL(BITS, D)                                                                                   \
  COPPICE_KERNEL(fill_##BITS##_##D, Write<uint##BITS##_t> field, Cell##D cell, const uint##BITS##_t* values, \
                 FuzzBox box)                                                                                \
  {                                                                                                          \
    const Coord c = cell.coord();                                                                            \
    field[cell] = values[box.index(c.x, c.y, c.z)];                                                          \
  }
#define FUZZ_FILLS(D) FUZZ_FILL(8, D) FUZZ_FILL(16, D) FUZZ_FILL(32, D) FUZZ_FILL(64, D)
FUZZ_FILLS(1)
FUZZ_FILLS(2)
FUZZ_FILLS(3)

// A list per item; `lengths[i]` elements of `values` from `firsts[i]` on, at coordinates 3 i of `coords`.
#define FUZZ_LIST(BITS, D, ...)                                                                     \
  COPPICE_KERNEL(list_##BITS##_##D, Append<uint##BITS##_t> field, Item i, const int32_t* coords,    \
                 const int32_t* firsts, const int32_t* lengths, const uint##BITS##_t* values)       \
  {                                                                                                 \
    const int32_t* c = coords + 3 * i;                                                              \
    for (int32_t e = 0; e < lengths[i]; ++e) field.set(i, {__VA_ARGS__}, e, values[firsts[i] + e]); \
  }
#define FUZZ_LISTS(D, ...)     \
  FUZZ_LIST(8, D, __VA_ARGS__) \
  FUZZ_LIST(16, D, __VA_ARGS__) FUZZ_LIST(32, D, __VA_ARGS__) FUZZ_LIST(64, D, __VA_ARGS__)
FUZZ_LISTS(1, c[2])
FUZZ_LISTS(2, c[1], c[2])
FUZZ_LISTS(3, c[0], c[1], c[2])
