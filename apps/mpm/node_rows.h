// Nodes row by row, as a CPU takes them: three that follow each other in z in one register.
//
// Device-clean. With sixteen floats in a register an operation on a row is one instruction, with eight two.
#pragma once
#include "apps/mpm/particle_tile.h"

namespace coppice::mpm {

// Three nodes' values, one behind the other, and four floats that mean nothing.
typedef float NodeRow __attribute__((ext_vector_type(16)));

template <int D>
inline constexpr int kStencilRows = D == 3 ? 9 : 3;
// Where such a row of a stencil begins, seen from the stencil's first node.
template <int D>
COPPICE_INLINE int row_index(int row) {
  return tile_index<D>(row / 3, row % 3, 0);
}

// Rows are read and written in two pieces, since a tile ends with its last node.
typedef float TwoNodes __attribute__((ext_vector_type(8), aligned(16)));

COPPICE_INLINE NodeRow load_row(const NodeValue* row) {
  const TwoNodes first = *reinterpret_cast<const TwoNodes*>(row);
  const Float4 last = load(row + 2);
  const TwoNodes rest = __builtin_shufflevector(last, last, 0, 1, 2, 3, -1, -1, -1, -1);
  return __builtin_shufflevector(first, rest, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -1, -1, -1, -1);
}
COPPICE_INLINE void add_to_row(NodeValue* row, NodeRow sum) {
  *reinterpret_cast<TwoNodes*>(row) += sum.lo;
  store(row + 2, load(row + 2) + sum.hi.lo);
}

// The same value for each node of a row.
COPPICE_INLINE NodeRow for_each_node(Float4 value) {
  return __builtin_shufflevector(value, value, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
}
// A number for each node of a row: of these the first three.
COPPICE_INLINE NodeRow of_each_node(Float4 numbers) {
  return __builtin_shufflevector(numbers, numbers, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, -1, -1, -1, -1);
}
// How many nodes they are from the first.
COPPICE_INLINE NodeRow places_in_row() { return of_each_node(Float4{0.0f, 1.0f, 2.0f, 0.0f}); }

// Returns nodes 0 and 2, or 1 and 3, of two rows; a node is four floats.
COPPICE_INLINE NodeRow even_nodes(NodeRow x, NodeRow y) {
  return __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
}
COPPICE_INLINE NodeRow odd_nodes(NodeRow x, NodeRow y) {
  return __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
}

COPPICE_INLINE Float4 sum_of_nodes(NodeRow row) { return row.lo.lo + row.lo.hi + row.hi.lo; }
// Four such sums, one behind the other.
COPPICE_INLINE NodeRow sums_of_nodes(NodeRow a, NodeRow b, NodeRow c, NodeRow d) {
  const NodeRow ab = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
  const NodeRow cd = __builtin_shufflevector(c, d, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
  const NodeRow ab_last =
      __builtin_shufflevector(a, b, 8, 9, 10, 11, -1, -1, -1, -1, 24, 25, 26, 27, -1, -1, -1, -1);
  const NodeRow cd_last =
      __builtin_shufflevector(c, d, 8, 9, 10, 11, -1, -1, -1, -1, 24, 25, 26, 27, -1, -1, -1, -1);
  return even_nodes(ab, cd) + odd_nodes(ab, cd) + even_nodes(ab_last, cd_last);
}

}  // namespace coppice::mpm
