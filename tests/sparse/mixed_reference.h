// The reference of the mixed model (mixed_model.h): what a tree of one line of nodes and one
// of lists has, in plain vectors.
//
// Coordinates have three axes, in tree order; a tree of fewer has extents of 1 behind its own. Cells of every
// node are numbered within the tree's domain, the last axis fastest.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "sparse/device/layout.h"

namespace coppice::mixed {

using Coord3 = std::array<int, 3>;

struct MixedLevel {
  device::NodeKind kind;
  Coord3 extent;
};

// How a tree is described: nodes outside in, and lists below the cells of one of them.
struct MixedShape {
  int dims;
  std::vector<MixedLevel> levels;
  int lists_below;
  int chunk;      // elements of one
  Coord3 before;  // cells of the top node that lie below coordinate 0

  int num_levels() const { return static_cast<int>(levels.size()); }
  int leaf() const { return num_levels() - 1; }
  bool has_inactive(int level) const { return levels[level].kind != device::NodeKind::kDense; }
  bool is_pointer(int level) const { return levels[level].kind == device::NodeKind::kPointer; }
  // Cells of a node along each axis of the whole domain, and coordinates of the tree that one of them covers.
  Coord3 cells(int level) const {
    Coord3 n{1, 1, 1};
    for (int l = 0; l <= level; ++l) {
      for (int d = 0; d < 3; ++d) n[d] *= levels[l].extent[d];
    }
    return n;
  }
  Coord3 size(int level) const { return ratio(level, leaf()); }
  // Cells of node `below` along each axis of a cell of node `above`.
  Coord3 ratio(int above, int below) const {
    Coord3 n{1, 1, 1};
    for (int l = above + 1; l <= below; ++l) {
      for (int d = 0; d < 3; ++d) n[d] *= levels[l].extent[d];
    }
    return n;
  }
  // The lowest coordinate, in cells of a node.
  Coord3 first(int level) const {
    const Coord3 n = ratio(0, level);
    return {-before[0] * n[0], -before[1] * n[1], -before[2] * n[2]};
  }
  int count(int level) const {
    const Coord3 n = cells(level);
    return n[0] * n[1] * n[2];
  }
  Coord3 coord(int level, int number) const {
    const Coord3 n = cells(level), low = first(level);
    return {low[0] + number / (n[1] * n[2]), low[1] + number / n[2] % n[1], low[2] + number % n[2]};
  }
  int number(int level, Coord3 c) const {
    const Coord3 n = cells(level), low = first(level);
    return ((c[0] - low[0]) * n[1] + c[1] - low[1]) * n[2] + c[2] - low[2];
  }
  // The cell of node `above` that holds a cell of node `level`.
  int holder(int level, int number_in_level, int above) const {
    const Coord3 n = cells(level), m = cells(above), by = ratio(above, level);
    const int x = number_in_level / (n[1] * n[2]) / by[0], y = number_in_level / n[2] % n[1] / by[1],
              z = number_in_level % n[2] / by[2];
    return (x * m[1] + y) * m[2] + z;
  }
};

// One list: what was known of it, and what later launches append, each in any order.
struct ModelList {
  std::vector<int> known;
  std::vector<std::vector<int>> later;
  bool is_open = false;  // it was cleared by some items and appended to by others: MixedScripts tell

  size_t size() const {
    size_t n = known.size();
    for (const auto& part : later) n += part.size();
    return n;
  }
  std::vector<int> values() const {
    std::vector<int> all = known;
    for (const auto& part : later) all.insert(all.end(), part.begin(), part.end());
    return all;
  }
  void clear() { known.clear(), later.clear(), is_open = false; }
  // Is this what it may be now?
  bool allows(const std::vector<int>& found) const {
    if (found.size() != size() || !std::equal(known.begin(), known.end(), found.begin())) return false;
    auto at = found.begin() + static_cast<ptrdiff_t>(known.size());
    for (const std::vector<int>& part : later) {
      const auto end = at + static_cast<ptrdiff_t>(part.size());
      if (!std::is_permutation(at, end, part.begin())) return false;
      at = end;
    }
    return true;
  }
};

class ModelTree {
 public:
  explicit ModelTree(const MixedShape& s) : shape(&s), taken(s.levels.size()) {
    for (int l = 0; l < s.num_levels(); ++l) active.emplace_back(s.count(l), s.has_inactive(l) ? 0 : 1);
    x.resize(s.count(s.leaf())), y.resize(x.size());
    lists.resize(s.count(s.lists_below));
  }

