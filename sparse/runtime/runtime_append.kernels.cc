// Bulk append: many elements at once, to the lists that their coordinates name, in the
// order in which they are given.
//
// The host (sparse/bulk_append.cc) runs these over any tree: first the elements are counted by list, then
// every list learns what chunks it needs, gets them all at once, and last the values go to their places.
// Nothing else runs meanwhile, so that all accesses are plain. A list's key is its index at every level
// of the way, the highest first.
#include "coppice/kernel.h"

using namespace coppice;
using namespace coppice::device;

// A key as it follows from a coordinate: key = key * extent + coordinate / span % extent, step by step.
struct CoppiceKeyStep {
  uint32_t axis, span, extent;
  uint32_t is_shift;  // both are powers of two, and given as their logarithms
};
struct CoppiceKeys {
  const NodeLayout* node;  // of the lists
  const int32_t* coords;   // [n][3]
  const CoppiceKeyStep* steps;
  uint32_t num_steps;
  uint32_t reserved;
  uint64_t n;
};
// Tells the host of a launch of these kernels.
struct CoppiceAppendTotals {
  uint64_t outside;   // coordinates outside the domain
  uint64_t inactive;  // lists below something that is inactive: as many of inactive_coords are written
  uint64_t chunks;    // new ones
  uint64_t too_full;  // 0, or 2^64 - 1 less the lowest row of a list that would be
};
// Says what a list ends with, before anything is appended.
struct CoppiceListEnd {
  uint32_t length;
  uint32_t linked;     // chunks
  uint32_t last;       // the last of them
  uint32_t tail;       // the one that its next element goes to, if there is one
  uint32_t first_new;  // the number, among all new chunks, of the list's first new one
};
// Rows of these tables are lists: all that there can be, by key, or those that are named.
struct CoppiceAppend {
  TreeState* tree;
  const NodeLayout* node;
  const uint64_t* names;  // keys; null: a row's number is its key
  uint64_t rows;
  const uint32_t* counts;  // new elements
  CoppiceListEnd* ends;
  uint32_t* new_chunks;      // one more than rows: how many, then their sums
  int32_t* inactive_coords;  // [..][3], of the node above
  CoppiceAppendTotals* totals;
  int32_t origin_above[kMaxDims];
  uint32_t reserved;
};
// The cells that the new chunks get: what is left of the free list, then ones that were never used.
struct CoppiceNewCells {
  const uint32_t* free_cells;
  uint32_t left, fresh;
  COPPICE_INLINE uint32_t operator[](uint32_t n) const {
    return n < left ? free_cells[n] : fresh + (n - left);
  }
};
// Where values go.
struct CoppiceElementPlace {
  unsigned char* cells;
  uint64_t cell_bytes;
  uint64_t offset;  // of the field in a chunk
  uint32_t stride, value_bytes;
  uint32_t word;              // the largest that values are aligned to: 1, 2, 4 or 8 bytes
  uint32_t chunk_cells_log2;  // of a chunk's elements
  uint32_t reserved;
  CoppiceNewCells new_cells;
};

// The same as variables of a thread, which no store can change: they are looked at for every element.
struct KeyMaker {
  static constexpr uint32_t kMaxSteps = kMaxDepth * kMaxDims;
  uint32_t origin[kMaxDims], domain[kMaxDims];
  uint32_t num_steps;
  CoppiceKeyStep steps[kMaxSteps];
  COPPICE_INLINE explicit KeyMaker(const CoppiceKeys& k) : num_steps(k.num_steps) {
    for (int d = 0; d < kMaxDims; ++d)
      origin[d] = static_cast<uint32_t>(k.node->origin[d]), domain[d] = k.node->domain[d];
    for (uint32_t s = 0; s < num_steps; ++s) steps[s] = k.steps[s];
  }
  // False: outside the domain.
  COPPICE_INLINE bool make(const int32_t* coord, uint64_t& key) const {
    uint32_t at[kMaxDims];
    for (int d = 0; d < kMaxDims; ++d) at[d] = static_cast<uint32_t>(coord[d]) - origin[d];
    if (!(at[0] < domain[0] && at[1] < domain[1] && at[2] < domain[2])) return false;
    key = 0;
    for (uint32_t s = 0; s < num_steps; ++s) {
      const CoppiceKeyStep& step = steps[s];
      const uint32_t on_axis = step.axis == 2 ? at[2] : step.axis == 1 ? at[1] : at[0];
      if (step.is_shift != 0)
        key = key << step.extent | (on_axis >> step.span & ((1u << step.extent) - 1));
      else
        key = key * step.extent + on_axis / step.span % step.extent;
    }
    return true;
  }
};

