// The loads of weak_memory.h.
#include <algorithm>
#include <cstring>

#include "gpu/simt/unit.h"
#include "gpu/simt/weak_memory.h"

namespace coppice::simt {
namespace {

constexpr size_t kMaxDeferred = 8;

}  // namespace

void WeakMemory::load(uint32_t thread, const void* address, void* to, size_t bytes, Order order) {
  if (!weak_) {
    std::memcpy(to, address, bytes);
    return;
  }
  tick();
  for_each_unit(reinterpret_cast<uintptr_t>(address), bytes,
                [&](uintptr_t unit, size_t first, size_t n, size_t done) {
                  if (!threads_[thread].deferred.empty()) await_at(thread, unit, bits(first, n));
                  const uint64_t value = read(thread, unit, bits(first, n), order) >> 8 * first;
                  std::memcpy(static_cast<unsigned char*>(to) + done, &value, n);
                });
}

uint64_t WeakMemory::read(uint32_t thread, uintptr_t unit, uint8_t bytes, Order order) {
  Thread& t = threads_[thread];
  uint64_t own = 0;
  uint8_t has_own = 0;
  if (t.pending != 0) {
    for (const Pending& p : pending_) {
      if (p.thread != thread || p.unit != unit) continue;
      const uint64_t mask = spread(p.bytes);
      own = (own & ~mask) | (p.value & mask);
      has_own |= p.bytes;
    }
    if ((bytes & ~has_own) == 0) return own;
  }
  uint64_t value;
  if (History* history = history_of(unit)) {
    const uint32_t index = choose(thread, *history, bytes, order);
    value = (*history)[index].value;
    if (order != Order::kPlain) observe(thread, *history, index, bytes, order);
  } else {
    value = memory_at(unit);
    if (order != Order::kPlain) acquire(t, histories_.of_gone(), acquires(order));
  }
  if (has_own == 0) return value;
  const uint64_t mask = spread(has_own);
  return (value & ~mask) | (own & mask);
}

// Returns null where nothing was written. Other launches may have written meanwhile, which is then known
// to everyone.
History* WeakMemory::history_of(uintptr_t unit) {
  History* history = histories_.find(unit);
  if (history == nullptr) return nullptr;
  const uint64_t now = memory_at(unit);
  if (history->newest().value != now) history->add({.value = now, .view = nullptr});
  return history;
}

uint32_t WeakMemory::choose(uint32_t thread, History& history, uint8_t bytes, Order order) {
  const uint32_t newest = history.size() - 1;
  const Mood& its = mood(thread);
  if (newest == 0 || !random_.one_in(its.stale_one_in)) return newest;
  uint32_t lowest = newest;
  for (; lowest > 0; --lowest) {
    const Message& m = history[lowest];
    if ((m.bytes & bytes) != 0 && (m.writer == kNoThread || knows(thread, m.writer, m.event))) break;
  }
  if (order != Order::kPlain) {
    for (uint32_t half = 0; half < 2; ++half) {
      const Floor* floor = (bytes >> 4 * half & 15) == 0 ? nullptr : history.floor(thread, half);
      while (floor != nullptr && lowest < newest && history[lowest].number < floor->number) ++lowest;
    }
  }
  return lowest + random_.below(newest - lowest + 1);
}

// A load with an order read what stood there after message `index`.
void WeakMemory::observe(uint32_t thread, History& history, uint32_t index, uint8_t bytes, Order order) {
  Thread& t = threads_[thread];
  const bool now = acquires(order);
  uint32_t relaxed_until = 0;  // messages that it may have read before
  for (uint32_t half = 0; half < 2; ++half) {
    if ((bytes >> 4 * half & 15) == 0) continue;
    Floor& floor = history.make_floor(thread, half, threads_.size());
    if (now && floor.was_relaxed != 0) relaxed_until = std::max<uint32_t>(relaxed_until, floor.number);
    floor.number = std::max<uint32_t>(floor.number, history[index].number) & 0x7fffffff;
    floor.was_relaxed = !now;
  }
  uint8_t left = bytes;  // those whose writer is yet to be found
  for (uint32_t i = index + 1; i-- > 0 && (left != 0 || relaxed_until != 0);) {
    const Message& m = history[i];
    const bool is_read = (m.bytes & left) != 0;
    if (is_read || m.number <= relaxed_until) acquire(t, m.view, now);
    if (!is_read) continue;
    left &= static_cast<uint8_t>(~m.bytes);
    if (m.writer != kNoThread && m.writer != thread) raise(t.observed, m.writer, m.event, threads_.size());
  }
}

void WeakMemory::acquire(Thread& t, const View& view, bool now) {
  if (view != nullptr) join(now ? t.known : t.acquirable, *view);
}

void WeakMemory::load_later(uint32_t thread, const void* address, void* to, size_t bytes, Order order) {
  Thread& t = threads_[thread];
  const size_t first = reinterpret_cast<uintptr_t>(address) % kUnitBytes;
  if (!weak_ || first + bytes > kUnitBytes || t.deferred.size() == kMaxDeferred ||
      !random_.one_in(mood(thread).defer_one_in)) {
    return load(thread, address, to, bytes, order);
  }
  await_at(thread, reinterpret_cast<uintptr_t>(address) - first, bits(first, bytes));
  t.deferred.push_back({reinterpret_cast<uintptr_t>(address), to, static_cast<uint32_t>(bytes), order});
}

void WeakMemory::perform(uint32_t thread, const Deferred& load) {
  const size_t first = load.address % kUnitBytes;
  const uint64_t value = read(thread, load.address - first, bits(first, load.bytes), load.order) >> 8 * first;
  std::memcpy(load.to, &value, load.bytes);
}

bool WeakMemory::is_deferred(uint32_t thread, const void* to) const {
  const auto& deferred = threads_[thread].deferred;
  return std::any_of(deferred.begin(), deferred.end(), [&](const Deferred& load) { return load.to == to; });
}

void WeakMemory::await(uint32_t thread, const void* to) {
  auto& deferred = threads_[thread].deferred;
  for (size_t i = 0; i < deferred.size(); ++i) {
    if (deferred[i].to != to) continue;
    const Deferred load = deferred[i];
    deferred.erase(deferred.begin() + static_cast<ptrdiff_t>(i));
    return perform(thread, load);
  }
}

void WeakMemory::await_at(uint32_t thread, uintptr_t unit, uint8_t bytes) {
  auto& deferred = threads_[thread].deferred;
  for (size_t i = 0; i < deferred.size();) {
    const Deferred load = deferred[i];
    const size_t first = load.address % kUnitBytes;
    if (load.address - first != unit || (bits(first, load.bytes) & bytes) == 0) {
      ++i;
      continue;
    }
    deferred.erase(deferred.begin() + static_cast<ptrdiff_t>(i));
    perform(thread, load);
  }
}

void WeakMemory::await_all(uint32_t thread) {
  auto& deferred = threads_[thread].deferred;
  for (const Deferred& load : deferred) perform(thread, load);
  deferred.clear();
}

}  // namespace coppice::simt
