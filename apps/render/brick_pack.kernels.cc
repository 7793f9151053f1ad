// Kernels that pack a field into bricks: where its containers are, which bricks have values, and the values.
//
// Each has three forms, for trees of 1, 2 and 3 dimensions.
#include "apps/render/brick_layout.h"
#include "coppice/kernel.h"

using namespace coppice;
using namespace coppice::render;

// Cells from `low` up to, not including, `high`: where the tree may be read. Axes that it does not have: 0 to
// 1.
struct BrickDomain {
  int32_t low[3], high[3];
};

namespace {

constexpr uint32_t kInfinity = 0x7f800000u;
constexpr uint32_t kByBlock = 2;  // a launch over blocks says it

template <int D>
COPPICE_INLINE float value_at(const Read<float>& field, const Item& i, int x, int y, int z) {
  if constexpr (D == 1) return field.at(i, {x});
  if constexpr (D == 2) return field.at(i, {x, y});
  if constexpr (D == 3) return field.at(i, {x, y, z});
}

COPPICE_INLINE bool is_in(const BrickDomain& domain, int axis, int32_t at) {
  return at >= domain.low[axis] && at < domain.high[axis];
}

// The values of a brick's row (x, y) along the last of three axes. The walks of neighbouring cells have most
// steps in common, which the compiler sees in the loop that has no branches.
template <int D>
COPPICE_INLINE void read_row(const Read<float>& field, const Item& i, const BrickDomain& domain, int32_t x,
                             int32_t y, int32_t z, float* row) {
  for (int k = 0; k < kBrickSide; ++k) row[k] = 0;
  if (!is_in(domain, 0, x) || (D >= 2 && !is_in(domain, 1, y))) return;
  if constexpr (D < 3) {
    const float value = value_at<D>(field, i, x, y, 0);
    for (int k = 0; k < kBrickSide; ++k) row[k] = value;
  } else if (is_in(domain, 2, z) && z < domain.high[2] - kBrickCells) {
#pragma clang loop unroll(full)
    for (int k = 0; k < kBrickSide; ++k) row[k] = value_at<3>(field, i, x, y, z + k);
  } else {
    for (int k = 0; k < kBrickSide; ++k)
      if (is_in(domain, 2, z + k)) row[k] = value_at<3>(field, i, x, y, z + k);
  }
}

// Rows along axes that the tree does not have are equal.
template <int D>
constexpr int kRowsX = kBrickSide;
template <int D>
constexpr int kRowsY = D == 1 ? 1 : kBrickSide;

COPPICE_INLINE CellCoord origin_of(const CellCoord& brick) {
  return {brick.x & -kBrickCells, brick.y & -kBrickCells, brick.z & -kBrickCells};  // tells the compiler
}

template <int D>
COPPICE_INLINE bool has_values(const Read<float>& field, const Item& i, const CellCoord& brick,
                               const BrickDomain& domain) {
  const CellCoord o = origin_of(brick);
  for (int x = 0; x < kRowsX<D>; ++x) {
    for (int y = 0; y < kRowsY<D>; ++y) {
      float row[kBrickSide];
      read_row<D>(field, i, domain, o.x + x, o.y + y, o.z, row);
      uint32_t bits = 0;
      for (int k = 0; k < kBrickSide; ++k) bits |= __builtin_bit_cast(uint32_t, row[k]) << 1;  // -0 is zero
      if (bits != 0) return true;
    }
  }
  return false;
}

constexpr uint64_t scrambled(uint64_t i) {
  i = (i + 1) * 0x9e3779b97f4a7c15u;
  i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9u;
  i = (i ^ (i >> 27)) * 0x94d049bb133111ebu;
  return (i ^ (i >> 31)) | 1;
}
struct HashFactors {
  uint64_t of[kBrickValues] = {};
  constexpr HashFactors() {
    for (int i = 0; i < kBrickValues; ++i) of[i] = scrambled(static_cast<uint64_t>(i));
  }
};
constexpr HashFactors kFactors;

// The hash is multilinear (Lemire and Kaser, arXiv 1202.4961): its upper half tells two bricks apart but for
// one pair in 2^32. Floats are compared as integers in the same order, which is the same on all devices and
// vectorises.
COPPICE_INLINE BrickStats stats_of(const float* values) {
  uint64_t hash = 0;
  int32_t low = 0x7fffffff, high = -0x7fffffff - 1;
  for (int i = 0; i < kBrickValues; ++i) {
    const auto bits = __builtin_bit_cast(int32_t, values[i]);
    const int32_t key = bits ^ ((bits >> 31) & 0x7fffffff);
    low = key < low ? key : low;
    high = key > high ? key : high;
    hash += static_cast<uint32_t>(bits) * kFactors.of[i];
  }
  const auto infinity = static_cast<int32_t>(kInfinity);
  if (high >= infinity || low <= (infinity ^ -1)) low = infinity ^ -1, high = infinity;
  low ^= (low >> 31) & 0x7fffffff, high ^= (high >> 31) & 0x7fffffff;
  return {__builtin_bit_cast(float, low), __builtin_bit_cast(float, high), hash};
}

COPPICE_INLINE void store(float* to, float v) { *to = v; }
COPPICE_INLINE void store(uint16_t* to, float v) {
  const float most = 65504;
  const bool is_finite = (__builtin_bit_cast(uint32_t, v) & kInfinity) != kInfinity;
  if (is_finite) v = v > most ? most : v < -most ? -most : v;
  *to = __builtin_bit_cast(uint16_t, static_cast<_Float16>(v));
}

template <class T>
COPPICE_INLINE void store_brick(const float* values, int64_t brick, BrickStats* stats, T* out) {
  stats[brick] = stats_of(values);
  T* const to = out + brick * kBrickValues;
  for (int v = 0; v < kBrickValues; ++v) store(to + v, values[v]);
}

template <int D, class T>
COPPICE_INLINE void pack(const Read<float>& field, const Item& i, const CellCoord* bricks,
                         const uint32_t* by_block, const BrickDomain& domain, BrickStats* stats, T* out) {
  if (by_block[i] != 0) return;
  float values[kBrickValues];
  const CellCoord o = origin_of(bricks[i]);
  for (int x = 0; x < kRowsX<D>; ++x) {
    float* const plane = values + x * kBrickSide * kBrickSide;
    for (int y = 0; y < kRowsY<D>; ++y)
      read_row<D>(field, i, domain, o.x + x, o.y + y, o.z, plane + y * kBrickSide);
    for (int v = kRowsY<D> * kBrickSide; v < kBrickSide * kBrickSide; ++v) plane[v] = plane[0];
  }
  store_brick(values, i, stats, out);
}

// ---- leaves of 8 x 8 x 8 cells that are where a brick is: its values are the leaf's and those of seven
// neighbours

struct Leaves {
  Values<const float> of[8];  // itself, and those one ahead on axes z (1), y (2) and x (4)
};
COPPICE_INLINE Leaves leaves_ahead(const Read<float>& field, const Block3& block) {
  return {{field.data(block), field.neighbour_data(block, {0, 0, 1}), field.neighbour_data(block, {0, 1, 0}),
           field.neighbour_data(block, {0, 1, 1}), field.neighbour_data(block, {1, 0, 0}),
           field.neighbour_data(block, {1, 0, 1}), field.neighbour_data(block, {1, 1, 0}),
           field.neighbour_data(block, {1, 1, 1})}};
}
COPPICE_INLINE void read_row(const Leaves& leaves, int x, int y, float* row) {
  const int leaf = (x / kBrickCells) * 4 + (y / kBrickCells) * 2;
  const int first = ((x % kBrickCells) * kBrickCells + y % kBrickCells) * kBrickCells;
  for (int k = 0; k < kBrickCells; ++k) row[k] = leaves.of[leaf][first + k];
  row[kBrickCells] = leaves.of[leaf + 1][first];
}

// Returns whether one of a leaf's first cells on each axis has a value. Whole planes are one run.
COPPICE_INLINE bool has_values(const Values<const float>& leaf, int nx, int ny, int nz) {
  constexpr int kPlane = kBrickCells * kBrickCells;
  uint32_t bits = 0;
  if (ny == kBrickCells && nz == kBrickCells) {
    for (int i = 0; i < nx * kPlane; ++i) bits |= __builtin_bit_cast(uint32_t, leaf[i]) << 1;
    return bits != 0;
  }
  for (int x = 0; x < nx; ++x)
    for (int y = 0; y < ny; ++y)
      for (int z = 0; z < nz; ++z)
        bits |= __builtin_bit_cast(uint32_t, leaf[x * kPlane + y * kBrickCells + z]) << 1;
  return bits != 0;
}

template <class T>
COPPICE_INLINE void pack_block(const Read<float>& field, const Block3& block, const int32_t* brick_of,
                               BrickStats* stats, T* out) {
  const int32_t brick = brick_of[block.number];
  if (brick < 0) return;
  float values[kBrickValues];
  const Leaves leaves = leaves_ahead(field, block);
  for (int x = 0; x < kBrickSide; ++x)
    for (int y = 0; y < kBrickSide; ++y) read_row(leaves, x, y, values + (x * kBrickSide + y) * kBrickSide);
  store_brick(values, brick, stats, out);
}

}  // namespace