// ---- counting, where there are few lists: a table row of counts for each block of elements

struct CoppiceBlocks {
  uint64_t block;    // elements of one
  uint64_t rows;     // lists
  uint32_t* keys;    // [n]
  uint32_t* counts;  // [blocks][rows]
  COPPICE_INLINE uint64_t end(uint64_t b, uint64_t n) const {
    return (b + 1) * block < n ? (b + 1) * block : n;
  }
};
// Item b is block b.
COPPICE_KERNEL(count_in_blocks, Item b, CoppiceKeys k, CoppiceBlocks blocks, CoppiceAppendTotals* totals)
{
  const auto block = static_cast<uint64_t>(b.index);
  uint32_t* counts = blocks.counts + block * blocks.rows;
  __builtin_memset(counts, 0, blocks.rows * sizeof(uint32_t));
  const KeyMaker keys(k);
  uint64_t outside = 0, key = 0;
  for (uint64_t i = block * blocks.block; i < blocks.end(block, k.n); ++i) {
    if (!keys.make(k.coords + 3 * i, key)) {
      ++outside;
      continue;
    }
    blocks.keys[i] = static_cast<uint32_t>(key);
    ++counts[key];
  }
  if (outside != 0) coppice_fetch_add_u64(&totals->outside, outside);
}
// Item r is list r: its counts become the places, among its new elements, where those of each block begin.
COPPICE_KERNEL(add_up_blocks, Item r, CoppiceBlocks blocks, uint64_t num_blocks, uint32_t* totals)
{
  uint32_t before = 0;
  for (uint64_t b = 0; b < num_blocks; ++b) {
    uint32_t& count = blocks.counts[b * blocks.rows + static_cast<uint64_t>(r.index)];
    const uint32_t own = count;
    count = before;
    before += own;
  }
  totals[r.index] = before;
}

// ---- sorting, where there may be many

COPPICE_KERNEL(write_keys, Item i, CoppiceKeys k, uint64_t* keys, uint32_t* order,
               CoppiceAppendTotals* totals)
{
  const auto at = static_cast<uint64_t>(i.index);
  order[at] = static_cast<uint32_t>(at);
  uint64_t key = ~uint64_t{0};
  if (!KeyMaker(k).make(k.coords + 3 * at, key)) coppice_fetch_add_u64(&totals->outside, 1);
  keys[at] = key;
}
COPPICE_KERNEL(flag_runs, Item i, const uint64_t* keys, uint32_t* flags)
{ flags[i.index] = i.index == 0 || keys[i.index] != keys[i.index - 1]; }
// Item r is the r-th list that is named; its elements begin at starts[r] of all `n` in order.
COPPICE_KERNEL(name_lists, Item r, const uint64_t* keys, const uint32_t* starts, uint64_t rows, uint64_t n,
               uint64_t* names, uint32_t* counts)
{
  const auto row = static_cast<uint64_t>(r.index);
  names[row] = keys[starts[row]];
  counts[row] = static_cast<uint32_t>((row + 1 < rows ? starts[row + 1] : n) - starts[row]);
}

// ---- lists

// The list that a key names.
struct NamedList {
  ListHeader* list;  // null: something above it is inactive
  Coord coord;       // from the origin
};
static NamedList list_of(const CoppiceAppend& a, uint64_t row) {
  const NodeLayout& node = *a.node;
  uint64_t key = a.names != nullptr ? a.names[row] : row, per = 1;
  for (uint32_t l = 0; l + 1 < node.depth; ++l) per *= num_cells_of(node.level[l]);
  unsigned char* container = a.tree->root + node.root_offset;
  uint32_t at[kMaxDims] = {0, 0, 0};
  for (uint32_t l = 0; l + 1 < node.depth; ++l) {
    const LevelLayout& level = node.level[l];
    per /= num_cells_of(level);
    const auto index = static_cast<uint32_t>(key / per);
    key %= per;
    at[2] += index % level.extent[2] * level.span[2];
    at[1] += index / level.extent[2] % level.extent[1] * level.span[1];
    at[0] += index / level.extent[2] / level.extent[1] * level.span[0];
    if (container == nullptr) continue;
    if (level.kind == NodeKind::kPointer) {
      const uint32_t cell = slot_cell(container, index);
      container = cell == kAmbientCell ? nullptr : chunk_at(level, a.tree, cell) + level.child_offset;
    } else if (level.kind == NodeKind::kBitmasked && !mask_bit(container, index)) {
      container = nullptr;
    } else {
      container += level.cell_offset + index * level.cell_bytes + level.child_offset;
    }
  }
  return {reinterpret_cast<ListHeader*>(container),
          {static_cast<int32_t>(at[0]), static_cast<int32_t>(at[1]), static_cast<int32_t>(at[2])}};
}

