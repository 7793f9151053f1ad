// Launches and calls of mixed_launches.h that the sequences over random trees have beside all others:
// topology tools, stencils and sums over what is near, loops over boxes, and what must end in an Error and
// leave what was. The file is long because there are that many kinds: each is a few lines, beside its
// reference.
#pragma once
#include <limits>

#include "sparse/topology_tools.h"
#include "tests/sparse/mixed_loops.h"

namespace coppice::mixed {

// The node that a tool changes for one of these: itself, or the nearest above that has inactive cells. None:
// -1.
inline int unit_of(const MixedShape& s, int level) {
  while (level >= 0 && !s.has_inactive(level)) --level;
  return level;
}
inline bool in_domain(const MixedShape& s, int level, Coord3 c) {
  const Coord3 low = s.first(level), n = s.cells(level);
  for (int d = 0; d < 3; ++d) {
    if (c[d] < low[d] || c[d] >= low[d] + n[d]) return false;
  }
  return true;
}
// Calls visit(coordinate, offset as kernels have it) for cells up to `reach` away in at most
// so many axes, itself among them.
template <class Visit>
void each_near(const MixedShape& s, Coord3 c, int reach, int axes, Visit&& visit) {
  Coord3 r{0, 0, 0};
  for (int d = 0; d < s.dims; ++d) r[d] = reach;
  for (int x = -r[0]; x <= r[0]; ++x) {
    for (int y = -r[1]; y <= r[1]; ++y) {
      for (int z = -r[2]; z <= r[2]; ++z) {
        if ((x != 0) + (y != 0) + (z != 0) > axes) continue;
        const Coord3 by{x, y, z};
        Coord3 padded{0, 0, 0};
        for (int d = 0; d < s.dims; ++d) padded[3 - s.dims + d] = by[d];
        visit(Coord3{c[0] + x, c[1] + y, c[2] + z}, padded);
      }
    }
  }
}
inline std::vector<int> active_cells(const ModelTree& tree, int level) {
  std::vector<int> cells;
  for (int i = 0; i < tree.shape->count(level); ++i) {
    if (tree.is_active(level, i)) cells.push_back(i);
  }
  return cells;
}

inline MixedLaunch MixedLaunches::make_tool(int kind, int a, int b) {
  switch (kind) {
    case 0:
    case 1:
      return dilate_cells(a);
    case 2:
      return erode_cells(a);
    case 3:
    case 4:
      return combine(a, b);
    case 5:
      return prune_cells(a);
    case 6:
      return stencil(a, true);
    case 7:
      return stencil(a, false);
    case 8:
      return scatter(a);
    case 9:
    case 10:
      return box(a, b);
    case 11:
      return call_outside(a);
    case 12:
      return store_outside(a);
    default:
      return add_to_inactive(a, b);
  }
}
// A level that tools can be used for, or -1.
inline int MixedLaunches::pick_unit(int a) {
  const int level = pick(shape(a).num_levels());
  return unit_of(shape(a), level) < 0 ? -1 : level;
}

// ---- topology tools
inline MixedLaunch MixedLaunches::dilate_cells(int a) {
  const int level = pick_unit(a), axes = 1 + pick(3), steps = pick(3);
  if (level < 0) return stencil(a, true);
  MixedLaunch launch = named("dilate", a, level);
  launch.operations = (*models_)[a].count_cells(unit_of(shape(a), level));
  launch.apply = [a, level, axes, steps](Models& m, uint64_t) {
    const MixedShape& s = *m[a].shape;
    const int unit = unit_of(s, level);
    for (int step = 0; step < steps; ++step) {
      for (const int n : active_cells(m[a], unit)) {
        each_near(s, s.coord(unit, n), 1, axes, [&](Coord3 c, Coord3) {
          if (in_domain(s, unit, c)) m[a].activate(unit, s.number(unit, c));
        });
      }
    }
  };
  launch.call = [node = trees_[a]->nodes[level], axes, steps] {
    return dilate(node, static_cast<Neighbourhood>(axes), steps);
  };
  launch.happens_in_part = true;
  return launch;
}
inline MixedLaunch MixedLaunches::erode_cells(int a) {
  const int level = pick_unit(a), axes = 1 + pick(3), steps = 1 + pick(2);
  if (level < 0) return stencil(a, false);
  MixedLaunch launch = named("erode", a, level);
  launch.operations = (*models_)[a].count_cells(unit_of(shape(a), level));
  launch.apply = [a, level, axes, steps](Models& m, uint64_t) {
    const MixedShape& s = *m[a].shape;
    const int unit = unit_of(s, level);
    for (int step = 0; step < steps; ++step) {
      std::vector<int> going;
      for (const int n : active_cells(m[a], unit)) {
        bool stays = true;
        each_near(s, s.coord(unit, n), 1, axes, [&](Coord3 c, Coord3) {
          stays = stays && in_domain(s, unit, c) && m[a].is_active(unit, s.number(unit, c));
        });
        if (!stays) going.push_back(n);
      }
      for (const int n : going) m[a].deactivate(unit, n);
    }
  };
  launch.call = [node = trees_[a]->nodes[level], axes, steps] {
    return erode(node, static_cast<Neighbourhood>(axes), steps);
  };
  launch.removes = true;
  return launch;
}

// Set operations between any two nodes.
inline MixedLaunch MixedLaunches::combine(int a, int b) {
  // Nodes as deep as each other share more coordinates than others.
  const int from = pick_unit(a), operation = pick(4);
  const bool is_as_deep = pick(2) == 0 && from < shape(b).num_levels() && unit_of(shape(b), from) >= 0;
  const int to = is_as_deep ? from : pick_unit(b);
  if (from < 0 || to < 0) return box(a, b);
  const bool adds = operation < 2, keeps_all = operation == 1, keeps_active = operation != 3;
  MixedLaunch launch = named(std::array{"copy", "merge", "intersect", "subtract"}[operation], a, b);
  launch.name += fmt::format(" from node {} to {}", from, to);
  launch.operations = (*models_)[a].count_cells(from);
  for (const int n : active_cells((*models_)[a], from)) {
    if (adds && !in_domain(shape(b), to, shape(a).coord(from, n))) launch.fails = ErrorCode::kOutOfRange;
  }
  launch.apply = [=, changes = !launch.fails](Models& m, uint64_t) {
    if (!changes) return;
    const MixedShape &s = *m[a].shape, &t = *m[b].shape;
    const int unit = unit_of(t, to);
    std::set<Coord3> active;
    for (const int n : active_cells(m[a], from)) active.insert(s.coord(from, n));
    std::set<int> staying;
    for (int n = 0; n < t.count(to); ++n) {
      if (keeps_all || active.contains(t.coord(to, n)) == keeps_active) staying.insert(t.holder(to, n, unit));
    }
    for (const int n : active_cells(m[b], unit)) {
      if (!staying.contains(n)) m[b].deactivate(unit, n);
    }
    for (const Coord3& c : active) {
      if (adds) m[b].activate(to, t.number(to, c));
    }
  };
  launch.call = [operation, from = trees_[a]->nodes[from], to = trees_[b]->nodes[to]] {
    return operation == 0   ? copy_topology(from, to)
           : operation == 1 ? merge_topology(from, to)
           : operation == 2 ? intersect_topology(from, to)
                            : subtract_topology(from, to);
  };
  launch.removes = operation != 1, launch.happens_in_part = adds;
  return launch;
}

// Cells of node `above` with anything but zeros below them.
inline std::set<int> cells_in_use(const ModelTree& tree, int above) {
  const MixedShape& s = *tree.shape;
  std::set<int> used;
  for (int i = 0; i < s.count(s.leaf()); ++i) {
    if (tree.x[i] != 0 || tree.y[i] != 0) used.insert(s.holder(s.leaf(), i, above));
  }
  for (int l = above + 1; l < s.num_levels(); ++l) {
    for (int i = 0; i < s.count(l); ++i) {
      if (s.has_inactive(l) && tree.active[l][i]) used.insert(s.holder(l, i, above));
    }
  }
  for (int i = 0; s.lists_below >= above && i < s.count(s.lists_below); ++i) {
    if (tree.lists[i].size() > 0) used.insert(s.holder(s.lists_below, i, above));
  }
  return used;
}
inline MixedLaunch MixedLaunches::prune_cells(int a) {
  const MixedShape& s = shape(a);
  const int level = pick(s.num_levels());
  int above = level - 1;
  while (above >= 0 && !s.is_pointer(above)) --above;
  if (above < 0 || s.is_pointer(level)) return erode_cells(a);
  MixedLaunch launch = named("prune", a, level);
  launch.apply = [a, above](Models& m, uint64_t) {
    const std::set<int> used = cells_in_use(m[a], above);
    for (const int n : active_cells(m[a], above)) {
      if (!used.contains(n)) m[a].deactivate(above, n);
    }
  };
  const uint64_t expected = (*models_)[a].count_cells(above) - cells_in_use((*models_)[a], above).size();
  const auto dropped = std::make_shared<uint64_t>(0);
  launch.operations = expected;
  launch.call = [node = trees_[a]->nodes[level], dropped] {
    return prune(node).map([dropped](uint64_t n) { return *dropped = n, Chain{}; });
  };
  launch.verify = [expected, dropped](const Models&) {
    expect_equal(*dropped, expected, "cells that a pruning dropped");
  };
  launch.removes = launch.is_alone = true;
  return launch;
}

// ---- what is near
inline MixedLaunch MixedLaunches::stencil(int a, bool is_star) {
  MixedLaunch launch = named(is_star ? "star" : "box_stencil", a, a);
  launch.operations = count_loop(a);
  launch.apply = [a, is_star](Models& m, uint64_t) {
    const MixedShape& s = *m[a].shape;
    each_cell(m[a], [&](int i, Coord3 at) {
      int sum = 0;
      each_near(s, at, is_star ? 2 : 1, is_star ? 1 : 3, [&](Coord3 c, Coord3 by) {
        if (in_domain(s, s.leaf(), c))
          sum = wrapping_sum(sum,
                             wrapping_product(m[a].x[s.number(s.leaf(), c)], weight_of(by[0], by[1], by[2])));
      });
      m[a].y[i] = sum;
    });
  };
  const MixedTree& t = *trees_[a];
  if (is_star)
    launch.bound = COPPICE_MIXED_BIND(program_, t.shape.dims, mixed_star, over(t.leaf()), t.x, t.y);
  else
    launch.bound = COPPICE_MIXED_BIND(program_, t.shape.dims, mixed_box, over(t.leaf()), t.x, t.y);
  launch.can_repeat = launch.changes_values = true;
  return launch;
}
inline MixedLaunch MixedLaunches::scatter(int a) {
  MixedLaunch launch = named("scatter", a, a);
  launch.operations = count_loop(a);
  launch.apply = [a](Models& m, uint64_t) {
    const MixedShape& s = *m[a].shape;
    each_cell(m[a], [&](int i, Coord3 at) {
      each_near(s, at, 1, 3, [&](Coord3 c, Coord3 by) {
        if (!in_domain(s, s.leaf(), c) || !m[a].is_active(s.leaf(), s.number(s.leaf(), c))) return;
        int& y = m[a].y[s.number(s.leaf(), c)];
        y = wrapping_sum(y, wrapping_product(m[a].x[i], weight_of(by[0], by[1], by[2])));
      });
    });
  };
  const MixedTree& t = *trees_[a];
  launch.bound = COPPICE_MIXED_BIND(program_, t.shape.dims, mixed_scatter, over(t.leaf()), t.x, t.y,
                                    t.topology(t.shape.leaf()));
  launch.can_repeat = launch.changes_values = true;
  return launch;
}
// An update of the cells of a box alone, which it activates; what they activate it does not visit.
inline MixedLaunch MixedLaunches::box(int a, int b) {
  MixedLaunch launch = named("box", a, b);
  const MixedShape& s = shape(a);
  Coord3 low = s.first(s.leaf()), high = low;
  for (int d = 0; d < 3; ++d) {
    const int n = s.cells(s.leaf())[d], first = pick(n);
    low[d] += first, high[d] = low[d] + (pick(12) == 0 ? 0 : 1 + pick(n - first));
  }
  const uint32_t salt = (*random_)();
  const int by = 1 + pick(1000);
  launch.operations = count_loop(a);
  launch.apply = [=](Models& m, uint64_t) {
    const MixedShape& shape = *m[a].shape;
    const int leaf = shape.leaf();
    std::vector<int> cells, places;
    for (int i = 0; i < shape.count(leaf); ++i) {
      const Coord3 c = shape.coord(leaf, i);
      bool is_inside = true;
      for (int d = 0; d < 3; ++d)
        is_inside = is_inside && c[d] >= low[d] && c[d] < (d < shape.dims ? high[d] : 1);
      if (!is_inside) continue;
      cells.push_back(i), places.push_back(leaf_place(m[a], m[b], salt, c));
    }
    for (const int i : cells) m[a].activate(leaf, i);
    for (const int i : cells) m[a].x[i] = wrapping_sum(m[a].x[i], by);
    for (const int place : places) m[b].activate(m[b].shape->leaf(), place);
  };
  launch.bound = COPPICE_MIXED_BIND(program_, s.dims, mixed_update, over_box(trees_[a]->leaf(), low, high),
                                    trees_[a]->x, trees_[b]->topology(shape(b).leaf()), by, salt,
                                    keep(launch, trees_[b]->box(shape(b).leaf())));
  launch.can_repeat = launch.happens_in_part = true;
  return launch;
}

// ---- what must end in an Error
inline Coord3 MixedLaunches::pick_outside(int a, int level) {
  const MixedShape& s = shape(a);
  Coord3 c = s.coord(level, pick(s.count(level)));
  const int d = pick(s.dims), low = s.first(level)[d], end = low + s.cells(level)[d];
  c[d] = std::array{low - 1, end, std::numeric_limits<int>::min(), std::numeric_limits<int>::max()}[pick(4)];
  return c;
}
// Nothing of such a call is done.
inline MixedLaunch MixedLaunches::call_outside(int a) {
  const int level = pick(shape(a).num_levels());
  const bool comes = !shape(a).has_inactive(level) || pick(2) == 0;
  MixedLaunch launch = named(comes ? "activate_outside" : "deactivate_outside", a, level);
  std::vector<std::array<int32_t, 3>> coords;
  for (int k = pick(5); k >= 0; --k) coords.push_back(shape(a).coord(level, pick(shape(a).count(level))));
  coords.insert(coords.begin() + pick(size(coords)), pick_outside(a, level));
  launch.operations = coords.size();
  launch.apply = [](Models&, uint64_t) {};
  launch.call = [node = trees_[a]->nodes[level], coords, comes] {
    return comes ? node.activate(coords) : node.deactivate(coords);
  };
  launch.fails = ErrorCode::kOutOfRange;
  return launch;
}
// Values that a kernel stores in active cells beside it are stored.
inline MixedLaunch MixedLaunches::store_outside(int a) {
  MixedLaunch launch = named("store_outside", a, a);
  const int leaf = shape(a).leaf();
  std::vector<int> operations, active = active_cells((*models_)[a], leaf);
  std::shuffle(active.begin(), active.end(), *random_);
  active.resize(static_cast<size_t>(pick(std::min(size(active), 20) + 1)));
  for (const int cell : active) add(operations, kSet, leaf_coord(a, cell), next_value_++);
  apply_items(launch, {a, a, a}, operations);
  add(operations, pick(2) == 0 ? kSet : kActivateLeaf, pick_outside(a, leaf), 7);
  launch.bound = COPPICE_MIXED_BIND(program_, shape(a).dims, mixed_grow, range(size(operations) / kNumbers),
                                    trees_[a]->x, trees_[a]->topology(inner(a)), trees_[a]->topology(leaf),
                                    keep(launch, operations), 1);
  launch.fails = ErrorCode::kOutOfRange;
  return launch;
}
inline MixedLaunch MixedLaunches::add_to_inactive(int a, int b) {
  const int leaf = shape(a).leaf();
  std::vector<int> operations, inactive;
  for (int i = 0; i < shape(a).count(leaf); ++i) {
    if (!(*models_)[a].is_active(leaf, i)) inactive.push_back(i);
  }
  if (inactive.empty()) return sum(a, b);
  MixedLaunch launch = named("add_to_inactive", a, b);
  const int n = 1 + pick(10);
  for (const int cell : active_cells((*models_)[a], leaf)) {
    if (size(operations) < n * kNumbers) add(operations, kAdd, leaf_coord(a, cell), 1 + pick(100));
  }
  apply_items(launch, {a, b, a}, operations);
  add(operations, kAdd, leaf_coord(a, inactive[pick(size(inactive))]), 1);
  launch.bound =
      COPPICE_MIXED_BIND(program_, shape(a).dims, mixed_sum, range(size(operations) / kNumbers), trees_[a]->y,
                         trees_[b]->topology(shape(b).leaf()), keep(launch, operations), 1);
  launch.fails = ErrorCode::kOutOfRange;
  return launch;
}

}  // namespace coppice::mixed
