// Launches and calls of the host that the mixed model (mixed_model.h) draws at random,
// each with what the reference does.
//
// A launch of several items has an outcome that does not depend on their order, or one of those that a check
// knows: of several writers of a cell there is one, what goes and what comes in one launch are in different
// cells of the top node or one item's alone, and lists may get their elements in any order.
// The file is long because there are that many kinds of launches: each is a few lines, beside its reference.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "sparse/bulk_append.h"
#include "tests/sparse/mixed_tree.h"
#include "tests/sparse/traced.h"

namespace coppice::mixed {

// Where a loop's launch sends a coordinate of tree `from`, as a number in node `level` of tree `to`.
inline int place_number(const MixedShape& from, const MixedShape& to, int level, uint32_t salt, Coord3 c) {
  const Coord3 first = to.first(level), n = to.cells(level);
  const int box[6] = {first[0], first[1], first[2], n[0], n[1], n[2]};
  int key[3] = {0, 0, 0};
  Coord3 at = first;
  for (int d = 0; d < from.dims; ++d) key[d] = c[d];
  for (int d = 0; d < from.dims; ++d) at[d] = place_on(d, salt, key, box);
  return to.number(level, at);
}

struct MixedLaunch {
  std::string name;
  std::optional<BoundLaunch> bound;            // not of the host's calls
  std::function<AsyncValueRef<Chain>()> call;  // of these
  std::function<void(std::vector<ModelTree>&, uint64_t launch)> apply;
  std::function<void(const std::vector<ModelTree>& now)> verify = [](const auto&) {};
  std::vector<IntrusivePtr<Buffer>> kept;
  IntrusivePtr<Buffer> counter;  // u32; each item adds one
  uint32_t counted = 0;          // what it should be then
  uint64_t operations = 0;       // items' own, or cells and elements of a loop; known when it was applied
  bool is_alone = false;         // what it leaves is to be looked at before the next one
  bool can_repeat = false;       // gives the reference's result any number of times
  bool may_lack_room = false;    // its needs may be such that only the launch itself can show them
  // Room is not made for it: where memory is at its end, what finds a cell happens.
  bool happens_in_part = false;
  bool removes = false;         // takes cells or elements away
  bool changes_values = false;  // of cells that there are
  // The Error that it must end in; nothing may be queued behind it, and `apply` says what is left.
  std::optional<ErrorCode> fails;
};

class MixedLaunches {
 public:
  using Models = std::vector<ModelTree>;
  // `most` operations in a launch, of the first `num_kinds` kinds.
  MixedLaunches(Program& program, std::vector<std::unique_ptr<MixedTree>>& trees, int num_kinds, int most,
                uint64_t most_elements)
      : program_(program), trees_(trees), num_kinds_(num_kinds), most_(most), most_elements_(most_elements) {}

  MixedLaunch draw(std::mt19937& random, const Models& models) {
    random_ = &random, models_ = &models;
    const int a = pick(size(trees_)), b = pick(3) == 0 ? a : pick(size(trees_));
    if (models[a].count_elements() > most_elements_ || models[b].count_elements() > most_elements_)
      return clear_lists(models[a].count_elements() > most_elements_ ? a : b);
    return make(pick(num_kinds_), a, b);
  }
  // One of each kind, below kKinds; on the first tree, and on the last. Those from
  // kWithoutTools on are of mixed_tools.h.
  static constexpr int kWithoutTools = 30, kKinds = 44;
  MixedLaunch draw_kind(int kind, std::mt19937& random, const Models& models) {
    random_ = &random, models_ = &models;
    return make(kind, 0, size(trees_) - 1);
  }

 private:
  MixedLaunch make(int kind, int a, int b) {
    switch (kind) {
      case 0:
      case 1:
        return grow(a, b);
      case 2:
      case 3:
        return append(a, b);
      case 4:
      case 5:
      case 6:
        return lists(a, b);
      case 7:
        return update(a, b);
      case 8:
        return copy(a, b);
      case 9:
        return cells(a, b);
      case 10:
        return sum(a, b);
      case 11:
        return entries(a, b);
      case 12:
        return entry_update(a, b);
      case 13:
        return blocks(a, b);
      case 14:
        return team(a, b);
      case 15:
      case 16:
        return move(a, b);
      case 17:
      case 18:
        return churn(a);
      case 19:
        return shrink(a);
      case 20:
        return ask(a, b);
      case 21:
        return draw_places(b);
      case 22:
        return age(a, b);
      case 23:
        return bulk_activate(a);
      case 24:
        return bulk_append(a);
      case 25:
        return count(b);
      case 26:
      case 27:
        return refill(a);
      case 28:
      case 29:
        return rarely(a);
      default:
        return make_tool(kind - kWithoutTools, a, b);
    }
  }