COPPICE_KERNEL(list_containers_1, Read<float>, Block1 block, CellCoord* first)
{ first[block.number] = {block.coord(0), 0, 0}; }
COPPICE_KERNEL(list_containers_2, Read<float>, Block2 block, CellCoord* first)
{ first[block.number] = {block.coord(0), block.coord(1), 0}; }
COPPICE_KERNEL(list_containers_3, Read<float>, Block3 block, CellCoord* first)
{ first[block.number] = {block.coord(0), block.coord(1), block.coord(2)}; }

COPPICE_KERNEL(find_filled_1, Read<float> field, Item i, const CellCoord* bricks, BrickDomain domain,
               uint32_t* is_filled)
{
  if (is_filled[i] != kByBlock) is_filled[i] = has_values<1>(field, i, bricks[i], domain);
}
COPPICE_KERNEL(find_filled_2, Read<float> field, Item i, const CellCoord* bricks, BrickDomain domain,
               uint32_t* is_filled)
{
  if (is_filled[i] != kByBlock) is_filled[i] = has_values<2>(field, i, bricks[i], domain);
}
COPPICE_KERNEL(find_filled_3, Read<float> field, Item i, const CellCoord* bricks, BrickDomain domain,
               uint32_t* is_filled)
{
  if (is_filled[i] != kByBlock) is_filled[i] = has_values<3>(field, i, bricks[i], domain);
}