// Item r is list r: what it ends with and how many chunks it needs.
COPPICE_KERNEL(plan_lists, Item r, CoppiceAppend a)
{
  const auto row = static_cast<uint64_t>(r.index);
  const LevelLayout& level = a.node->level[a.node->depth - 1];
  if (row + 1 == a.rows) a.new_chunks[a.rows] = 0;
  CoppiceListEnd end{};
  uint64_t needed = 0;
  if (a.counts[row] != 0) {
    const NamedList at = list_of(a, row);
    if (at.list == nullptr) {
      int32_t* c = a.inactive_coords + 3 * coppice_fetch_add_u64(&a.totals->inactive, 1);
      c[0] = a.origin_above[0] + at.coord.x, c[1] = a.origin_above[1] + at.coord.y,
      c[2] = a.origin_above[2] + at.coord.z;
    } else if (const ListHead head = unpack_head(at.list->head); has_chunk(head)) {
      // A launch that failed may have left chunks linked behind the latest one that is known.
      LatestChunk latest = latest_chunk(level, a.tree, head.first);
      while (const uint32_t next = *next_chunk(level, a.tree, latest.cell))
        latest = {next, latest.linked + 1};
      const uint32_t length = list_length(level, a.tree, at.list);
      const unsigned char* tail = find_chunk(level, a.tree, head.first, length);
      const AllocatorState& all = a.tree->allocators[level.allocator];
      end = {length, latest.linked, latest.cell, static_cast<uint32_t>((tail - all.cells) / all.cell_bytes),
             0};
    }
    const uint64_t length = uint64_t{end.length} + a.counts[row];
    if (length > level.max_length) coppice_fetch_max_u64(&a.totals->too_full, ~row);
    needed = (length + level.chunk_cells - 1) / level.chunk_cells;
  }
  a.ends[row] = end;
  a.new_chunks[row] = needed > end.linked ? static_cast<uint32_t>(needed - end.linked) : 0;
}
// Says of one row how long its list is, how many it is to get, and where it is.
COPPICE_KERNEL(describe_list, Item, CoppiceAppend a, uint64_t row, int64_t* said)
{
  const Coord c = list_of(a, row).coord;
  said[0] = a.node->origin[0] + int64_t{c.x}, said[1] = a.node->origin[1] + int64_t{c.y},
  said[2] = a.node->origin[2] + int64_t{c.z};
  said[3] = a.ends[row].length, said[4] = a.counts[row];
}
// Gives a list its new chunks, and its new length. The threads of a block share the chunks.
COPPICE_KERNEL(link_chunks, Team team, CoppiceAppend a, CoppiceNewCells cells)
{
  const auto row = static_cast<uint64_t>(team.index);
  if (a.counts[row] == 0) return;
  const LevelLayout& level = a.node->level[a.node->depth - 1];
  const AllocatorState* allocator = &a.tree->allocators[level.allocator];
  const auto header = [&](uint32_t cell) {
    return reinterpret_cast<ChunkHeader*>(chunk_at(level, a.tree, cell));
  };
  const NamedList at = list_of(a, row);
  const CoppiceListEnd end = a.ends[row];
  const uint32_t begin = a.new_chunks[row], n = a.new_chunks[row + 1] - begin;
  uint32_t* const first_slot = reinterpret_cast<uint32_t*>(&at.list->head) + 1;
  for (uint32_t j = team.lane(); j < n; j += team.lanes()) {
    uint32_t* slot = &header(j == 0 ? end.last : cells[begin + j - 1])->next;
    if (j == 0 && end.linked == 0) slot = first_slot;
    write_header(allocator, cells[begin + j], slot, {at.coord, end.linked + j});
    if (j + 1 < n) header(cells[begin + j])->next = cells[begin + j + 1];
  }
  team.barrier();  // all have read the list as it was
  if (team.lane() != 0) return;
  const uint32_t first = end.linked == 0 ? cells[begin] : unpack_head(at.list->head).first;
  if (n > 0 && end.linked > 0) header(end.last)->next = cells[begin];
  if (end.linked + n > 1)
    header(first)->latest = pack(LatestChunk{n > 0 ? cells[begin + n - 1] : end.last, end.linked + n});
  at.list->head = pack(ListHead{end.length + a.counts[row], first});
  a.ends[row].first_new = begin;
}