  // Trees by number that an operation's deeds are done to.
  struct Targets {
    int x, leaf, v;
  };
  enum AppendOrder { kAnyOrder, kInOrder, kContended };  // of an append or clear, its last number

  static int size(const auto& v) { return static_cast<int>(v.size()); }
  int pick(int below) { return static_cast<int>((*random_)() % static_cast<unsigned>(below)); }
  int draw_count() { return pick(8) == 0 ? 1 + pick(most_) : 1 + pick(most_ / 8 + 1); }
  const MixedShape& shape(int a) const { return trees_[a]->shape; }
  int inner(int a) const { return std::min(1, shape(a).leaf()); }
  Coord3 leaf_coord(int a, int number) const { return shape(a).coord(shape(a).leaf(), number); }
  int pick_leaf(int a) { return pick(shape(a).count(shape(a).leaf())); }
  // Lists are often the same few.
  int pick_list(int a) {
    const int n = shape(a).count(shape(a).lists_below);
    return pick(2) == 0 ? pick(n) : pick(std::min(n, 3));
  }
  bool is_known(int a, int list) const { return (*models_)[a].lists[list].later.empty(); }
  // Returns in which of two halves of a tree a cell's top cell is.
  bool goes(int a, int level, int number, unsigned salt) const {
    return hash_u32(salt, static_cast<uint64_t>(shape(a).holder(level, number, 0))) % 2 != 0;
  }

  template <class T>
  T* keep(MixedLaunch& launch, const std::vector<T>& values) {
    launch.kept.push_back(wait_device_copy(program_.device(), values));
    return launch.kept.back()->template as<T>();
  }
  uint32_t* keep_counter(MixedLaunch& launch, int items) {
    uint32_t* const counter = keep(launch, std::vector<uint32_t>{0});
    launch.counter = launch.kept.back(), launch.counted = static_cast<uint32_t>(items);
    return counter;
  }
  MixedLaunch named(const char* name, int a, int b) {
    MixedLaunch launch;
    launch.name = fmt::format("{}({}, {})", name, a, b);
    return launch;
  }

  // ---- launches over items
  static void apply_append(ModelList& list, ModelTree& tree, int number, const int* o, uint64_t launch) {
    if (o[5] == kAnyOrder) return tree.append(number, o[4], launch);
    tree.activate(tree.shape->lists_below, number);
    ++tree.taken_chunks;
    if (o[5] == kContended)
      list.is_open = true;
    else if (list.later.empty())
      list.known.push_back(o[4]);
    else
      list.later.push_back({o[4]});
  }
  static void apply_list(ModelTree& tree, const int* o, uint64_t launch) {
    const int number = tree.shape->number(tree.shape->lists_below, {o[1], o[2], o[3]});
    ModelList& list = tree.lists[number];
    if (o[0] == kAppend) return apply_append(list, tree, number, o, launch);
    if (o[0] == kClear) return list.clear(), void(list.is_open = o[5] == kContended);
    if (o[0] != kSetElement) return;
    tree.activate(tree.shape->lists_below, number);
    const auto index = static_cast<size_t>(o[4]);
    tree.taken_chunks += index / static_cast<size_t>(tree.shape->chunk) + 1;
    list.known.resize(std::max(list.known.size(), index + 1));
    list.known[index] = o[5];
  }
  static void apply_operation(Models& m, const Targets& t, const int* o, uint64_t launch) {
    const Coord3 c{o[1], o[2], o[3]};
    ModelTree& tree = m[o[0] == kActivateLeaf ? t.leaf : t.x];
    const MixedShape& s = *tree.shape;
    const int leaf = s.leaf(), inner = std::min(1, leaf);
    switch (o[0]) {
      case kSet:
        return tree.set(s.number(leaf, c), o[4]);
      case kAdd:
        return void(tree.y[s.number(leaf, c)] = wrapping_sum(tree.y[s.number(leaf, c)], o[4]));
      case kActivateInner:
        return tree.activate(inner, s.number(inner, c));
      case kActivateLeaf:
        return tree.activate(leaf, s.number(leaf, c));
      case kDeactivateTop:
        return tree.deactivate(0, s.number(0, c));
      case kDeactivateInner:
        return tree.deactivate(inner, s.number(inner, c));
      case kDeactivateLeaf:
        return tree.deactivate(leaf, s.number(leaf, c));
      case kNothing:
        return;
      default:
        return apply_list(m[t.v], o, launch);
    }
  }
  void apply_items(MixedLaunch& launch, const Targets& targets, const std::vector<int>& operations) {
    launch.operations = operations.size() / kNumbers;
    launch.apply = [targets, operations](Models& m, uint64_t number) {
      for (size_t at = 0; at < operations.size(); at += kNumbers)
        apply_operation(m, targets, &operations[at], number);
    };
  }
  static void add(std::vector<int>& operations, int deed, Coord3 c, int a = 0, int b = 0) {
    MixedTree::add_coord(operations, deed, c, a, b);
  }
  void add_list(std::vector<int>& operations, int a, int deed, int list, int first, int second) {
    add(operations, deed, shape(a).coord(shape(a).lists_below, list), first, second);
  }

