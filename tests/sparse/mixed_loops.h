// Launches of mixed_launches.h that loop over cells, blocks and elements, and calls of the host.
#pragma once
#include "sparse/runtime_launch.h"
#include "tests/sparse/mixed_lists.h"

namespace coppice::mixed {

// Calls visit(number, coordinate) for the active cells of a leaf.
template <class Visit>
void each_cell(const ModelTree& tree, Visit&& visit) {
  const int leaf = tree.shape->leaf();
  for (int i = 0; i < tree.shape->count(leaf); ++i) {
    if (tree.is_active(leaf, i)) visit(i, tree.shape->coord(leaf, i));
  }
}
inline int leaf_place(const ModelTree& from, const ModelTree& to, uint32_t salt, Coord3 c) {
  return place_number(*from.shape, *to.shape, to.shape->leaf(), salt, c);
}
inline int list_place(const ModelTree& from, const ModelTree& to, uint32_t salt, Coord3 c) {
  return place_number(*from.shape, *to.shape, to.shape->lists_below, salt, c);
}

// Each cell's value becomes what `next(number)` says, and a place of the other tree is
// activated where that is wanted.
template <class Next, class Grows>
auto change_cells(int a, int b, uint32_t salt, std::vector<int> ModelTree::*field, Next next, Grows grows) {
  return [=](MixedLaunches::Models& m, uint64_t) {
    std::vector<int> places;
    std::vector<int>& values = m[a].*field;
    each_cell(m[a], [&](int i, Coord3 c) {
      values[i] = next(m[a], i);
      if (grows(values[i])) places.push_back(leaf_place(m[a], m[b], salt, c));
    });
    for (const int place : places) m[b].activate(m[b].shape->leaf(), place);
  };
}
inline bool always(int) { return true; }

inline MixedLaunch MixedLaunches::update(int a, int b) {
  if (loop_sees(a, b, shape(b).leaf())) return sum(a, b);
  MixedLaunch launch = named("update", a, b);
  const uint32_t salt = (*random_)();
  const int by = 1 + pick(1000);
  launch.operations = count_loop(a);
  launch.apply = change_cells(
      a, b, salt, &ModelTree::x, [by](const ModelTree& t, int i) { return t.x[i] + by; }, always);
  launch.bound = COPPICE_MIXED_BIND(program_, shape(a).dims, mixed_update, over(trees_[a]->leaf()),
                                    trees_[a]->x, trees_[b]->topology(shape(b).leaf()), by, salt,
                                    keep(launch, trees_[b]->box(shape(b).leaf())));
  launch.can_repeat = launch.changes_values = true;
  return launch;
}
inline MixedLaunch MixedLaunches::copy(int a, int b) {
  if (loop_sees(a, b, shape(b).leaf())) return sum(a, b);
  MixedLaunch launch = named("copy", a, b);
  const uint32_t salt = (*random_)();
  launch.operations = count_loop(a);
  launch.apply = change_cells(
      a, b, salt, &ModelTree::y,
      [](const ModelTree& t, int i) { return static_cast<int>(uint32_t(t.y[i]) + uint32_t(t.x[i]) + 1); },
      always);
  launch.bound = COPPICE_MIXED_BIND(
      program_, shape(a).dims, mixed_copy, over(trees_[a]->leaf()), trees_[a]->x, trees_[a]->y, trees_[a]->y,
      trees_[b]->topology(shape(b).leaf()), salt, keep(launch, trees_[b]->box(shape(b).leaf())));
  launch.can_repeat = launch.changes_values = true;
  return launch;
}
inline MixedLaunch MixedLaunches::age(int a, int b) {
  if (loop_sees(a, b, shape(b).leaf())) return sum(a, b);
  MixedLaunch launch = named("age", a, b);
  const uint32_t salt = (*random_)();
  launch.operations = count_loop(a);
  launch.apply = change_cells(
      a, b, salt, &ModelTree::x, [](const ModelTree& t, int i) { return t.x[i] - 1; },
      [](int value) { return (value & 1) != 0; });
  launch.bound = COPPICE_MIXED_BIND(program_, shape(a).dims, mixed_age, over(trees_[a]->leaf()), trees_[a]->x,
                                    trees_[b]->topology(shape(b).leaf()), salt,
                                    keep(launch, trees_[b]->box(shape(b).leaf())));
  launch.can_repeat = launch.changes_values = launch.may_lack_room = true;
  return launch;
}
inline MixedLaunch MixedLaunches::cells(int a, int b) {
  if (loop_sees(a, b, shape(b).lists_below)) return entries(a, b);
  MixedLaunch launch = named("cells", a, b);
  const uint32_t salt = (*random_)();
  launch.operations = count_loop(a);
  launch.apply = [a, b, salt](Models& m, uint64_t number) {
    std::vector<std::pair<int, int>> appended;
    each_cell(m[a],
              [&](int i, Coord3 c) { appended.emplace_back(list_place(m[a], m[b], salt, c), m[a].x[i]); });
    for (const auto& [list, value] : appended) m[b].append(list, value, number);
  };
  launch.bound =
      COPPICE_MIXED_BIND(program_, shape(a).dims, mixed_cells, over(trees_[a]->leaf()), trees_[a]->x,
                         trees_[b]->v, salt, keep(launch, trees_[b]->box(shape(b).lists_below)));
  launch.can_repeat = true;
  return launch;
}
inline MixedLaunch MixedLaunches::entries(int a, int b) {
  MixedLaunch launch = named("entries", a, b);
  const uint32_t salt = (*random_)();
  launch.operations = (*models_)[a].count_elements();
  launch.apply = [a, b, salt](Models& m, uint64_t number) {
    std::vector<std::pair<int, int>> appended;
    for (int i = 0; i < size(m[a].lists); ++i) {
      const int list = list_place(m[a], m[b], salt, m[a].shape->coord(m[a].shape->lists_below, i));
      for (const int value : m[a].lists[i].values()) appended.emplace_back(list, value + 1);
    }
    for (const auto& [list, value] : appended) m[b].append(list, value, number);
  };
  launch.bound =
      COPPICE_MIXED_BIND(program_, shape(a).dims, mixed_entries, over(trees_[a]->list_node()), trees_[a]->v,
                         trees_[b]->v, salt, keep(launch, trees_[b]->box(shape(b).lists_below)));
  launch.can_repeat = true;
  return launch;
}
inline MixedLaunch MixedLaunches::entry_update(int a, int b) {
  MixedLaunch launch = named("entry_update", a, b);
  const uint32_t salt = (*random_)();
  const int by = 1 + pick(1000);
  launch.operations = (*models_)[a].count_elements();
  launch.apply = [a, b, salt, by](Models& m, uint64_t) {
    for (int i = 0; i < size(m[a].lists); ++i) {
      ModelList& list = m[a].lists[i];
      for (int& value : list.known) value += by;
      for (auto& part : list.later) {
        for (int& value : part) value += by;
      }
      if (list.size() == 0) continue;
      const Coord3 c = m[a].shape->coord(m[a].shape->lists_below, i);
      m[b].activate(m[b].shape->leaf(), leaf_place(m[a], m[b], salt, c));
    }
  };
  launch.bound = COPPICE_MIXED_BIND(program_, shape(a).dims, mixed_entry_update, over(trees_[a]->list_node()),
                                    trees_[a]->v, trees_[b]->topology(shape(b).leaf()), by, salt,
                                    keep(launch, trees_[b]->box(shape(b).leaf())));
  launch.can_repeat = launch.changes_values = true;
  return launch;
}

// Each container's sum is appended at the place of its first cell.
inline auto append_sums(int a, int b, uint32_t salt) {
  return [a, b, salt](MixedLaunches::Models& m, uint64_t number) {
    const MixedShape& s = *m[a].shape;
    std::map<Coord3, uint32_t> sums;
    const Coord3 by = s.levels[s.leaf()].extent;
    const int holders = s.leaf() == 0 ? 1 : s.count(s.leaf() - 1);
    const auto origin_of = [&](int holder) {
      if (s.leaf() == 0) return s.first(0);
      const Coord3 c = s.coord(s.leaf() - 1, holder);
      return Coord3{c[0] * by[0], c[1] * by[1], c[2] * by[2]};
    };
    for (int h = 0; h < holders; ++h) {
      if (s.leaf() == 0 || m[a].is_active(s.leaf() - 1, h)) sums[origin_of(h)] = 0;
    }
    for (int i = 0; i < s.count(s.leaf()); ++i) {
      const auto found = sums.find(origin_of(s.leaf() == 0 ? 0 : s.holder(s.leaf(), i, s.leaf() - 1)));
      if (found != sums.end()) found->second += static_cast<uint32_t>(m[a].x[i]);
    }
    for (const auto& [origin, sum] : sums)
      m[b].append(list_place(m[a], m[b], salt, origin), static_cast<int>(sum), number);
  };
}
inline MixedLaunch MixedLaunches::blocks(int a, int b) {
  if (shape(a).is_pointer(shape(a).leaf())) return cells(a, b);
  MixedLaunch launch = named("blocks", a, b);
  const uint32_t salt = (*random_)();
  launch.operations = count_loop(a);
  launch.apply = append_sums(a, b, salt);
  const Coord3 n = shape(a).levels[shape(a).leaf()].extent;
  launch.bound = COPPICE_MIXED_BIND(program_, shape(a).dims, mixed_blocks, over(trees_[a]->leaf()),
                                    trees_[a]->x, trees_[b]->v, n[0] * n[1] * n[2], salt,
                                    keep(launch, trees_[b]->box(shape(b).lists_below)));
  launch.can_repeat = true;
  return launch;
}
inline MixedLaunch MixedLaunches::team(int a, int b) {
  if (shape(a).is_pointer(shape(a).leaf())) return age(a, b);
  MixedLaunch launch = named("team", a, b);
  const uint32_t salt = (*random_)();
  launch.operations = count_loop(a);
  launch.apply = append_sums(a, b, salt);
  const Coord3 n = shape(a).levels[shape(a).leaf()].extent;
  launch.bound = COPPICE_MIXED_BIND(program_, shape(a).dims, mixed_team, over(trees_[a]->leaf()),
                                    trees_[a]->x, trees_[b]->v, n[0] * n[1] * n[2], salt,
                                    keep(launch, trees_[b]->box(shape(b).lists_below)));
  launch.can_repeat = launch.may_lack_room = true;
  return launch;
}

// ---- calls of the host
inline MixedLaunch MixedLaunches::bulk_activate(int a) {
  const MixedShape& s = shape(a);
  const int level = pick(s.num_levels());
  if (!s.has_inactive(level)) return shrink(a);
  const bool comes = pick(4) != 0;
  MixedLaunch launch = named(comes ? "activate" : "deactivate", a, level);
  std::vector<std::array<int32_t, 3>> coords;
  std::vector<int> numbers;
  for (int k = draw_count() / (comes ? 1 : 4) + 1; k > 0; --k)
    numbers.push_back(pick(s.count(level))), coords.push_back(s.coord(level, numbers.back()));
  launch.operations = coords.size();
  launch.apply = [a, level, comes, numbers](Models& m, uint64_t) {
    for (const int n : numbers) comes ? m[a].activate(level, n) : m[a].deactivate(level, n);
  };
  launch.call = [node = trees_[a]->nodes[level], coords, comes] {
    return comes ? node.activate(coords) : node.deactivate(coords);
  };
  launch.removes = !comes, launch.happens_in_part = comes;
  return launch;
}
inline MixedLaunch MixedLaunches::bulk_append(int a) {
  MixedLaunch launch = named("bulk_append", a, a);
  const MixedShape& s = shape(a);
  std::vector<int> at, coords, values;
  for (int k = draw_count(); k > 0; --k) {
    at.push_back(pick_list(a)), values.push_back(next_value_++);
    const Coord3 c = s.coord(s.lists_below, at.back());
    for (int d = 0; d < 3; ++d) coords.push_back(d < 3 - s.dims ? 0 : c[d - (3 - s.dims)]);
  }
  launch.operations = values.size();
  launch.apply = [a, at, values](Models& m, uint64_t) {
    for (size_t k = 0; k < at.size(); ++k) {
      const int o[kNumbers] = {kAppend, 0, 0, 0, values[k], kInOrder};
      apply_append(m[a].lists[at[k]], m[a], at[k], o, 0);
    }
  };
  const int32_t* const where = keep(launch, coords);
  const int* const what = keep(launch, values);
  launch.call = [field = trees_[a]->v, where, what, n = values.size()] {
    return coppice::append(field, where, what, n);
  };
  return launch;
}
inline MixedLaunch MixedLaunches::clear_lists(int a) {
  MixedLaunch launch = named("clear_lists", a, a);
  launch.operations = (*models_)[a].count_elements();
  launch.apply = [a](Models& m, uint64_t) {
    for (ModelList& list : m[a].lists) list.clear();
  };
  launch.removes = launch.can_repeat = true;
  if (pick(2) == 0)
    launch.bound = bind_deactivate_all(trees_[a]->list_node());
  else
    launch.call = [node = trees_[a]->list_node()] { return node.deactivate_all(); };
  return launch;
}
inline MixedLaunch MixedLaunches::rarely(int a) {
  const int what = pick(6);
  if (what == 0) {
    MixedLaunch launch = named("deactivate_all", a, a);
    launch.apply = [a](Models& m, uint64_t) { m[a].deactivate_all(); };
    launch.call = [&tree = trees_[a]->tree] { return tree.deactivate_all(); };
    launch.removes = true;
    return launch;
  }
  if (what == 1 && shape(a).has_inactive(inner(a))) {
    MixedLaunch launch = named("deactivate_node", a, inner(a));
    launch.apply = [a, level = inner(a)](Models& m, uint64_t) {
      for (int i = 0; i < m[a].shape->count(level); ++i) m[a].deactivate(level, i);
    };
    launch.bound = bind_deactivate_all(trees_[a]->nodes[inner(a)]);
    launch.removes = launch.can_repeat = true;
    return launch;
  }
  if (what > 3) return bulk_activate(a);
  MixedLaunch launch = named(what == 2 ? "trim" : "reserve", a, a);
  const int cells = what == 2 ? 0 : pick(300);
  launch.apply = [a, cells](Models& m, uint64_t) { m[a].taken_chunks += static_cast<uint64_t>(cells); };
  if (what == 2)
    launch.call = [&tree = trees_[a]->tree] { return tree.trim(); };
  else
    launch.call = [node = trees_[a]->list_node(), cells] {
      return node.reserve(static_cast<uint64_t>(cells));
    };
  return launch;
}

}  // namespace coppice::mixed
