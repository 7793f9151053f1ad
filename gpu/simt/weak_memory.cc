#include "gpu/simt/weak_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "gpu/simt/unit.h"

namespace coppice::simt {

void WeakMemory::begin(uint64_t seed, bool weak, uint32_t threads) {
  random_ = Random(seed);
  weak_ = weak;
  buffer_one_in_ = 1 + random_.below(4);
  commit_one_in_ = 2u << (3 * random_.below(3));
  buffered_ = 4u << (2 * random_.below(3));
  histories_.begin(32u << (3 * random_.below(3)));
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

// Returns what a store there passes on.
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

// Commits the store, or an earlier one of its thread to the same bytes, which goes before it.
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
  const auto is_there = [&](const Pending& store) {
    return store.thread == thread && store.unit == unit && (store.bytes & bytes) != 0;
  };
  while (threads_[thread].pending != 0) {
    const auto store = std::find_if(pending_.begin(), pending_.end(), is_there);
    if (store == pending_.end()) return;
    commit(static_cast<size_t>(store - pending_.begin()));
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
