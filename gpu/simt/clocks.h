// Keeps what a thread of the emulated GPU knows of the others: vector clocks over a launch's resident
// threads.
//
// Every store that reaches memory, and every access to shared memory, is an event of its thread with a
// number, from 1. Component u of a clock says up to which event of thread u something is known. An empty
// clock knows of nothing.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace coppice::simt {

using Clock = std::vector<uint32_t>;

inline void join(Clock& into, const Clock& from) {
  if (into.size() < from.size()) into.resize(from.size(), 0);
  for (size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}
inline bool contains(const Clock& clock, uint32_t thread, uint32_t event) {
  return thread < clock.size() && event <= clock[thread];
}
inline void raise(Clock& clock, uint32_t thread, uint32_t event, size_t threads) {
  if (clock.size() < threads) clock.resize(threads, 0);
  clock[thread] = std::max(clock[thread], event);
}

// Holds what a release passes on: shared by the messages that carry it, never changed. Null: nothing.
using View = std::shared_ptr<const Clock>;

inline View both(const View& a, const View& b) {
  if (a == nullptr || a == b) return b;
  if (b == nullptr) return a;
  auto joined = std::make_shared<Clock>(*a);
  join(*joined, *b);
  return joined;
}

}  // namespace coppice::simt
