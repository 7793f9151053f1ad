// Kernels for trees over ranks (sparse/ranks/tree_cut.h): loop lists of a rank's own blocks, and blocks'
// values and masks for others.
//
// Runs over any tree and any type of value: layouts come as data, values as bytes.
#include "sparse/device/space_curve.h"
#include "sparse/device/sum_types.h"
#include "sparse/runtime/containers.h"

using namespace coppice;
using namespace coppice::device;

// A rank's part of the curve, through so many blocks along each axis.
struct CoppiceOwnPart {
  uint64_t begin, end;
  uint32_t blocks[kMaxDims];
};

static bool is_own(const CoppiceOwnPart& own, const uint32_t (&at)[kMaxDims]) {
  const uint64_t place = curve_place(at[0], at[1], at[2]);
  return own.begin <= place && place < own.end;
}
// Returns whether all places beside an own block are own, too; outside of the domain there are none.
static bool is_interior(const CoppiceOwnPart& own, const uint32_t (&at)[kMaxDims]) {
  for (int around = 0; around < 27; ++around) {
    const uint32_t beside[kMaxDims] = {at[0] + around / 9 - 1, at[1] + around / 3 % 3 - 1,
                                       at[2] + around % 3 - 1};
    bool is_inside = true;
    for (int d = 0; d < kMaxDims; ++d) is_inside &= beside[d] < own.blocks[d];
    if (is_inside && !is_own(own, beside)) return false;
  }
  return true;
}
// Item i is an element of a list, whose node lies right below the cut. Flags own elements in interior
// blocks, or those in the others.
COPPICE_KERNEL(flag_own, Item i, CoppiceOwnPart own, bool interior, const NodeLayout* node,
               const LoopElement* elements, uint32_t* flags)
{
  const LoopElement& e = elements[i.index];
  const LevelLayout& cut = node->level[node->depth - 2];
  uint32_t at[kMaxDims];
  for (int d = 0; d < kMaxDims; ++d)
    at[d] = (static_cast<uint32_t>(e.origin[d]) - static_cast<uint32_t>(node->origin[d])) / cut.span[d];
  flags[i.index] = is_own(own, at) && is_interior(own, at) == interior;
}
// `places` has each element's place among those flagged, and one more.
COPPICE_KERNEL(keep_own, Item i, const uint32_t* places, const LoopElement* all, LoopElement* own)
{
  if (places[i.index] != places[i.index + 1]) own[places[i.index]] = all[i.index];
}

// Where a field's values are, in blocks each of which is named by the coordinate of its first cell.
struct CoppiceBlockValues {
  const TreeState* tree;
  const NodeLayout* node;
  uint64_t offset;  // of the value of cell 0 in its container, or in a pointer node's cell
  uint32_t stride, value_bytes;
  uint32_t cells;  // of a block
  uint32_t parts;  // items that share a block
};

// Calls visit(value, number) for the cells of one item: item i has part i % parts of block i / parts.
// `number` counts the values of all blocks.
template <class Visit>
static void each_value(const CoppiceBlockValues& v, const int32_t* blocks, uint64_t item, Visit visit) {
  const uint64_t block = item / v.parts;
  const int32_t* const at = blocks + 3 * block;
  const CellRef first = find(*v.node, v.tree, {at[0], at[1], at[2]});
  if (!first.active) return;
  const uint32_t each = (v.cells + v.parts - 1) / v.parts,
                 begin = static_cast<uint32_t>(item % v.parts) * each;
  const uint32_t end = begin + each < v.cells ? begin + each : v.cells;
  for (uint32_t k = begin; k < end; ++k) {
    const unsigned char* const value =
        value_in(v.tree, last_level(v.node), first.container, first.index + k, v.offset, v.stride);
    visit(const_cast<unsigned char*>(value), block * v.cells + k);
  }
}
// blocks: i32[n][3], missing leading axes 0.
COPPICE_KERNEL(pack_values, Item i, CoppiceBlockValues v, const int32_t* blocks, unsigned char* packed)
{
  each_value(v, blocks, static_cast<uint64_t>(i.index), [&](const unsigned char* value, uint64_t number) {
    __builtin_memcpy(packed + number * v.value_bytes, value, v.value_bytes);
  });
}
COPPICE_KERNEL(unpack_values, Item i, CoppiceBlockValues v, const int32_t* blocks,
               const unsigned char* packed)
{
  each_value(v, blocks, static_cast<uint64_t>(i.index), [&](unsigned char* value, uint64_t number) {
    __builtin_memcpy(value, packed + number * v.value_bytes, v.value_bytes);
  });
}

