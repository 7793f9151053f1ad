// Sums that a thread of a CPU makes one item of a range later than the kernel asks for them.
//
// Device-clean. A locked instruction waits for its cache line, which another core may have, and whatever
// comes behind it waits too. So a thread only notes a sum at first and asks for the line; the sums of an item
// are made when the next one has noted its own. Nobody can tell, for a field that a kernel adds to has no
// handle of another kind in that launch (`kDelaysSums`). Sums keep their order.
#pragma once
#include "sparse/device/atomics.h"

namespace coppice::device {

struct DelayedSum {
  float* to;
  uint32_t floats;  // 1 to 4; the others are 0
  float values[4];
};
struct DelayedSums {
  static constexpr uint32_t kMost = 32;  // more than the nodes around a particle
  struct Bank {
    uint32_t count = 0;
    DelayedSum sums[kMost];
  };
  Bank banks[2];
  uint32_t current = 0;  // the bank of this item's sums; the other has those of the last one
};

// Tells whether sums of such values are delayed: some floats, of 16 bytes at most.
template <class T>
constexpr bool is_delayed_sum() {
  return sizeof(T) <= 16 && is_sum<T>() && numbers_are<T, IsFloat>();
}

COPPICE_INLINE void make_sum(const DelayedSum& s) {
  const auto is_aligned = [&](uint32_t i, uintptr_t bytes) {
    return reinterpret_cast<uintptr_t>(s.to + i) % bytes == 0;
  };
  if (s.floats == 4 && is_aligned(0, 16)) {
    coppice_add_four_f32(s.to, s.values[0], s.values[1], s.values[2], s.values[3], 0xf);
    return;
  }
  for (uint32_t i = 0; i < s.floats; ++i) {
    if (i + 1 < s.floats && is_aligned(i, 8)) {
      coppice_add_two_f32(s.to + i, s.values[i], s.values[i + 1]);
      ++i;
    } else {
      coppice_fetch_add_f32(s.to + i, s.values[i]);
    }
  }
}
COPPICE_INLINE void make_sums(DelayedSums::Bank* bank) {
  for (uint32_t i = 0; i < bank->count; ++i) make_sum(bank->sums[i]);
  bank->count = 0;
}
COPPICE_INLINE void make_all_sums(DelayedSums* delayed) {
  make_sums(&delayed->banks[1 - delayed->current]);
  make_sums(&delayed->banks[delayed->current]);
}
[[gnu::noinline]] inline void make_room_for_sums(DelayedSums* delayed) { make_all_sums(delayed); }

// Stands behind each item.
COPPICE_INLINE void end_item(DelayedSums* delayed) {
  delayed->current = 1 - delayed->current;
  make_sums(&delayed->banks[delayed->current]);
}

template <class T>
COPPICE_INLINE void delay_sum(DelayedSums* delayed, T* to, const T& value) {
  if (delayed->banks[delayed->current].count == DelayedSums::kMost) make_room_for_sums(delayed);
  DelayedSums::Bank& bank = delayed->banks[delayed->current];
  DelayedSum& s = bank.sums[bank.count++];
  s.to = reinterpret_cast<float*>(to), s.floats = sizeof(T) / sizeof(float);
  COPPICE_UNROLL
  for (float& v : s.values) v = 0;
  each_run(
      to, value, [&](const float* at, const float* from, auto count) __attribute__((always_inline)) {
        COPPICE_UNROLL
        for (int i = 0; i < count(); ++i) s.values[at - s.to + i] = from[i];
      });
  __builtin_prefetch(to, 1);
}

template <class T>
COPPICE_INLINE void add_now_or_later(const FieldBinding& f, DelayedSums* delayed, T* to, const T& value) {
  if constexpr (is_delayed_sum<T>()) {
    if (delayed != nullptr && (f.access & kDelaysSums) != 0) return delay_sum(delayed, to, value);
  }
  atomic_add_value(to, value);
}

}  // namespace coppice::device
