// Launches of mixed_launches.h in which cells go, and others come.
#pragma once
#include "tests/sparse/mixed_launches.h"

namespace coppice::mixed {

// Values that go with their block, and come elsewhere.
inline MixedLaunch MixedLaunches::move(int a, int b) {
  const MixedShape& s = shape(a);
  int level = s.leaf() > 0 && s.has_inactive(s.leaf() - 1) ? s.leaf() - 1 : s.leaf();
  if (!s.has_inactive(level)) return grow(a, b);
  MixedLaunch launch = named("move", a, b);
  const unsigned salt = (*random_)();
  std::vector<int> operations;
  std::set<int> blocks, targets;
  for (int k = draw_count(); k > 0; --k) {
    const int from = pick_leaf(a), to = pick_leaf(b), block = s.holder(s.leaf(), from, level);
    if (!goes(a, s.leaf(), from, salt) || (a == b && goes(b, s.leaf(), to, salt))) continue;
    if (blocks.contains(block) || targets.contains(to)) continue;
    blocks.insert(block), targets.insert(to);
    add(operations, kNothing, leaf_coord(a, from));
    add(operations, kNothing, s.coord(level, block));
    add(operations, kSet, leaf_coord(b, to));
  }
  launch.operations = operations.size() / kNumbers;
  launch.apply = [a, b, level, operations](Models& m, uint64_t) {
    const Models before = m;
    for (size_t at = 0; at < operations.size(); at += 3 * kNumbers) {
      const auto number = [&](int tree, int l, int n) {
        const int* o = &operations[at + static_cast<size_t>(n) * kNumbers];
        return m[tree].shape->number(l, {o[1], o[2], o[3]});
      };
      const int value = before[a].x[number(a, m[a].shape->leaf(), 0)];
      m[a].deactivate(level, number(a, level, 1));
      m[b].set(number(b, m[b].shape->leaf(), 2), value + 1);
    }
  };
  launch.bound = COPPICE_MIXED_BIND(
      program_, s.dims, mixed_move, range(static_cast<int64_t>(operations.size() / (3 * kNumbers))),
      trees_[a]->x, trees_[a]->topology(level), trees_[b]->x, keep(launch, operations));
  launch.can_repeat = launch.removes = launch.may_lack_room = true;
  return launch;
}
// Items have a cell of the top node each, and do to it what they like.
inline MixedLaunch MixedLaunches::churn(int a) {
  MixedLaunch launch = named("churn", a, a);
  const MixedShape& s = shape(a);
  std::vector<int> tops(s.count(0)), operations;
  for (int i = 0; i < size(tops); ++i) tops[i] = i;
  std::shuffle(tops.begin(), tops.end(), *random_);
  tops.resize(1 + pick(std::min(size(tops), most_)));
  const int per = 2 + pick(4);
  for (const int top : tops) {
    for (int k = 0; k < per; ++k) {
      Coord3 c = s.coord(0, top);
      for (int d = 0; d < 3; ++d) c[d] = c[d] * s.size(0)[d] + pick(s.size(0)[d]);
      const int leaf = s.number(s.leaf(), c), what = pick(8);
      int deed = what < 3 ? kSet : what < 5 ? kActivateLeaf : kDeactivateTop + what - 5;
      const int level = deed == kDeactivateTop ? 0 : deed == kDeactivateInner ? inner(a) : s.leaf();
      if (what >= 5 && !s.has_inactive(level)) deed = kNothing;  // the checks refuse it
      add(operations, deed, s.coord(level, s.holder(s.leaf(), leaf, level)),
          deed == kSet ? next_value_++ : 0);
    }
  }
  apply_items(launch, {a, a, a}, operations);
  launch.bound = COPPICE_MIXED_BIND(program_, s.dims, mixed_churn, range(size(tops)), trees_[a]->x,
                                    trees_[a]->topology(0), trees_[a]->topology(inner(a)),
                                    trees_[a]->topology(s.leaf()), keep(launch, operations), per);
  launch.can_repeat = launch.removes = launch.may_lack_room = true;
  return launch;
}
inline MixedLaunch MixedLaunches::shrink(int a) {
  MixedLaunch launch = named("shrink", a, a);
  const MixedShape& s = shape(a);
  std::vector<int> operations;
  const int n = draw_count() / 4 + 1;
  for (int k = 0; k < n; ++k) {
    const int what = pick(4), level = what == 0 ? 0 : what == 1 ? inner(a) : s.leaf();
    if (what == 3)
      add_list(operations, a, kClear, pick_list(a), 0, kInOrder);
    else
      add(operations, s.has_inactive(level) ? kDeactivateTop + what : kNothing,
          s.coord(level, pick(s.count(level))));
  }
  apply_items(launch, {a, a, a}, operations);
  launch.bound = COPPICE_MIXED_BIND(program_, s.dims, mixed_shrink, range(n), trees_[a]->v,
                                    trees_[a]->topology(0), trees_[a]->topology(inner(a)),
                                    trees_[a]->topology(s.leaf()), keep(launch, operations), 1);
  launch.can_repeat = launch.removes = true;
  return launch;
}

}  // namespace coppice::mixed
