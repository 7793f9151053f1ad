// Places say what a kernel is run for: one argument of it, given by the loop. They are Cell, Block,
// BlockTeam, Entry, Item, GridItem and Team.
//
// Device-clean. They share `coord(axis)` or `index`, and handles take them to know where they are used
// from.
#pragma once
#include "sparse/device/lists.h"

namespace coppice {

using device::Coord;

namespace device {

// Says which leaf the loop item of a cell kernel is, and where its values and halo are. Built by loops.h.
struct LeafContext {
  const LaunchBlock* block;
  unsigned char* container;
  const uint32_t* neighbours;
  int32_t origin[kMaxDims];
  unsigned char* read_base[kMaxBindings];  // tiles: the value, or sum, of local cell (0, 0, 0)
  // The outputs of a leaf that blends are here: where the row's buffer would have local cell 0, or where
  // the leaf has it.
  unsigned char* write_base[kMaxBindings];
  unsigned char*
      added_base[kMaxBindings];  // tiles of sums: of local cell (0, 0, 0), whether it has been added to
};

}  // namespace device

// Stands for one active cell of the node that a launch loops over. D dimensions; opaque but for its
// coordinate.
template <int D>
struct Cell {
  static constexpr int kDims = D;
  const device::LeafContext* const context;
  const int32_t i, j, k;  // local coordinate, leading ones 0
  const uint32_t index;   // linear index in the leaf

  COPPICE_HARMLESS Coord coord() const {
    return {context->origin[0] + i, context->origin[1] + j, context->origin[2] + k};
  }
  // Returns its coordinate on one of the D axes, in the order in which a coordinate is written:
  // {cell.coord(0), cell.coord(1)}.
  COPPICE_HARMLESS COPPICE_INLINE int32_t coord(int axis) const {
    const Coord c = coord();
    const int number = 3 - D + axis;  // no array: a variable axis would take stack memory
    return number == 0 ? c.x : number == 1 ? c.y : c.z;
  }
};
using Cell1 = Cell<1>;
using Cell2 = Cell<2>;
using Cell3 = Cell<3>;

// Stands for one container of the node that a launch loops over ("over the blocks of a node"). On a GPU it
// is one thread's, as an Item is.
template <int D>
struct Block {
  static constexpr int kDims = D;
  const LaunchBlock* launch;
  unsigned char* container;
  const uint32_t* neighbours;  // cell numbers of the 3^D surrounding containers, or null
  int32_t origin[device::kMaxDims];
  uint64_t number;  // position in the coordinate-ordered list; over ranks in that of a rank's own
  uint32_t cell;    // the parent pointer node's cell that holds it

  // Returns the coordinate of its first cell, on one of the D axes.
  COPPICE_INLINE int32_t coord(int axis) const { return origin[3 - D + axis]; }
};
using Block1 = Block<1>;
using Block2 = Block<2>;
using Block3 = Block<3>;

// Stands for one container that all threads of a GPU's thread block share, with kBytes of fast memory of
// theirs; on a CPU one thread has it for itself. Writes of the threads are seen by the others after a
// barrier, to which all of them must come.
template <int D, uint32_t kBytes = 0>
struct BlockTeam : Block<D> {
  static_assert(kBytes <= device::kTileBytes, "a thread block has no more fast memory than 48 KiB");
  static constexpr uint32_t kFastBytes = kBytes;
  unsigned char* fast;  // aligned to 16 bytes; what is in it at first is undefined
  COPPICE_INLINE uint32_t lane() const { return coppice_lane(); }  // [0, lanes())
  COPPICE_INLINE uint32_t lanes() const { return coppice_lane_count(); }
  COPPICE_INLINE void barrier() const { coppice_block_barrier(); }
};

// Stands for one item of a range launch.
struct Item {
  const LaunchBlock* launch;
  int64_t index;
  device::WalkMemo* walks = nullptr;  // its thread's
  operator int64_t() const { return index; }
};

// Stands for one item of a range of D dimensions, range({nx, ny}).
template <int D>
struct GridItem {
  static_assert(D == 2 || D == 3, "an item has two or three numbers; a range of one dimension has Items");
  static constexpr int kDims = D;
  const LaunchBlock* launch;
  int64_t index;  // in the range, from 0 on, the last axis fastest
  int32_t at[device::kMaxDims];
  device::WalkMemo* walks = nullptr;  // its thread's

  // Returns its number on one of the D axes.
  COPPICE_INLINE int32_t coord(int axis) const { return at[device::kMaxDims - D + axis]; }
};
using Item2 = GridItem<2>;
using Item3 = GridItem<3>;

namespace device {

// The runtime's own kernels use handles from one of these: they take trees of any number of axes, and
// always give three numbers, missing leading ones 0.
struct Padded {
  static constexpr bool kPadsCoordinates = true;
  COPPICE_INLINE explicit Padded(const Item& i) : launch(i.launch), walks(i.walks) {}
  const LaunchBlock* launch;
  WalkMemo* walks;
};

}  // namespace device

// Stands for one element of a list of the dynamic node that a launch loops over: those that the lists had
// when the launch began.
template <int D>
struct Entry {
  static constexpr int kDims = D;
  const LaunchBlock* launch;
  unsigned char* chunk;
  int32_t origin[device::kMaxDims];  // of its list
  uint32_t slot;                     // its place in the chunk
  uint32_t index;                    // its place in the list

  // Returns the coordinate of its list, on one of the D axes.
  COPPICE_INLINE int32_t coord(int axis) const { return origin[3 - D + axis]; }
};
using Entry1 = Entry<1>;
using Entry2 = Entry<2>;
using Entry3 = Entry<3>;

// Stands for one item of a range launch that all threads of a thread block share; on a CPU one thread has
// it for itself. Writes of the threads are seen by the others after a barrier, to which all of them must
// come.
struct Team {
  const LaunchBlock* launch;
  int64_t index;
  COPPICE_INLINE uint32_t lane() const { return coppice_lane(); }  // [0, lanes())
  COPPICE_INLINE uint32_t lanes() const { return coppice_lane_count(); }
  COPPICE_INLINE void barrier() const { coppice_block_barrier(); }
};

}  // namespace coppice
