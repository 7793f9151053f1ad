// The loops around a kernel over a range: of numbers, and of coordinates in two or three dimensions.
//
// Device-clean, for loops.h.
#pragma once
#include "sparse/device/kernel_call.h"

namespace coppice::device {

// Calls visit(item) for items [begin, end) of a range, shared among the threads that have them. Items of a
// launch are independent by contract where `kIndependent`; LLVM still decides whether vectorising pays.
template <class LoopItem, bool kIndependent, class Visit>
COPPICE_INLINE void each_item(const LaunchBlock* block, uint64_t begin, uint64_t end, WalkMemo* walks,
                              const Visit& visit) {
  const auto one = [&](uint64_t i) __attribute__((always_inline)) {
    visit(LoopItem{block, item_number(block, i), walks});
  };
  if constexpr (kIndependent) {
#pragma clang loop vectorize(assume_safety)
    for (uint64_t i = begin + coppice_lane(); i < end; i += coppice_lane_count()) one(i);
  } else {
    for (uint64_t i = begin + coppice_lane(); i < end; i += coppice_lane_count()) one(i);
  }
}

// Does so for a range of several dimensions: a CPU's thread goes along rows, and divides for each row alone.
template <class LoopItem, bool kIndependent, class Visit>
requires(LoopItem::kDims > 1) COPPICE_INLINE
    void each_item(const LaunchBlock* block, uint64_t begin, uint64_t end, WalkMemo* walks,
                   const Visit& visit) {
  LoopBox box;
  __builtin_memcpy(&box, block->arguments + coppice_loop.box - 1, sizeof box);
  const uint64_t ny = static_cast<uint32_t>(box.high[1]) - static_cast<uint32_t>(box.low[1]),
                 nz = static_cast<uint32_t>(box.high[2]) - static_cast<uint32_t>(box.low[2]);
  // Numbers are added as unsigned ones: a range may begin below zero and have more than 2^31 on an axis.
  const auto item = [&](uint64_t row, uint64_t z) __attribute__((always_inline)) {
    const auto from = [&](int d, uint64_t n) {
      return static_cast<int32_t>(static_cast<uint32_t>(box.low[d]) + static_cast<uint32_t>(n));
    };
    const int64_t index = static_cast<int64_t>(row * nz + z);
    if constexpr (LoopItem::kDims == 2)
      visit(LoopItem{block, index, {0, from(1, row), from(2, z)}, walks});
    else
      visit(LoopItem{block, index, {from(0, row / ny), from(1, row % ny), from(2, z)}, walks});
  };
  if (coppice_lane_count() > 1) {
    for (uint64_t i = begin + coppice_lane(); i < end; i += coppice_lane_count()) item(i / nz, i % nz);
    return;
  }
  for (uint64_t i = begin; i < end;) {
    const uint64_t row = i / nz, first = i % nz, last = nz - first < end - i ? nz : first + (end - i);
    if constexpr (kIndependent) {
#pragma clang loop vectorize(assume_safety)
      for (uint64_t z = first; z < last; ++z) item(row, z);
    } else {
      for (uint64_t z = first; z < last; ++z) item(row, z);
    }
    i += last - first;
  }
}

// Calls visit(item) as each_item() does, and makes each item's sums behind the next one.
template <class LoopItem, bool kIndependent, class... Args, class Visit>
COPPICE_INLINE void each_item_with_sums(const LaunchBlock* block, uint64_t begin, uint64_t end,
                                        WalkMemo* walks, const Visit& visit) {
  if constexpr ((false || ... || may_delay_sums<Args>())) {
    bool delays = false;
    each_handle_of<Args...>([&]<class H>(std::type_identity<H>, uint32_t b) {
      if constexpr (H::kRole == Role::kAccumulate)
        delays = delays || (coppice_fields[b].access & kDelaysSums) != 0;
    });
    if (coppice_has_workers() && delays) {  // no GPU's code has any of it, whatever it was specialized for
      DelayedSums delayed;
      walks->sums = &delayed;
      each_item<LoopItem, false>(
          block, begin, end, walks, [&](const LoopItem& item) __attribute__((always_inline)) {
            visit(item);
            end_item(&delayed);
          });
      make_all_sums(&delayed);
      return;
    }
  }
  each_item<LoopItem, kIndependent>(block, begin, end, walks, visit);
}

template <auto kKernel, class LoopItem, class... Args>
COPPICE_INLINE void run_items(const LaunchBlock* block, uint64_t begin, uint64_t end) {
  ArgumentReader reader{block};
  const std::tuple<Args...> pack{reader.next<Args>()...};
  WalkMemo walks{};
  const auto one = [&](const LoopItem& item) __attribute__((always_inline)) {
    call_kernel<kKernel, Args...>(pack, item, std::index_sequence_for<Args...>{});
  };
  if constexpr ((false || ... || remembers_walks<Args>())) {
    GatheredAppends appends;
    walks.appends = &appends;
    each_item_with_sums<LoopItem, false, Args...>(block, begin, end, &walks, one);
    each_handle_of<Args...>([&]<class H>(std::type_identity<H>, uint32_t b) {
      if constexpr (H::kRole == Role::kAppend)
        if (gathers<typename H::Value>(b)) append_gathered<typename H::Value>(block, b, &appends);
    });
  } else {
    each_item_with_sums<LoopItem, true, Args...>(block, begin, end, &walks, one);
  }
}

template <auto kKernel, class... Args>
COPPICE_INLINE void run_teams(const LaunchBlock* block, uint64_t begin, uint64_t end) {
  ArgumentReader reader{block};
  const std::tuple<Args...> pack{reader.next<Args>()...};
  for (uint64_t i = begin; i < end; ++i) {
    call_kernel<kKernel, Args...>(pack, Team{block, item_number(block, i)},
                                  std::index_sequence_for<Args...>{});
  }
}

}  // namespace coppice::device
