// How a world of random functions gives each statement (see random_world.h), and what is seen of it.
#pragma once
#include "tests/sparse/random_world.h"

namespace coppice::random_functions {

// Pairs of fields of one tree: of which a kernel reads one and changes the other.
inline constexpr std::array<std::array<int, 2>, kPairs> kFieldPairs{{{0, 1}, {1, 2}, {2, 0}, {3, 4}}};

inline void World::give_cells(const Statement& s) {
  const auto& [a, b] = kFieldPairs[static_cast<size_t>(s.n[0] % kPairs)];
  const int one = s.n[0] % kFields, by = s.n[1] % 100 - 50;
  // The neighbour of a dense leaf's cell is as active as the cell; that of a bit may not be.
  const int flip = tree_of(a) == 0 ? 1 : 0;
  switch (s.deed) {
    case Deed::kAssign:
      return launch(assign, over_field(one), field(one), by);
    case Deed::kAssignBySlot:
      return launch(assign, over_field(one), field(one), values_[s.n[1] % kSlots]);
    case Deed::kAssignBox: {
      const int low = s.n[1] % kDomain, high = std::min(kDomain, low + s.n[2] % 100);
      return launch(assign, over_box(leaf_[tree_of(one)], {low}, {high}), field(one), by);
    }
    case Deed::kCopyScaled:
      return launch(copy_scaled, over_field(a), field(a), field(b), by);
    case Deed::kChange:
      return launch(change, over_field(one), field(one), by);
    case Deed::kSumNear:
      return launch(sum_near, over_field(a), field(a), field(b));
    case Deed::kDeposit:
      return launch(deposit, over_field(a), field(a), field(b), flip);
    case Deed::kDepositNear:
      return launch(deposit_near, over_field(a), field(a), field(b), flip);
    default:
      return launch(noise, over_field(one), field(one));
  }
}

inline void World::give_topology(const Statement& s) {
  const int n = s.n[1] % 100, which = s.n[2] % 3;
  const bool is_first = s.n[0] % 2 == 0;
  const uint32_t* const at = words(s.n[3]);
  switch (s.deed) {
    case Deed::kGather:
      return launch(gather, over_field(is_first ? 0 : 3), field(is_first ? 0 : 3), words(s.n[1]));
    case Deed::kLoad:
      return launch(load, over_field(is_first ? 1 : 4), field(is_first ? 1 : 4), words(s.n[1]));
    case Deed::kMirror:
      return launch(mirror, over_field(is_first ? 3 : 1), field(is_first ? 0 : 4), field(is_first ? 3 : 1));
    case Deed::kSpread:
      return launch(spread, over_field(is_first ? 0 : 3), field(is_first ? 0 : 3), field(is_first ? 4 : 2),
                    1 + s.n[2] % 5);
    case Deed::kShrink:
      return launch(shrink, over_field(0), field(0), leaf_[1].topology());
    case Deed::kGrowAt:
      return launch(grow_at, range(n), field(which + 1), at, 1 + s.n[4] % 9);
    case Deed::kGrowDrawn:
      return launch(grow_drawn, range(n % 20), field(is_first ? 1 : 4), 1 + s.n[2] % kDomain);
    case Deed::kActivateAndCount:
      return launch(activate_and_count, range(n), leaf_[is_first ? 0 : 1].topology(), 1 + s.n[2] % 99,
                    words(s.n[3]) + s.n[4] % kWords);
    case Deed::kDeactivateAt:
      if (which == 2) return launch(deactivate_at, range(n), leaf_[1].topology(), at, uint32_t{kDomain});
      return launch(deactivate_at, range(n % 10), upper_[which].topology(), at, which == 0 ? 32u : 16u);
    default: {
      const std::array<Node, 6> nodes{leaf_[1],         upper_[0], upper_[1],
                                      trees_[0].root(), lists_,    trees_[2].root()};
      nodes[static_cast<size_t>(s.n[0] % 6)].deactivate_all();
    }
  }
}

inline void World::give_lists(const Statement& s) {
  const uint32_t* const at = words(s.n[0]);
  switch (s.deed) {
    case Deed::kAppendAt:
      return launch(append_at, range(s.n[1] % 150), v_, at, s.n[2]);
    case Deed::kAppendCells:
      return launch(append_cells, over_field(0), field(0), v_);
    case Deed::kClearLists:
      if (s.n[2] % 2 == 0) return launch(clear_lists_at, range(s.n[1] % 10), v_, at);
      return launch(deactivate_at, range(s.n[1] % 10), upper_[2].topology(), at, uint32_t{kLists});
    case Deed::kSumLists:
      return launch(sum_lists, over(lists_), v_, sums_);
    default:
      return launch(change_entries, over(lists_), v_, s.n[1]);
  }
}

inline void World::give_words(const Statement& s) {
  const int n = s.n[0] % (kWords + 1), by = 1 + s.n[3] % 100;
  uint32_t *const to = words(s.n[1]), *const other = words(s.n[1] + 1 + s.n[2] % (kBuffers - 1));
  switch (s.deed) {
    case Deed::kMixWords:
      return launch(mix_words, range(n), to, words(s.n[2]), by);
    case Deed::kMixCounted:
      launch(choose_count, range(1), other + s.n[4] % kWords, counts_->as<uint64_t>());
      return launch(mix_words, range_on_device(counts_->as<uint64_t>()), to, words(s.n[2]), by);
    case Deed::kShuffleWords:
      return launch(shuffle_words, range(n), to, other, by);
    case Deed::kDrawNumbers:
      return launch(draw_numbers, range(n), to);
    case Deed::kCountWords:
      return launch(count_words, range(n), other, to);
    default:
      return launch(mix_behind_members, range(n), CoppiceWords{to, other, static_cast<uint32_t>(by)});
  }
}

inline void World::give_buffers(const Statement& s) {
  const int n = s.n[0] % (kWords + 1), bins = s.n[3] % kWords, bytes = n * 4;
  const BufferRef &a = words_[s.n[1] % kBuffers], &b = words_[(s.n[1] + 1 + s.n[2] % 3) % kBuffers];
  Device& d = *device_;
  switch (s.deed) {
    case Deed::kFill:
      return void(fill(d, a, s.n[4] % 256, s.n[3] % (kWords * 4 - bytes + 1), bytes));
    case Deed::kCopy:
      return void(copy(d, a, s.n[3] % (kWords * 4 - bytes + 1), b, s.n[4] % (kWords * 4 - bytes + 1), bytes));
    case Deed::kSort32:
      return void(sort_by_key<uint32_t>(d, a, b, n));
    case Deed::kSort64:
      return void(sort_by_key<uint64_t>(d, a, b, n / 2));
    case Deed::kScan:
      return void(exclusive_scan(d, a, s.n[4] % 2 == 0 ? a : b, n));
    case Deed::kHistogram:
      return void(histogram(d, a, n, b, bins));
    default:
      sort_by_key<uint32_t>(d, a, b, n);
      return void(bin_starts(d, a, n, b, bins));
  }
}

inline std::vector<Observed> World::wait_observe() {
  uint32_t* const seen = seen_->as<uint32_t>();
  fill(*device_, seen_, 0, 0, kSeen * 4);
  launch(mark_cells, over(leaf_[0]), seen);
  launch(mark_cells, over(leaf_[1]), seen + kDomain);
  launch(mark_cells, over(upper_[2]), seen + 2 * kDomain);
  launch(mark_entries, over(lists_), v_, seen + 2 * kDomain + kLists);
  program_.wait();
  std::vector<Observed> all;
  const auto add_memory = [&](std::string name, const BufferRef& buffer) {
    std::vector<uint32_t> values(buffer->size_bytes() / sizeof(uint32_t));
    device_->wait_copy(values.data(), buffer->data(), buffer->size_bytes());
    all.push_back({std::move(name), std::move(values)});
  };
  const auto add_field = [&](std::string name, const Field<int>& field, int cells) {
    const std::vector<int> values = wait_read(field, {0}, {cells});
    all.push_back({std::move(name), {values.begin(), values.end()}});
  };
  add_memory("what is active, and lists", seen_);
  for (int f = 0; f < kFields; ++f) add_field("field " + std::to_string(f), fields_[f], kDomain);
  add_field("sums", sums_, kLists);
  for (int b = 0; b < kBuffers; ++b) add_memory("buffer " + std::to_string(b), words_[b]);
  add_memory("flags", flags_), add_memory("counts", counts_);
  return all;
}

}  // namespace coppice::random_functions
