// Declares what compiled code knows of trees: layouts baked in by the specializer, and run-time state.
//
// Device-clean. Layouts (NodeLayout, FieldBinding, LoopLayout) are *constants* of a specialized kernel:
// they describe the way from a tree's root to a node, so that a lookup folds to shifts, masks and loads.
// State (TreeState and what hangs on it) lives in device memory; a tree's cells may move between
// operations (sparse/full_ranges.cc).
//
// A pointer node's cell, in its allocator's address range (cell 0 is the ambient element, always zero):
//
//     offset        bytes
//       0             32          CellHeader: coordinate in cells of this node, state, slot
//      32..payload    0..32       padding to the payload's alignment (at most 64)
//      payload        ...         fields placed on the pointer node, then the containers of its children
//                     ...         temporaries of the pointer node
//
// Temporaries (Node::temporary) lie at the end of a container's or chunk's values, and the child with most of
// them is the last, so that a cell's bytes up to AllocatorState::zeroed_bytes are all that is zeroed.
//
// A chunk of a dynamic node's lists, in its allocator's address range:
//
//       0             32          CellHeader: coordinate of the list, state, the slot before it, its place in the list
//      32              4          slot of the next chunk
//      36              4          padding
//      40              8          a first chunk: how many are linked and which of them is the latest (LatestChunk)
//      48..payload    0..16       padding to the payload's alignment (at most 64)
//      payload        ...         values of chunk_cells elements
//
// A container: [slots u32 x n] for pointer, [active u64 x ceil(n/64)][dirty, as many][busy, as many][values]
// for bitmasked (masks.h), [values] for dense, [ListHeader] for dynamic, where values are one array per field
// (struct of arrays) or one struct per cell, then the child containers of each cell. The file is long because
// all structs of a tree's memory are drawn and asserted in one place.
#pragma once
#include <cstddef>
#include <cstdint>