COPPICE_KERNEL(clear_values, Item i, CoppiceBlockValues v, const int32_t* blocks)
{
  each_value(v, blocks, static_cast<uint64_t>(i.index),
             [&](unsigned char* value, uint64_t) { __builtin_memset(value, 0, v.value_bytes); });
}

// Adds numbers one by one; what came is at no particular alignment.
template <class Number>
static void add_numbers(unsigned char* to, const unsigned char* from, uint32_t bytes) {
  for (uint32_t at = 0; at + sizeof(Number) <= bytes; at += sizeof(Number)) {
    Number sum, more;
    __builtin_memcpy(&sum, to + at, sizeof sum);
    __builtin_memcpy(&more, from + at, sizeof more);
    sum += more;
    __builtin_memcpy(to + at, &sum, sizeof sum);
  }
}
COPPICE_KERNEL(add_values, Item i, CoppiceBlockValues v, const int32_t* blocks, const unsigned char* packed,
               SumKind kind)
{
  each_value(v, blocks, static_cast<uint64_t>(i.index), [&](unsigned char* value, uint64_t number) {
    const unsigned char* const from = packed + number * v.value_bytes;
    if (kind == SumKind::kFloat) add_numbers<float>(value, from, v.value_bytes);
    if (kind == SumKind::kDouble) add_numbers<double>(value, from, v.value_bytes);
    if (kind == SumKind::kWord32) add_numbers<uint32_t>(value, from, v.value_bytes);
    if (kind == SumKind::kWord64) add_numbers<uint64_t>(value, from, v.value_bytes);
  });
}

// Says where the active masks of a bitmasked node's containers are, of which each block has one, and where
// their words are among those of all masks of a block.
struct CoppiceBlockMasks {
  const TreeState* tree;
  const NodeLayout *node, *cut;  // the cut node's cells are the blocks
  uint32_t first, words;
  uint32_t block_words;
  uint32_t unused;
};

// Returns a block's mask, or null where it is not there.
static uint64_t* mask_of(const CoppiceBlockMasks& m, const int32_t* at) {
  const LevelLayout& cut = m.node->level[m.node->depth - 2];
  uint32_t first[kMaxDims];
  for (int d = 0; d < kMaxDims; ++d)
    first[d] = static_cast<uint32_t>(m.node->origin[d]) +
               (static_cast<uint32_t>(at[d]) - static_cast<uint32_t>(m.cut->origin[d])) * cut.span[d];
  const CellRef cell =
      find(*m.node, m.tree,
           {static_cast<int32_t>(first[0]), static_cast<int32_t>(first[1]), static_cast<int32_t>(first[2])});
  return cell.active ? reinterpret_cast<uint64_t*>(cell.container) : nullptr;
}
// Item i is block i; blocks: i32[n][3], missing leading axes 0; words: u64[n][block_words].
COPPICE_KERNEL(read_masks, Item i, CoppiceBlockMasks m, const int32_t* blocks, uint64_t* words)
{
  const uint64_t* const mask = mask_of(m, blocks + 3 * i.index);
  uint64_t* const to = words + static_cast<uint64_t>(i.index) * m.block_words + m.first;
  for (uint32_t w = 0; w < m.words; ++w) to[w] = mask == nullptr ? 0 : mask[w];
}
COPPICE_KERNEL(store_masks, Item i, CoppiceBlockMasks m, const int32_t* blocks, const uint64_t* words)
{
  uint64_t* const mask = mask_of(m, blocks + 3 * i.index);
  const uint64_t* const from = words + static_cast<uint64_t>(i.index) * m.block_words + m.first;
  for (uint32_t w = 0; mask != nullptr && w < m.words; ++w) mask[w] = from[w];
}
// Inactive cells hold zeros already. Several items may have the same block.
COPPICE_KERNEL(add_masks, Item i, CoppiceBlockMasks m, const int32_t* blocks, const uint64_t* words)
{
  uint64_t* const mask = mask_of(m, blocks + 3 * i.index);
  const uint64_t* const from = words + static_cast<uint64_t>(i.index) * m.block_words + m.first;
  for (uint32_t w = 0; mask != nullptr && w < m.words; ++w)
    if (from[w] != 0) coppice_fetch_or_u64(mask + w, from[w]);
}

// Zeroes a node's containers in all cells of the pointer node right above it that were ever handed out. Item
// i is cell i + 1.
COPPICE_KERNEL(zero_in_all_cells, Item i, TreeState* tree, const NodeLayout* node, uint64_t container_bytes)
{
  const LevelLayout& above = node->level[node->depth - 2];
  unsigned char* const cell =
      tree->allocators[above.allocator].cells + (static_cast<uint64_t>(i.index) + 1) * above.cell_bytes;
  zero_bytes(cell + above.child_offset, container_bytes);
}