  MixedLaunch grow(int a, int b) {
    MixedLaunch launch = named("grow", a, b);
    const int per = 1 + pick(2), n = draw_count();
    std::vector<int> operations;
    std::set<int> written;
    for (int k = 0; k < n * per; ++k) {
      const int leaf = pick_leaf(a), what = pick(3);
      if (what == 0 && written.insert(leaf).second)
        add(operations, kSet, leaf_coord(a, leaf), next_value_++);
      else if (what == 1)
        add(operations, kActivateInner, shape(a).coord(inner(a), pick(shape(a).count(inner(a)))));
      else
        add(operations, kActivateLeaf, leaf_coord(b, pick_leaf(b)));
    }
    apply_items(launch, {a, b, a}, operations);
    launch.bound = COPPICE_MIXED_BIND(program_, shape(a).dims, mixed_grow, range(n), trees_[a]->x,
                                      trees_[a]->topology(inner(a)), trees_[b]->topology(shape(b).leaf()),
                                      keep(launch, operations), per);
    launch.can_repeat = launch.happens_in_part = true;
    return launch;
  }
  MixedLaunch append(int a, int b) {
    MixedLaunch launch = named("append", a, b);
    const int per = 1 + pick(3), n = draw_count();
    std::vector<int> operations;
    std::set<int> written;
    for (int k = 0; k < n * per; ++k) {
      const int leaf = pick_leaf(b);
      if (pick(3) == 0 && written.insert(leaf).second)
        add(operations, kSet, leaf_coord(b, leaf), next_value_++);
      else
        add_list(operations, a, kAppend, pick_list(a), next_value_++, kAnyOrder);
    }
    apply_items(launch, {b, b, a}, operations);
    launch.bound = COPPICE_MIXED_BIND(program_, shape(a).dims, mixed_append, range(n), trees_[a]->v,
                                      trees_[b]->x, keep(launch, operations), per);
    launch.can_repeat = true;
    return launch;
  }
  uint32_t* keep_indices(MixedLaunch& launch, int a, const std::vector<int>& operations, int per);
  template <class T>
  std::vector<T> fetch(const Buffer& from, size_t n) const {
    std::vector<T> values(n);
    if (n > 0) program_.device().wait_copy(values.data(), from.data(), n * sizeof(T));
    return values;
  }
  void check_contended(int a, const std::vector<int>& operations, size_t per,
                       const std::vector<uint32_t>& index, const std::vector<size_t>& before,
                       const Models& now) const;

  struct ListPlan {
    std::vector<int> operations;
    std::map<size_t, int> reads;  // what an operation must find
  };
  ListPlan plan_lists(int a, int b, int n, int per, bool is_plain);
  MixedLaunch lists(int a, int b);
  MixedLaunch refill(int a);

  // ---- launches in which cells go (mixed_changes.h)
  MixedLaunch move(int a, int b);
  MixedLaunch churn(int a);
  MixedLaunch shrink(int a);