// ---- values

// Element `index` of a list that ended so.
static unsigned char* place_of(const CoppiceElementPlace& p, const CoppiceListEnd& end, uint32_t index) {
  const uint32_t ordinal = index >> p.chunk_cells_log2, in_chunk = index & ((1u << p.chunk_cells_log2) - 1);
  uint32_t cell = end.tail;
  if (ordinal >= end.linked) {
    cell = p.new_cells[end.first_new + (ordinal - end.linked)];
  } else {
    // Chunks that are linked behind a list's end, by a write that found no room, are rare.
    for (uint32_t o = end.length >> p.chunk_cells_log2; o < ordinal; ++o)
      cell = reinterpret_cast<const ChunkHeader*>(p.cells + cell * p.cell_bytes)->next;
  }
  return p.cells + cell * p.cell_bytes + p.offset + in_chunk * static_cast<uint64_t>(p.stride);
}
template <class Word>
static void copy_words(unsigned char* to, const unsigned char* from, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; i += sizeof(Word))
    *reinterpret_cast<Word*>(to + i) = *reinterpret_cast<const Word*>(from + i);
}
// Runs a function with the word that values are copied by: copy(to, from).
template <class Function>
COPPICE_INLINE void with_copy(const CoppiceElementPlace& p, Function function) {
  const uint32_t bytes = p.value_bytes;
  const auto by_words = [bytes]<class Word>(Word*) {
    return [bytes](unsigned char* to, const unsigned char* from) { copy_words<Word>(to, from, bytes); };
  };
  if (p.word == 4 && bytes == 4)
    function([](unsigned char* to, const unsigned char* from) { copy_words<uint32_t>(to, from, 4); });
  else if (p.word == 8)
    function(by_words(static_cast<uint64_t*>(nullptr)));
  else if (p.word == 4)
    function(by_words(static_cast<uint32_t*>(nullptr)));
  else if (p.word == 2)
    function(by_words(static_cast<uint16_t*>(nullptr)));
  else
    function(by_words(static_cast<unsigned char*>(nullptr)));
}

// Item b is a block that was counted.
COPPICE_KERNEL(write_blocks, Item b, CoppiceBlocks blocks, uint64_t n, const CoppiceListEnd* ends,
               CoppiceElementPlace p, const unsigned char* values)
{
  const auto block = static_cast<uint64_t>(b.index);
  uint32_t* counts = blocks.counts + block * blocks.rows;
  const uint64_t begin = block * blocks.block, end = blocks.end(block, n);
  with_copy(p, [&](auto copy) {
    const CoppiceElementPlace place = p;
    for (uint64_t i = begin; i < end; ++i) {
      const uint32_t row = blocks.keys[i];
      const CoppiceListEnd list = ends[row];
      copy(place_of(place, list, list.length + counts[row]++), values + i * place.value_bytes);
    }
  });
}
// `batch` elements in order of their lists, shared by the threads of a block.
COPPICE_KERNEL(write_in_order, Team team, const uint32_t* starts, uint64_t rows, const uint32_t* order,
               uint64_t n, uint64_t batch, const CoppiceListEnd* ends, CoppiceElementPlace p,
               const unsigned char* values)
{
  const uint64_t begin = static_cast<uint64_t>(team.index) * batch,
                 end = begin + batch < n ? begin + batch : n;
  uint64_t row = 0, above = rows;  // the last row that starts at `begin` or before
  while (above - row > 1) {
    const uint64_t middle = (row + above) / 2;
    if (starts[middle] <= begin)
      row = middle;
    else
      above = middle;
  }
  with_copy(p, [&](auto copy) {
    for (uint64_t i = begin + team.lane(); i < end; i += team.lanes()) {
      while (row + 1 < rows && starts[row + 1] <= i) ++row;
      const uint32_t index = ends[row].length + static_cast<uint32_t>(i - starts[row]);
      copy(place_of(p, ends[row], index), values + uint64_t{order[i]} * p.value_bytes);
    }
  });
}