namespace coppice::device {

inline constexpr int kMaxDims = 3;         // dimensions that a loop or lookup can have
inline constexpr int kMaxDepth = 6;        // nodes on the way from the root to a leaf
inline constexpr int kMaxAllocators = 16;  // pointer and dynamic nodes in a tree
inline constexpr int kMaxFieldsPerNode = 16;
inline constexpr int kMaxNodesPerKernel = 12;
inline constexpr int kMaxBindings = 24;            // field handles of a kernel
inline constexpr uint32_t kTileBytes = 48 * 1024;  // private or shared storage for all tiles of a kernel
inline constexpr uint32_t kRowBytes = 4 * 1024;    // private storage for a row of all blended outputs
inline constexpr uint32_t kLocked = ~0u;  // a slot whose cell is being allocated; readers take it for empty
inline constexpr uint32_t kAmbientCell = 0;  // the cell that inactive slots read as

enum class NodeKind : uint32_t { kDense = 0, kBitmasked = 1, kPointer = 2, kDynamic = 3 };

// Describes one level on the way from the root to a node. Coordinates are (x, y, z); a tree of fewer
// dimensions has leading ones.
struct LevelLayout {
  NodeKind kind;
  uint32_t allocator;         // pointer, dynamic: index in TreeState::allocators
  uint32_t extent[kMaxDims];  // cells of this node per dimension
  uint32_t span[kMaxDims];    // coordinates of the path's last node that one cell covers
  uint64_t cell_offset;       // dense, bitmasked: from the container to its first cell's child containers
  uint64_t cell_bytes;        // from one cell to the next (pointer, dynamic: the allocator's cell size)
  uint64_t child_offset;      // from a cell to the next level's container
  uint32_t chunk_cells;       // dynamic: elements of a chunk, a power of two
  uint32_t max_length;        // dynamic: of a list
  uint32_t node;              // its number in the tree
  uint32_t reserved;
};
static_assert(sizeof(LevelLayout) == 72);

// Describes one field's values (or, for an array-of-structs node, all fields of a cell) in a container of
// the node.
struct ValueArray {
  uint64_t offset;  // from the container (pointer: the cell) to the value of cell 0
  uint32_t stride;  // bytes from one cell's value to the next
  uint32_t bytes;   // of one value
};
static_assert(sizeof(ValueArray) == 16);

// Lists the nodes with containers of their own in a node's cells, down to and with pointer and dynamic
// nodes, as a range of TreeState::below. It is empty, unless there is a pointer or dynamic node among
// them, or a bitmasked one below a bitmasked one: otherwise a cell's bytes are all there is.
struct NodesBelow {
  uint32_t first, count;
};

// Describes the way from the root to a node; the last level is the node itself.
struct NodeLayout {
  uint32_t depth;             // levels in use
  uint32_t dims;              // 1, 2 or 3: how many of (x, y, z), from the right, the path has
  int32_t origin[kMaxDims];   // lowest coordinate
  uint32_t domain[kMaxDims];  // coordinates per dimension
  uint64_t root_offset;       // from the root cell to the first level's container
  uint32_t num_arrays;        // value arrays of the node's own fields
  uint32_t id;                // of the node in its tree
  NodesBelow below;
  LevelLayout level[kMaxDepth];
  ValueArray arrays[kMaxFieldsPerNode];
};
static_assert(sizeof(NodeLayout) == 56 + sizeof(LevelLayout) * kMaxDepth + 16 * kMaxFieldsPerNode);

// Says where a field handle's values are.
struct FieldBinding {
  uint32_t node;    // index in coppice_nodes
  uint32_t tree;    // index in LaunchBlock::trees
  uint64_t offset;  // from the container (pointer: the cell) to the value of cell 0
  uint32_t stride;  // bytes from one cell's value to the next
  uint32_t value_bytes;
  uint32_t num_values;  // in a container of its node
  uint32_t access;      // what of a block can be had by pointer, and whether others may be read: flags, below
  // These are for the checks (checks.h), 0 without them: what the launch's uses say that it does to the
  // field, of namespace effect, and how many cells around its own it does it to; kAnyReach: by coordinate.
  uint32_t uses;
  int32_t reach;
  // These are for the checks of temporaries, 0 where nobody looks: the field's bit in its cells' words of
  // marks, the bits of those that share bytes with it, and where these words are, as values are.
  uint32_t mark, sharers;
  uint64_t marks_offset;
  uint32_t marks_stride;
  uint32_t reserved;
};
static_assert(sizeof(FieldBinding) == 64);
inline constexpr int32_t kAnyReach = 0x7fffffff;
inline constexpr uint32_t kBlockData = 1;      // it is on the node looped over, or beside it
inline constexpr uint32_t kNeighbourData = 2;  // ... which lies right below a pointer node
inline constexpr uint32_t kContiguous = 4;     // a container's values lie side by side
inline constexpr uint32_t kChangedHere =
    8;  // another handle changes its own cell's values: others are not to be read
inline constexpr uint32_t kSameCells = 16;  // its node's cells are those of the node looped over
inline constexpr uint32_t kGathers =
    32;  // appends whose indices nobody asks for, to a list that nobody looks at
inline constexpr uint32_t kDelaysSums = 64;  // sums that may be made later in the launch, and rather are

// Returns the words of each of the masks of a bitmasked node's container.
inline constexpr uint64_t kMasks = 3;
constexpr uint64_t mask_words(uint64_t cells) { return (cells + 63) / 64; }

// Returns the smallest multiple of `alignment` that is at least n.
constexpr size_t align_up(size_t n, size_t alignment) { return (n + alignment - 1) / alignment * alignment; }

// Describes the rows of a tile, in elements: from one to the next, and in front of a row's first cell. A
// short row with its ends lies in one cache line, for a load that straddles two takes twice as long.
// Where threads share a leaf, a warp reads several short rows at once: it does so in one go if they lie in
// different banks, which they do at an odd multiple of their length.
struct TileRow {
  int32_t pitch, lead;
};
constexpr TileRow tile_row(int32_t cells, int32_t radius, uint32_t value_bytes, bool is_shared) {
  const int32_t bytes = static_cast<int32_t>(value_bytes);
  if (is_shared && bytes <= 4 && (cells == 4 || cells == 8))
    return {((2 * radius - 1) / (2 * cells) * 2 + 3) * cells, radius};
  if (bytes > 16 || (bytes & (bytes - 1)) != 0) return {cells + 2 * radius, radius};
  const int32_t vector = 16 / bytes, line = 64 / bytes, lead = static_cast<int32_t>(align_up(radius, vector));
  return {static_cast<int32_t>(align_up(lead + cells + radius, line)), lead};
}
// Returns the bytes of the tile around a leaf.
constexpr uint32_t tile_bytes(const int32_t (&extent)[kMaxDims], int32_t has_x, int32_t has_y, int32_t radius,
                              uint32_t value_bytes, bool is_shared) {
  const int64_t rows =
      static_cast<int64_t>(extent[0] + 2 * radius * has_x) * (extent[1] + 2 * radius * has_y);
  const int64_t bytes = rows * tile_row(extent[2], radius, value_bytes, is_shared).pitch * value_bytes;
  return bytes > kTileBytes ? kTileBytes + 1 : static_cast<uint32_t>(align_up(bytes, 64));
}

// Returns the bytes of the tile around a leaf that sums go to: the sums, then a byte each that says
// whether there is one.
constexpr uint32_t sum_tile_bytes(const int32_t (&extent)[kMaxDims], int32_t has_x, int32_t has_y,
                                  int32_t radius, uint32_t value_bytes, bool is_shared) {
  const uint32_t sums = tile_bytes(extent, has_x, has_y, radius, value_bytes, is_shared);
  return sums + static_cast<uint32_t>(align_up(sums / value_bytes, 64));
}

// Describes what a launch loops over.
struct LoopLayout {
  uint32_t node;   // index in coppice_nodes
  uint32_t tree;   // index in LaunchBlock::trees
  uint32_t blend;  // compute all cells of a row, keep the active ones (bitmasked leaf, own-cell writes only)
  uint32_t
      tiled;  // bit i: binding i has a tile: a copy of its values and their halo, or the sums added to them
  uint32_t tabled;  // bit i: binding i has none, but its neighbours are found through the neighbour table
  // A large container is more than one item of a loop over cells, in the order of its cells: item i is piece
  // i % pieces of element i / pieces.
  uint32_t pieces;      // of a container; 0 and 1: it is one item
  uint32_t piece_rows;  // rows of a piece; where it is 1, a row may be several pieces
  uint32_t piece_row_cells;
  // Says where in the launch's arguments the LoopBox of the loop is, plus 1; 0: there is none.
  uint32_t box;
  // Bit i: plain argument i, counted without handles and the loop's own, is a slot's. The slots' addresses,
  // in the order of these arguments, begin at `slots_at` in the launch's arguments.
  uint32_t slots;
  uint32_t slots_at;
  uint32_t is_shared;  // 1: the threads of a thread block share an item, and tiles lie in its fast memory
};
static_assert(sizeof(LoopLayout) == 48);
// Holds the cells that a loop over a box has: coordinates [low, high).
struct LoopBox {
  int32_t low[kMaxDims], high[kMaxDims];
};
static_assert(sizeof(LoopBox) == 24);
inline constexpr uint32_t kPieceCells = 4096;  // of a container with more cells: the most that an item has

// Cuts a container's cells into pieces of whole rows, or a row into pieces whose cells are a multiple of 64
// so that no two of them share a cache line of values; all of about the same size.
constexpr void cut_into_pieces(LoopLayout& loop, const uint32_t (&extent)[kMaxDims]) {
  const uint64_t rows = uint64_t{extent[0]} * extent[1], row_cells = extent[2];
  const auto ceil_div = [](uint64_t n, uint64_t by) { return (n + by - 1) / by; };
  const uint64_t parts = ceil_div(row_cells, kPieceCells);                             // of a row
  const uint64_t groups = parts > 1 ? rows : ceil_div(rows, kPieceCells / row_cells);  // of rows
  loop.piece_rows = static_cast<uint32_t>(ceil_div(rows, groups));
  loop.piece_row_cells =
      static_cast<uint32_t>(parts > 1 ? align_up(ceil_div(row_cells, parts), 64) : row_cells);
  loop.pieces =
      static_cast<uint32_t>(ceil_div(rows, loop.piece_rows) * ceil_div(row_cells, loop.piece_row_cells));
}

enum class CellState : uint32_t {
  kFree = 0,  // never handed out, or collected
  kLive = 1,  // from activation until collection
};

struct CellHeader {
  int32_t coord[kMaxDims];  // (x, y, z) in cells of the pointer node
  CellState state;
  uint32_t* slot;    // the slot that holds this cell
  uint32_t ordinal;  // a chunk's place in its list
  uint32_t count;    // a chunk's elements, as of the last time a loop's list was made
};
static_assert(sizeof(CellHeader) == 32);

// A chunk begins with this. Only a list's first one uses `latest`: what all appends share lies where a
// clear takes it away with the chunk, so nothing that is late can reach the list that comes after
// (lists.h).
struct ChunkHeader {
  CellHeader cell;
  uint32_t next;    // the slot of the chunk after this one
  uint32_t wanted;  // of a list's first chunk: elements that a run that makes room would append
  uint64_t latest;  // a packed LatestChunk; 0: this is the only one
};
inline constexpr uint64_t kNextChunk = offsetof(ChunkHeader, next);
inline constexpr uint64_t kChunkHeaderBytes = sizeof(ChunkHeader);
static_assert(kNextChunk == 32 && offsetof(ChunkHeader, latest) == 40 && kChunkHeaderBytes == 48);

// It grows from chunk to chunk, as its packed form does: the count is the upper half.
struct LatestChunk {
  uint32_t cell;    // of the last one that is linked
  uint32_t linked;  // chunks, that one included
};
constexpr uint64_t pack(LatestChunk c) { return uint64_t{c.linked} << 32 | c.cell; }
constexpr LatestChunk unpack_latest(uint64_t w) {
  return {static_cast<uint32_t>(w), static_cast<uint32_t>(w >> 32)};
}

// A dynamic node's container holds one list, in one word, so that an append takes its index and the list
// that the index counts in together. Its length is the smaller of the elements asked for and those that
// linked chunks hold, so that whatever is counted can be read. Chunks are linked in order.
struct ListHead {
  uint32_t asked;  // elements asked for; says nothing where there is no first chunk
  uint32_t first;  // the slot of the first chunk: 0 none, kLocked one is being made
};
constexpr uint64_t pack(ListHead h) { return uint64_t{h.first} << 32 | h.asked; }
constexpr ListHead unpack_head(uint64_t w) {
  return {static_cast<uint32_t>(w), static_cast<uint32_t>(w >> 32)};
}
constexpr bool has_chunk(ListHead h) { return h.first != kAmbientCell && h.first != kLocked; }
struct ListHeader {
  uint64_t head;  // a packed ListHead
};
static_assert(sizeof(ListHeader) == 8);

// This is one pointer or dynamic node's recycling allocator (NodeManager). Address ranges are committed in
// chunks, so a cell's address is cells + index * cell_bytes, while an operation runs and while `cells`
// stays the same. All counts are in cells. What every walk reads lies in another cache line than what
// every activation writes.
struct alignas(64) AllocatorState {
  unsigned char* cells;
  uint32_t* free_list;      // [capacity] cells ready for use, zeroed
  uint32_t* recycled_list;  // [capacity] cells deactivated since the last collection
  uint64_t cell_bytes;
  uint32_t capacity;       // cells it may hand out, the ambient one included
  uint32_t free_size;      // entries of free_list
  uint32_t recycle_count;  // collection's copy of recycled_size
  uint32_t free_kept;      // collection's count of free entries that were not used
  uint64_t collected;      // cells that collections have made free so far
  uint64_t collections;    // that found any