  MixedLaunch sum(int a, int b) {
    MixedLaunch launch = named("sum", a, b);
    std::vector<int> active, operations;
    for (int i = 0; i < shape(a).count(shape(a).leaf()); ++i) {
      if ((*models_)[a].is_active(shape(a).leaf(), i)) active.push_back(i);
    }
    const int n = draw_count();
    for (int k = 0; k < n; ++k) {
      if (!active.empty() && pick(3) != 0)
        add(operations, kAdd, leaf_coord(a, active[pick(size(active))]), 1 + pick(100));
      else
        add(operations, kActivateLeaf, leaf_coord(b, pick_leaf(b)));
    }
    apply_items(launch, {a, b, a}, operations);
    launch.bound = COPPICE_MIXED_BIND(program_, shape(a).dims, mixed_sum, range(n), trees_[a]->y,
                                      trees_[b]->topology(shape(b).leaf()), keep(launch, operations), 1);
    launch.changes_values = true;
    return launch;
  }
  MixedLaunch ask(int a, int b) {
    MixedLaunch launch = named("ask", a, b);
    const unsigned salt = (*random_)();
    std::vector<int> operations, grown;
    uint32_t counted = 0;
    for (int k = draw_count(); k > 0; --k) {
      const int asked = pick_leaf(a), then = pick_leaf(b);
      if (a == b && (!goes(a, shape(a).leaf(), asked, salt) || goes(b, shape(b).leaf(), then, salt)))
        continue;
      add(operations, kNothing, leaf_coord(a, asked)), add(operations, kNothing, leaf_coord(b, then));
      if (!(*models_)[a].is_active(shape(a).leaf(), asked)) continue;
      ++counted, add(grown, kActivateLeaf, leaf_coord(b, then));
    }
    apply_items(launch, {a, b, a}, grown);
    launch.operations = operations.size() / kNumbers;
    uint32_t* const counter = keep_counter(launch, static_cast<int>(counted));
    launch.bound = COPPICE_MIXED_BIND(
        program_, shape(a).dims, mixed_ask, range(static_cast<int64_t>(operations.size() / (2 * kNumbers))),
        trees_[a]->topology(shape(a).leaf()), trees_[b]->topology(shape(b).leaf()), keep(launch, operations),
        counter);
    launch.may_lack_room = true;
    return launch;
  }
  MixedLaunch count(int b) {
    MixedLaunch launch = named("count", b, b);
    const uint32_t salt = (*random_)();
    const int n = draw_count();
    std::vector<int> operations;
    for (int k = 0; k < n; ++k)
      add(operations, kActivateLeaf,
          leaf_coord(b, place_number(shape(b), shape(b), shape(b).leaf(), salt, {k, 0, 0})));
    apply_items(launch, {b, b, b}, operations);
    const std::vector<int> box = trees_[b]->box(shape(b).leaf());
    uint32_t* const counter = keep_counter(launch, n);
    launch.bound = COPPICE_MIXED_BIND(program_, shape(b).dims, mixed_count, range(n),
                                      trees_[b]->topology(shape(b).leaf()), salt, box[0], box[1], box[2],
                                      box[3], box[4], box[5], counter);
    launch.can_repeat = true;
    return launch;
  }
  MixedLaunch draw_places(int b) {
    MixedLaunch launch = named("draw", b, b);
    std::vector<int> operations;
    const int n = draw_count();
    for (int k = 0; k < n; ++k) add(operations, kActivateLeaf, leaf_coord(b, pick_leaf(b)));
    apply_items(launch, {b, b, b}, operations);
    uint32_t* const counter = keep_counter(launch, n);
    launch.bound =
        COPPICE_MIXED_BIND(program_, shape(b).dims, mixed_draw, range(n),
                           trees_[b]->topology(shape(b).leaf()), keep(launch, operations), counter);
    launch.may_lack_room = true;
    return launch;
  }

  // ---- launches over lists (mixed_lists.h), cells, blocks and elements (mixed_loops.h)
  MixedLaunch update(int a, int b);
  MixedLaunch copy(int a, int b);
  MixedLaunch cells(int a, int b);
  MixedLaunch entries(int a, int b);
  MixedLaunch entry_update(int a, int b);
  MixedLaunch blocks(int a, int b);
  MixedLaunch team(int a, int b);
  MixedLaunch age(int a, int b);
  // Cells of bitmasked and pointer nodes that come while a loop is in their container may be visited or not.
  bool loop_sees(int a, int b, int level) const {
    return a == b && level == shape(a).leaf() && shape(a).has_inactive(level);
  }
  uint64_t count_loop(int a) const { return (*models_)[a].count_cells(shape(a).leaf()); }

  // ---- calls of the host (mixed_loops.h)
  MixedLaunch bulk_activate(int a);
  MixedLaunch bulk_append(int a);
  MixedLaunch clear_lists(int a);
  MixedLaunch rarely(int a);

  // ---- topology tools, stencils, boxes, and what must fail (mixed_tools.h)
  MixedLaunch make_tool(int kind, int a, int b);
  int pick_unit(int a);
  Coord3 pick_outside(int a, int level);
  MixedLaunch dilate_cells(int a);
  MixedLaunch erode_cells(int a);
  MixedLaunch combine(int a, int b);
  MixedLaunch prune_cells(int a);
  MixedLaunch stencil(int a, bool is_star);
  MixedLaunch scatter(int a);
  MixedLaunch box(int a, int b);
  MixedLaunch call_outside(int a);
  MixedLaunch store_outside(int a);
  MixedLaunch add_to_inactive(int a, int b);

  static constexpr uint32_t kNoPlace = ~uint32_t{0} - 7;

  Program& program_;
  std::vector<std::unique_ptr<MixedTree>>& trees_;
  const int num_kinds_, most_;
  const uint64_t most_elements_;
  std::mt19937* random_ = nullptr;
  const Models* models_ = nullptr;
  int next_value_ = 1000;  // each but once
};

}  // namespace coppice::mixed