#define COPPICE_PACK(dim, suffix, type)                                                         \
  COPPICE_KERNEL(pack_##suffix##_##dim, Read<float> field, Item i, const CellCoord* bricks,     \
                 const uint32_t* by_block, BrickDomain domain, BrickStats* stats, type* values) \
  { pack<dim>(field, i, bricks, by_block, domain, stats, values); }
COPPICE_PACK(1, half, uint16_t)
COPPICE_PACK(2, half, uint16_t)
COPPICE_PACK(3, half, uint16_t)
COPPICE_PACK(1, float, float)
COPPICE_PACK(2, float, float)
COPPICE_PACK(3, float, float)
#undef COPPICE_PACK

COPPICE_KERNEL(find_filled_blocks, Read<float> field, Block3 block, const int32_t* brick_of,
               uint32_t* is_filled)
{
  const Leaves leaves = leaves_ahead(field, block);
  bool is_any = false;
  for (int leaf = 0; leaf < 8 && !is_any; ++leaf)
    is_any = has_values(leaves.of[leaf], (leaf & 4) != 0 ? 1 : kBrickCells, (leaf & 2) != 0 ? 1 : kBrickCells,
                        (leaf & 1) != 0 ? 1 : kBrickCells);
  is_filled[brick_of[block.number]] = is_any;
}
COPPICE_KERNEL(pack_blocks_half, Read<float> field, Block3 block, const int32_t* brick_of, BrickStats* stats,
               uint16_t* values)
{ pack_block(field, block, brick_of, stats, values); }
COPPICE_KERNEL(pack_blocks_float, Read<float> field, Block3 block, const int32_t* brick_of, BrickStats* stats,
               float* values)
{ pack_block(field, block, brick_of, stats, values); }