  bool is_active(int level, int number) const {
    for (int l = 0; l <= level; ++l) {
      if (!active[l][shape->holder(level, number, l)]) return false;
    }
    return true;
  }
  void activate(int level, int number) {
    for (int l = 0; l <= level; ++l) {
      uint8_t& a = active[l][shape->holder(level, number, l)];
      taken[l] += a == 0;
      a = 1;
    }
  }
  // With all that lies below; what is dense stays.
  void deactivate(int level, int number) {
    if (!shape->has_inactive(level) || !active[level][number]) return;
    active[level][number] = 0;
    for (int l = level + 1; l < shape->num_levels(); ++l) {
      if (shape->has_inactive(l)) each_below(level, number, l, [&](int n) { active[l][n] = 0; });
    }
    each_below(level, number, shape->leaf(), [&](int n) { x[n] = y[n] = 0; });
    if (shape->lists_below >= level)
      each_below(level, number, shape->lists_below, [&](int n) { lists[n].clear(); });
  }
  void deactivate_all() {
    for (int n = 0; n < shape->count(0); ++n) deactivate(0, n);
    if (shape->has_inactive(0)) return;
    for (int l = 1; l < shape->num_levels(); ++l) {
      for (int n = 0; n < shape->count(l); ++n) deactivate(l, n);
    }
    for (ModelList& list : lists) list.clear();
  }
  void set(int number, int value) { activate(shape->leaf(), number), x[number] = value; }
  // Appends that no other launch is between: the list's own part of this launch.
  void append(int list, int value, uint64_t launch) {
    activate(shape->lists_below, list);
    ModelList& to = lists[list];
    if (last_append.size() != lists.size()) last_append.resize(lists.size());
    if (to.later.empty() || last_append[list] != launch) to.later.emplace_back();
    last_append[list] = launch;
    to.later.back().push_back(value);
    ++taken_chunks;  // of its own, at most
  }
  uint64_t count_cells(int level) const {
    uint64_t n = 0;
    for (int i = 0; i < shape->count(level); ++i) n += is_active(level, i);
    return n;
  }
  uint64_t count_elements() const {
    uint64_t n = 0;
    for (const ModelList& list : lists) n += list.size();
    return n;
  }
  uint64_t count_chunks() const {
    uint64_t n = 0;
    for (const ModelList& list : lists)
      n += (list.size() + static_cast<size_t>(shape->chunk) - 1) / static_cast<size_t>(shape->chunk);
    return n;
  }

  const MixedShape* shape;
  std::vector<std::vector<uint8_t>> active;  // by level; a dense node's cells are all 1
  std::vector<int> x, y;                     // on the leaf
  std::vector<ModelList> lists;
  std::vector<uint64_t> last_append;  // number of the launch that appended to a list last
  // Cells and chunks that launches took since the last look, with those that went again; of chunks no less.
  std::vector<uint64_t> taken;
  uint64_t taken_chunks = 0;

 private:
  template <class Visit>
  void each_below(int level, int number, int below, Visit&& visit) {
    const Coord3 by = shape->ratio(level, below), n = shape->cells(below), m = shape->cells(level);
    const int x0 = number / (m[1] * m[2]) * by[0], y0 = number / m[2] % m[1] * by[1],
              z0 = number % m[2] * by[2];
    for (int i = x0; i < x0 + by[0]; ++i) {
      for (int j = y0; j < y0 + by[1]; ++j) {
        for (int k = z0; k < z0 + by[2]; ++k) visit((i * n[1] + j) * n[2] + k);
      }
    }
  }
};

}  // namespace coppice::mixed
