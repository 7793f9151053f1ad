#include "gpu/simt/weak_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

// A unit may hold other objects' bytes and bytes of none, which sanitizers would report.
#if defined(__GNUC__)
#define COPPICE_UNCHECKED __attribute__((noinline, no_sanitize("address", "thread", "undefined")))
#endif

namespace coppice::simt {
namespace {

constexpr size_t kMaxDeferred = 8;

uint8_t bits(size_t first, size_t count) { return static_cast<uint8_t>(((1u << count) - 1) << first); }
uint64_t spread(uint8_t bytes) {
  uint64_t mask = 0;
  for (uint32_t i = 0; i < 8; ++i) mask |= (bytes >> i & 1u) != 0 ? uint64_t{0xff} << 8 * i : 0;
  return mask;
}

using Whole = volatile uint64_t __attribute__((may_alias));
using Half = volatile uint32_t __attribute__((may_alias));
using Byte = volatile unsigned char;

COPPICE_UNCHECKED uint64_t memory_at(uintptr_t unit) { return *reinterpret_cast<const Whole*>(unit); }

// Whole words as such: other launches may look at them meanwhile.
COPPICE_UNCHECKED void write_memory(uintptr_t unit, uint64_t value, uint8_t bytes) {
  if (bytes == 0xff) {
    *reinterpret_cast<Whole*>(unit) = value;
    return;
  }
  for (uint32_t half = 0; half < 2; ++half) {
    const uint32_t of_half = bytes >> 4 * half & 15u;
    if (of_half == 15) {
      reinterpret_cast<Half*>(unit)[half] = static_cast<uint32_t>(value >> 32 * half);
      continue;
    }
    for (uint32_t i = 4 * half; i < 4 * half + 4; ++i) {
      if ((bytes >> i & 1) != 0)
        reinterpret_cast<Byte*>(unit)[i] = static_cast<unsigned char>(value >> 8 * i);
    }
  }
}

bool acquires(Order order) { return order == Order::kAcquire || order == Order::kAcquireRelease; }
bool releases(Order order) { return order == Order::kRelease || order == Order::kAcquireRelease; }

// Calls part(unit, first byte in it, bytes, offset from the beginning) for what lies in each unit.
template <class Part>
void for_each_unit(uintptr_t address, size_t bytes, Part&& part) {
  for (size_t done = 0; done < bytes;) {
    const size_t first = (address + done) % kUnitBytes, n = std::min(bytes - done, kUnitBytes - first);
    part(address + done - first, first, n, done);
    done += n;
  }
}

}  // namespace

void WeakMemory::begin(uint64_t seed, bool weak, uint32_t threads) {
  random_ = Random(seed);
  weak_ = weak;
  buffer_one_in_ = 1 + random_.below(4);
  commit_one_in_ = 2u << (3 * random_.below(3));
  buffered_ = 4u << (2 * random_.below(3));
  histories_.begin(64u << (3 * random_.below(3)));
  if (threads_.size() != threads) threads_.assign(threads, {});
  moods_.assign((threads + 31) / 32, {});
  sequential_.clear();
}

void WeakMemory::begin_thread(uint32_t thread) {
  commit_own(thread);
  Thread& t = threads_[thread];
  t.birth = t.clock;
  t.known.clear();
  t.observed.clear();
  t.acquirable.clear();
  t.fence = nullptr;
  t.deferred.clear();
}

void WeakMemory::end() {
  while (!pending_.empty()) commit(0);
  histories_.clear();
  for (Thread& t : threads_) t.clock = 0;
}

WeakMemory::Mood& WeakMemory::mood(uint32_t thread) {
  Mood& mood = moods_[thread / 32];
  if (mood.left-- == 0) {
    mood.left = random_.below(256);
    mood.stale_one_in = 1u << random_.below(5);
    mood.defer_one_in = 1u << random_.below(4);
  }
  return mood;
}

// ---- loads

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

// Null where nothing was written. Other launches may have written meanwhile, which is then known to everyone.
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
    if (now && floor.was_relaxed) relaxed_until = std::max(relaxed_until, floor.number);
    floor.number = std::max(floor.number, history[index].number);
    floor.was_relaxed = (floor.was_relaxed || order == Order::kRelaxed) && !now;
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

// ---- stores

bool WeakMemory::store(uint32_t thread, void* address, const void* from, size_t bytes, Order order) {
  if (!weak_) {
    const bool changed = std::memcmp(address, from, bytes) != 0;
    std::memcpy(address, from, bytes);
    return changed;
  }
  tick();
  if (releases(order)) {
    await_all(thread);
    commit_own(thread);
  }
  const bool changed = std::memcmp(address, from, bytes) != 0;
  for_each_unit(reinterpret_cast<uintptr_t>(address), bytes,
                [&](uintptr_t unit, size_t first, size_t n, size_t done) {
                  if (!threads_[thread].deferred.empty()) await_at(thread, unit, bits(first, n));
                  uint64_t value = 0;
                  std::memcpy(&value, static_cast<const unsigned char*>(from) + done, n);
                  write(thread, unit, value << 8 * first, bits(first, n), order);
                });
  return changed;
}

void WeakMemory::write(uint32_t thread, uintptr_t unit, uint64_t value, uint8_t bytes, Order order) {
  Pending store{unit, value, thread, bytes, view_of(thread, unit, bytes, order)};
  if (!random_.one_in(buffer_one_in_)) {
    commit_own_at(thread, unit, bytes);
    return reach_memory(std::move(store));
  }
  if (pending_.size() >= buffered_) commit_some();
  pending_.push_back(std::move(store));
  ++threads_[thread].pending;
}

// What a store there passes on.
View WeakMemory::view_of(uint32_t thread, uintptr_t unit, uint8_t bytes, Order order) {
  if (order == Order::kPlain) return nullptr;
  if (releases(order)) return release_view(thread);
  View view = threads_[thread].fence;
  for (const Pending& p : pending_) {
    if (p.thread == thread && p.unit == unit && (p.bytes & bytes) != 0) view = both(view, p.view);
  }
  History* const history = histories_.find(unit);
  if (history == nullptr) return both(view, histories_.of_gone());
  for (uint32_t i = history->size(); i-- > 0;) {
    const Message& m = (*history)[i];
    const bool is_own = m.writer == thread && m.event > threads_[thread].birth;
    if (is_own || m.writer == kNoThread) view = both(view, m.view);
    if (is_own && (m.bytes & bytes) != 0) break;
  }
  return view;
}

View WeakMemory::release_view(uint32_t thread) {
  const Thread& t = threads_[thread];
  auto view = std::make_shared<Clock>(t.known);
  join(*view, t.observed);
  raise(*view, thread, t.clock, threads_.size());
  return view;
}

// Or an earlier one of its thread to the same bytes, which goes before it.
void WeakMemory::commit(size_t index) {
  for (size_t i = index; i-- > 0;) {
    const Pending &earlier = pending_[i], &later = pending_[index];
    if (earlier.thread == later.thread && earlier.unit == later.unit && (earlier.bytes & later.bytes) != 0)
      index = i;
  }
  Pending store = std::move(pending_[index]);
  pending_.erase(pending_.begin() + static_cast<ptrdiff_t>(index));
  --threads_[store.thread].pending;
  reach_memory(std::move(store));
}

void WeakMemory::reach_memory(Pending p) {
  History* history = history_of(p.unit);
  if (history == nullptr) history = &histories_.make(p.unit, memory_at(p.unit));
  const uint64_t mask = spread(p.bytes);
  const uint64_t value = (history->newest().value & ~mask) | (p.value & mask);
  write_memory(p.unit, value, p.bytes);
  history->add({.value = value,
                .writer = p.thread,
                .event = new_event(p.thread),
                .bytes = p.bytes,
                .view = std::move(p.view)});
}

void WeakMemory::commit_some() { commit(random_.below(static_cast<uint32_t>(pending_.size()))); }

void WeakMemory::commit_own(uint32_t thread) {
  for (size_t i = 0; threads_[thread].pending != 0;) {
    if (pending_[i].thread == thread)
      commit(i);
    else
      ++i;
  }
}

void WeakMemory::commit_own_at(uint32_t thread, uintptr_t unit, uint8_t bytes) {
  if (threads_[thread].pending == 0) return;
  for (size_t i = 0; i < pending_.size();) {
    const Pending& store = pending_[i];
    if (store.thread == thread && store.unit == unit && (store.bytes & bytes) != 0)
      commit(i);
    else
      ++i;
  }
}

void WeakMemory::wait(uint32_t thread) {
  await_all(thread);
  if (!pending_.empty() && random_.one_in(4)) commit_some();
}

// ---- read-modify-writes

void WeakMemory::before_update(uint32_t thread, const void* address, size_t bytes, Order order) {
  if (!weak_) return;
  tick();
  const uintptr_t first = reinterpret_cast<uintptr_t>(address) % kUnitBytes;
  const uintptr_t unit = reinterpret_cast<uintptr_t>(address) - first;
  const uint8_t used = bits(first, bytes);
  if (order == Order::kRelaxed) {
    await_at(thread, unit, used);
    commit_own_at(thread, unit, used);
  } else {
    await_all(thread);
    commit_own(thread);
  }
  History* history = history_of(unit);
  if (history == nullptr) history = &histories_.make(unit, memory_at(unit));
  observe(thread, *history, history->size() - 1, used, order);
}

void WeakMemory::after_update(uint32_t thread, const void* address, size_t bytes, Order order) {
  if (!weak_) return;
  const uintptr_t first = reinterpret_cast<uintptr_t>(address) % kUnitBytes;
  const uintptr_t unit = reinterpret_cast<uintptr_t>(address) - first;
  const uint8_t written = bits(first, bytes);
  History* const history = histories_.find(unit);
  View view = releases(order) ? release_view(thread) : view_of(thread, unit, written, order);
  for (uint32_t i = history->size(); i-- > 0;) {
    view = both(view, (*history)[i].view);
    if (((*history)[i].bytes & written) != 0) break;
  }
  history->add({.value = memory_at(unit),
                .writer = thread,
                .event = new_event(thread),
                .bytes = written,
                .view = std::move(view)});
}

// ---- fences and barriers

void WeakMemory::fence(uint32_t thread) {
  if (!weak_) return;
  await_all(thread);
  commit_own(thread);
  Thread& t = threads_[thread];
  join(t.known, t.acquirable);
  t.fence = release_view(thread);
}

void WeakMemory::fence_sequentially(uint32_t thread) {
  if (!weak_) return;
  fence(thread);
  Thread& t = threads_[thread];
  join(t.known, sequential_);
  t.fence = release_view(thread);
  join(sequential_, *t.fence);
}

void WeakMemory::arrive(uint32_t thread, Clock& meeting) {
  await_all(thread);
  commit_own(thread);
  const Thread& t = threads_[thread];
  join(meeting, t.known);
  join(meeting, t.observed);
  raise(meeting, thread, t.clock, threads_.size());
}

}  // namespace coppice::simt
