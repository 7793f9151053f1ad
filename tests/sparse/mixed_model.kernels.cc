// Kernels of the mixed model (mixed_model.h): each does several things in one launch, in one to three
// dimensions.
//
// Operations are kNumbers numbers each, `per` of them an item's, in their order. `box` is
// where loops put what they make.
#include "coppice/kernel.h"
#include "tests/sparse/mixed_deeds.h"

using namespace coppice;
using namespace coppice::mixed;

template <int D>
struct At {
  int32_t c[D];
};
template <int D>
COPPICE_INLINE At<D> coord_of(const int* operation) {
  At<D> at;
  for (int d = 0; d < D; ++d) at.c[d] = operation[1 + d];
  return at;
}
// Returns the place of a cell, block or entry.
template <int D, class From>
COPPICE_INLINE At<D> place_of(const From& from, uint32_t salt, const int* box) {
  int key[3] = {0, 0, 0};
  for (int d = 0; d < D; ++d) key[d] = from.coord(d);
  At<D> at;
  for (int d = 0; d < D; ++d) at.c[d] = place_on(d, salt, key, box);
  return at;
}
// Calls visit(operation, its number) for those of an item.
template <class Visit>
COPPICE_INLINE void each_operation(const Item& i, const int* operations, int per, Visit&& visit) {
  for (int n = 0; n < per; ++n) visit(operations + (i.index * per + n) * kNumbers, i.index * per + n);
}

#define IN_ALL_DIMENSIONS(M) M(1) M(2) M(3)

// ---- growth alone: such a launch may be repeated
#define GROW(D)                                                                                             \
  COPPICE_KERNEL(mixed_grow##D, Grow<int> x, Topology inner, Topology other, Item i, const int* operations, \
                 int per)                                                                                   \
  {                                                                                                         \
    each_operation(i, operations, per, [&](const int* o, int64_t) {                                         \
      const At<D> at = coord_of<D>(o);                                                                      \
      if (o[0] == kSet) x.set(i, at.c, o[4]);                                                               \
      if (o[0] == kActivateInner) inner.activate(i, at.c);                                                  \
      if (o[0] == kActivateLeaf) other.activate(i, at.c);                                                   \
    });                                                                                                     \
  }
IN_ALL_DIMENSIONS(GROW)

// ---- effects that must happen once, beside growth: room is made first
#define APPEND(D)                                                                                            \
  COPPICE_KERNEL(mixed_append##D, Append<int> v, Grow<int> x, Item i, const int* operations, int per)        \
  {                                                                                                          \
    each_operation(i, operations, per, [&](const int* o, int64_t) {                                          \
      const At<D> at = coord_of<D>(o);                                                                       \
      if (o[0] == kAppend) v.append(i, at.c, o[4]);                                                          \
      if (o[0] == kSet) x.set(i, at.c, o[4]);                                                                \
    });                                                                                                      \
  }                                                                                                          \
  COPPICE_KERNEL(mixed_count##D, Topology other, Item i, uint32_t salt, int x, int y, int z, int nx, int ny, \
                 int nz, uint32_t* counter)                                                                  \
  {                                                                                                          \
    __atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED);                                                       \
    const int key[3] = {static_cast<int>(i.index), 0, 0}, box[6] = {x, y, z, nx, ny, nz};                    \
    At<D> at;                                                                                                \
    for (int d = 0; d < D; ++d) at.c[d] = place_on(d, salt, key, box);                                       \
    other.activate(i, at.c);                                                                                 \
  }
IN_ALL_DIMENSIONS(APPEND)