  alignas(64)
      uint32_t num_cells;  // first cell never handed out; above capacity after a shortage, until collection
  uint32_t free_used;      // entries already taken
  uint32_t recycled_size;
  uint32_t shortage;  // allocations refused since the last growth
  // These count what a run that makes room would do: cells that it would deactivate, cells that it would
  // activate by slots, whether or not they are there, and elements that it would append to lists, where an
  // element set counts with as many as lie before it.
  uint64_t removals, activations, appends;
  uint64_t zeroed_bytes;  // of a cell: what lies behind them are temporaries, which are never zeroed
};
static_assert(sizeof(AllocatorState) == 128 && offsetof(AllocatorState, num_cells) == 64);
// Returns how many cells were ever handed out, the ambient one included.
inline uint32_t handed_out(const AllocatorState& a) {
  return a.num_cells < a.capacity ? a.num_cells : a.capacity;
}

// A thread of a CPU holds these cells for itself, so that it writes to the allocator's counters once for
// many of them (cells.h has the protocol). `at` is the first one's number or, where they are from the free
// list, its place there.
struct CellBatch {
  uint32_t at;
  uint32_t left;       // cells
  uint32_t log2_next;  // how many the next batch has
  bool is_recycled;    // they are from the free list
  bool is_busy;        // a thread is taking the next batch
};
constexpr uint64_t pack(CellBatch b) {
  return b.at | uint64_t{b.left} << 32 | uint64_t{b.log2_next} << 48 | uint64_t{b.is_recycled} << 62 |
         uint64_t{b.is_busy} << 63;
}
constexpr CellBatch unpack_batch(uint64_t w) {
  return {static_cast<uint32_t>(w), static_cast<uint32_t>(w >> 32 & 0xffff),
          static_cast<uint32_t>(w >> 48 & 0xff), (w >> 62 & 1) != 0, (w >> 63) != 0};
}
inline constexpr uint32_t kMostLog2Batch = 6;
inline constexpr uint64_t kBatchBytes =
    64 << 10;  // the most that a batch's cells have, where they are more than one
struct alignas(64) WorkerCells {
  uint64_t batch[kMaxAllocators];  // packed CellBatches
  uint64_t shared_writes;          // how often it wrote to what all workers share, for the benchmarks
};
static_assert(sizeof(WorkerCells) == 192);

struct alignas(64) TreeState {
  unsigned char* root;        // the root cell
  unsigned char* ambient;     // zeros, as large as the largest container; never written
  const NodeLayout* layouts;  // [nodes]
  const uint32_t* below;      // nodes that lie below others (NodeLayout::below)
  // The bytes that all cells may have, where allocators could take more together; 0: they cannot.
  uint64_t shared_limit;
  WorkerCells* workers;  // [num_workers], of CPUs (cells.h)
  uint64_t num_workers;

  alignas(64) uint32_t changed;  // set by whatever changes the topology
  uint32_t lists_changed;        // set by whatever changes a list's length
  uint32_t holds_cells;          // set by workers that hold cells for themselves
  uint32_t dirty;                // set by whatever leaves a dirty cell (masks.h), until collection
  uint64_t version;              // of the topology
  uint64_t lists_version;        // of dynamic nodes' lengths
  uint64_t fresh_bytes;          // of cells handed out, where there is a shared_limit
  AllocatorState allocators[kMaxAllocators];
};
static_assert(sizeof(TreeState) == 128 + 128 * kMaxAllocators && offsetof(TreeState, changed) == 64);
static_assert(offsetof(TreeState, allocators) == 128);

// Describes a loop's list, as the device knows it: one for each node, behind the TreeState.
struct ListState {
  uint64_t count;              // of Elements
  uint64_t version;            // what it was made of (list_version()); ~0: nothing yet
  uint64_t neighbour_version;  // of the topology; ~0: no table yet
};
static_assert(sizeof(ListState) == 24);

// This is an entry of a loop list: one container of the node that is looped over; for a dynamic node, one
// chunk.
struct LoopElement {
  unsigned char* container;  // a chunk: its cell, header included
  int32_t origin[kMaxDims];  // coordinate of the container's first cell; of the list
  uint32_t cell;             // the parent pointer node's cell that holds it, 0 if the root does
};
static_assert(sizeof(LoopElement) == 24);

}  // namespace coppice::device

extern "C" {
extern const coppice::device::NodeLayout coppice_nodes[coppice::device::kMaxNodesPerKernel];
extern const coppice::device::FieldBinding coppice_fields[coppice::device::kMaxBindings];
extern const coppice::device::LoopLayout coppice_loop;
extern const uint32_t coppice_debug_checks;  // 1 with COPPICE_DEBUG=checks
extern const uint32_t
    coppice_makes_room;  // 1 in a run that only finds out how much room its launch needs (lookup.h)
}