#define UPDATE(D)                                                                                      \
  COPPICE_KERNEL(mixed_update##D, Update<int> x, Topology other, Cell##D c, int by, uint32_t salt,     \
                 const int* box)                                                                       \
  {                                                                                                    \
    x[c] += by;                                                                                        \
    other.activate(c, place_of<D>(c, salt, box).c);                                                    \
  }                                                                                                    \
  COPPICE_KERNEL(mixed_copy##D, Read<int> x, Read<int> y, Write<int> next, Topology other, Cell##D c,  \
                 uint32_t salt, const int* box)                                                        \
  {                                                                                                    \
    next[c] = wrapping_sum(wrapping_sum(y[c], x[c]), 1);                                               \
    other.activate(c, place_of<D>(c, salt, box).c);                                                    \
  }                                                                                                    \
  COPPICE_KERNEL(mixed_cells##D, Read<int> x, Append<int> v, Cell##D c, uint32_t salt, const int* box) \
  { v.append(c, place_of<D>(c, salt, box).c, x[c]); }
IN_ALL_DIMENSIONS(UPDATE)

#define SUM(D)                                                                                            \
  COPPICE_KERNEL(mixed_sum##D, Accumulate<int> y, Topology other, Item i, const int* operations, int per) \
  {                                                                                                       \
    each_operation(i, operations, per, [&](const int* o, int64_t) {                                       \
      const At<D> at = coord_of<D>(o);                                                                    \
      if (o[0] == kAdd) y.add(i, at.c, o[4]);                                                             \
      if (o[0] == kActivateLeaf) other.activate(i, at.c);                                                 \
    });                                                                                                   \
  }
IN_ALL_DIMENSIONS(SUM)

#define ENTRIES(D)                                                                                        \
  COPPICE_KERNEL(mixed_entries##D, Read<int> v, Append<int> w, Entry##D e, uint32_t salt, const int* box) \
  { w.append(e, place_of<D>(e, salt, box).c, v[e] + 1); }                                                 \
  COPPICE_KERNEL(mixed_entry_update##D, Update<int> v, Topology other, Entry##D e, int by, uint32_t salt, \
                 const int* box)                                                                          \
  {                                                                                                       \
    v[e] += by;                                                                                           \
    other.activate(e, place_of<D>(e, salt, box).c);                                                       \
  }
IN_ALL_DIMENSIONS(ENTRIES)

#define BLOCKS(D)                                                                                         \
  COPPICE_KERNEL(mixed_blocks##D, Read<int> x, Append<int> w, Block##D b, int cells, uint32_t salt,       \
                 const int* box)                                                                          \
  {                                                                                                       \
    int sum = 0;                                                                                          \
    for (int k = 0; k < cells; ++k) sum = wrapping_sum(sum, x.data(b)[k]);                                \
    w.append(b, place_of<D>(b, salt, box).c, sum);                                                        \
  }                                                                                                       \
  COPPICE_KERNEL(mixed_team##D, Read<int> x, Append<int> w, BlockTeam<D, 64> b, int cells, uint32_t salt, \
                 const int* box)                                                                          \
  {                                                                                                       \
    auto* const sum = reinterpret_cast<uint32_t*>(b.fast);                                                \
    if (b.lane() == 0) *sum = 0;                                                                          \
    b.barrier();                                                                                          \
    for (int k = static_cast<int>(b.lane()); k < cells; k += static_cast<int>(b.lanes()))                 \
      __atomic_fetch_add(sum, static_cast<uint32_t>(x.data(b)[k]), __ATOMIC_RELAXED);                     \
    b.barrier();                                                                                          \
    if (b.lane() == 0) w.append(b, place_of<D>(b, salt, box).c, static_cast<int>(*sum));                  \
  }
IN_ALL_DIMENSIONS(BLOCKS)

// ---- what comes and what goes
#define LISTS(D)                                                                                        \
  COPPICE_KERNEL(mixed_lists##D, Append<int> v, Topology other, Item i, const int* operations, int per, \
                 uint32_t* index, int* read)                                                            \
  {                                                                                                     \
    each_operation(i, operations, per, [&](const int* o, int64_t n) {                                   \
      const At<D> at = coord_of<D>(o);                                                                  \
      if (o[0] == kAppend) index[n] = v.append(i, at.c, o[4]);                                          \
      if (o[0] == kSetElement) v.set(i, at.c, o[4], o[5]);                                              \
      if (o[0] == kClear) v.deactivate(i, at.c);                                                        \
      if (o[0] == kReadList && v.length(i, at.c) > static_cast<uint32_t>(o[4]))                         \
        read[n] = v.at(i, at.c, o[4]);                                                                  \
      if (o[0] == kActivateLeaf) other.activate(i, at.c);                                               \
    });                                                                                                 \
  }
IN_ALL_DIMENSIONS(LISTS)

// Without memory of its own, which could decide what is appended: room is made first.
#define REFILL(D)                                                                        \
  COPPICE_KERNEL(mixed_refill##D, Append<int> v, Item i, const int* operations, int per) \
  {                                                                                      \
    each_operation(i, operations, per, [&](const int* o, int64_t) {                      \
      const At<D> at = coord_of<D>(o);                                                   \
      if (o[0] == kAppend) v.append(i, at.c, o[4]);                                      \
      if (o[0] == kSetElement) v.set(i, at.c, o[4], o[5]);                               \
      if (o[0] == kClear) v.deactivate(i, at.c);                                         \
    });                                                                                  \
  }
IN_ALL_DIMENSIONS(REFILL)

// Three operations each: where from, the cell that goes, where to.
#define MOVE(D)                                                                                              \
  COPPICE_KERNEL(mixed_move##D, Read<int> from, Topology block, Grow<int> to, Item i, const int* operations) \
  {                                                                                                          \
    const int* o = operations + 3 * kNumbers * i.index;                                                      \
    const int value = from.at(i, coord_of<D>(o).c);                                                          \
    block.deactivate(i, coord_of<D>(o + kNumbers).c);                                                        \
    to.set(i, coord_of<D>(o + 2 * kNumbers).c, value + 1);                                                   \
  }
IN_ALL_DIMENSIONS(MOVE)

#define CHURN(D)                                                                                      \
  COPPICE_KERNEL(mixed_churn##D, Grow<int> x, Topology top, Topology inner, Topology leaf, Item i,    \
                 const int* operations, int per)                                                      \
  {                                                                                                   \
    each_operation(i, operations, per, [&](const int* o, int64_t) {                                   \
      const At<D> at = coord_of<D>(o);                                                                \
      if (o[0] == kSet) x.set(i, at.c, o[4]);                                                         \
      if (o[0] == kActivateLeaf) leaf.activate(i, at.c);                                              \
      if (o[0] == kDeactivateTop) top.deactivate(i, at.c);                                            \
      if (o[0] == kDeactivateInner) inner.deactivate(i, at.c);                                        \
      if (o[0] == kDeactivateLeaf) leaf.deactivate(i, at.c);                                          \
    });                                                                                               \
  }                                                                                                   \
  COPPICE_KERNEL(mixed_shrink##D, Append<int> v, Topology top, Topology inner, Topology leaf, Item i, \
                 const int* operations, int per)                                                      \
  {                                                                                                   \
    each_operation(i, operations, per, [&](const int* o, int64_t) {                                   \
      const At<D> at = coord_of<D>(o);                                                                \
      if (o[0] == kClear) v.deactivate(i, at.c);                                                      \
      if (o[0] == kDeactivateTop) top.deactivate(i, at.c);                                            \
      if (o[0] == kDeactivateInner) inner.deactivate(i, at.c);                                        \
      if (o[0] == kDeactivateLeaf) leaf.deactivate(i, at.c);                                          \
    });                                                                                               \
  }
IN_ALL_DIMENSIONS(CHURN)

// ---- launches whose needs only the launch itself can show
// Two operations each: what is asked about, what is activated then.
#define ASK(D)                                                                                          \
  COPPICE_KERNEL(mixed_ask##D, Topology asked, Topology other, Item i, const int* operations,           \
                 uint32_t* counter)                                                                     \
  {                                                                                                     \
    const int* o = operations + 2 * kNumbers * i.index;                                                 \
    if (!asked.is_active(i, coord_of<D>(o).c)) return;                                                  \
    other.activate(i, coord_of<D>(o + kNumbers).c);                                                     \
    __atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED);                                                  \
  }                                                                                                     \
  COPPICE_KERNEL(mixed_draw##D, Topology other, Item i, const int* operations, uint32_t* counter)       \
  {                                                                                                     \
    const uint32_t mine = __atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED);                            \
    other.activate(i, coord_of<D>(operations + uint64_t{mine} * kNumbers).c);                           \
  }                                                                                                     \
  COPPICE_KERNEL(mixed_age##D, Update<int> x, Topology other, Cell##D c, uint32_t salt, const int* box) \
  {                                                                                                     \
    x[c] -= 1;                                                                                          \
    if ((x[c] & 1) != 0) other.activate(c, place_of<D>(c, salt, box).c);                                \
  }
IN_ALL_DIMENSIONS(ASK)

// ---- what is around a cell: any number of cells away, however small containers are
template <class X>
COPPICE_INLINE int value_near(const X& x, const Cell1& c, Coord o) {
  return x(c, o.z);
}
template <class X>
COPPICE_INLINE int value_near(const X& x, const Cell2& c, Coord o) {
  return x(c, o.y, o.z);
}
template <class X>
COPPICE_INLINE int value_near(const X& x, const Cell3& c, Coord o) {
  return x(c, o.x, o.y, o.z);
}
// Calls visit(offset) for cells up to so many away, in all directions or along the axes alone.
template <int D, int kReach, bool kStar, class Visit>
COPPICE_INLINE void each_offset(Visit&& visit) {
  constexpr int kX = D > 2 ? kReach : 0, kY = D > 1 ? kReach : 0;
  COPPICE_UNROLL
  for (int x = -kX; x <= kX; ++x) {
    COPPICE_UNROLL
    for (int y = -kY; y <= kY; ++y) {
      COPPICE_UNROLL
      for (int z = -kReach; z <= kReach; ++z) {
        if (!kStar || (x != 0) + (y != 0) + (z != 0) <= 1) visit(Coord{x, y, z});
      }
    }
  }
}
template <int D, int kReach, bool kStar, class X, class C>
COPPICE_INLINE int sum_near(const X& x, const C& c) {
  int sum = 0;
  each_offset<D, kReach, kStar>([&](Coord o) {
    sum = wrapping_sum(sum, wrapping_product(value_near(x, c, o), weight_of(o.x, o.y, o.z)));
  });
  return sum;
}
#define NEAR(D)                                                                \
  COPPICE_KERNEL(mixed_star##D, Read<int, Star<2>> x, Write<int> y, Cell##D c) \
  { y[c] = sum_near<D, 2, true>(x, c); }                                       \
  COPPICE_KERNEL(mixed_box##D, Read<int, Box<1>> x, Write<int> y, Cell##D c)   \
  { y[c] = sum_near<D, 1, false>(x, c); }
IN_ALL_DIMENSIONS(NEAR)

// To what is active around each cell, and to itself.
#define SCATTER(D)                                                                                    \
  COPPICE_KERNEL(mixed_scatter##D, Read<int> x, Accumulate<int, Box<1>> y, Topology cells, Cell##D c) \
  {                                                                                                   \
    each_offset<D, 1, false>([&](Coord o) {                                                           \
      const int offset[3] = {o.x, o.y, o.z};                                                          \
      At<D> by, at;                                                                                   \
      for (int d = 0; d < D; ++d) by.c[d] = offset[3 - D + d], at.c[d] = c.coord(d) + by.c[d];        \
      if (cells.is_active(c, at.c)) y.add(c, by.c, wrapping_product(x[c], weight_of(o.x, o.y, o.z))); \
    });                                                                                               \
  }
IN_ALL_DIMENSIONS(SCATTER)

// ---- what there is
// A coordinate's number in a box, the last axis fastest.
template <int D, class From>
COPPICE_INLINE int64_t number_in(const From& from, const int* box) {
  int64_t number = 0;
  for (int d = 0; d < D; ++d) number = number * box[3 + d] + from.coord(d) - box[d];
  return number;
}
#define LOOK(D)                                                                                       \
  COPPICE_KERNEL(mixed_active##D, Topology node, Item i, const int* operations, uint8_t* active)      \
  { active[i.index] = node.is_active(i, coord_of<D>(operations + kNumbers * i.index).c); }            \
  COPPICE_KERNEL(mixed_lengths##D, Read<int> v, Item i, const int* operations, uint32_t* lengths)     \
  { lengths[i.index] = v.length(i, coord_of<D>(operations + kNumbers * i.index).c); }                 \
  COPPICE_KERNEL(mixed_elements##D, Read<int> v, Entry##D e, const int* box, const uint32_t* lengths, \
                 const uint32_t* first, int* values, uint32_t* visits)                                \
  {                                                                                                   \
    const int64_t list = number_in<D>(e, box);                                                        \
    if (e.index >= lengths[list]) return;                                                             \
    values[first[list] + e.index] = v[e];                                                             \
    coppice_fetch_add_u32(visits + first[list] + e.index, 1);                                         \
  }                                                                                                   \
  COPPICE_KERNEL(mixed_visits##D, Cell##D c, const int* box, uint32_t* visits)                        \
  { coppice_fetch_add_u32(visits + number_in<D>(c, box), 1); }
IN_ALL_DIMENSIONS(LOOK)
