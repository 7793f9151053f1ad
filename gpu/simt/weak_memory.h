// Memory of the emulated GPU, as weak as the memory model of PTX lets it be between threads of one launch.
//
// The contract, for each 8 aligned bytes (a unit) and with accesses of at most that; larger ones are several.
// - A store waits in its thread's buffer and reaches memory later, in any order but for its own unit's. The
//   thread itself sees it at once. What reached memory is a message: a value in its unit's history
//   (history.h), which is the coherence order.
// - A load takes any message that is not older than one that its thread knows of, whatever other units
//   showed: so a store that reached memory is seen by one thread and not by another. Loads with an order
//   never go back in what they read of a unit; plain ones may.
// - A load may wait until its value is used (load_later): stores behind it may reach memory first.
// - A thread knows of its own stores; of what an acquire made known: all that the release knew which the
//   message carries, and so on from thread to thread; of what it read by loads with an order, when it passes
//   that on itself. A relaxed load's message becomes known with the acquire fence, or the acquire of the same
//   place, behind it.
// - A release carries what its thread knows, its own stores in front of it included. So do relaxed stores
//   behind a release fence, relaxed stores where the thread released before, and read-modify-writes of what
//   carries it.
// - A read-modify-write takes the newest value, and nothing comes between it and its own.
// - A barrier makes known to all that meet what each of them knew. It is no acquire of what relaxed loads
//   read.
// - Fences of sequential consistency pass on everything to those behind them, in the order in which they run.
//   Where bookkeeping ends (bounded buffers and histories), everybody sees the newest value: the machine is
//   stronger there. Known to be stronger than PTX: a release passes on what the writers of relaxed values had
//   brought to memory before them; a release store waits for all loads in front of it; a read-modify-write is
//   done at once.
//
// Between launches memory is settled. Choices come from the seed and from the order of accesses, never from
// addresses. Without `weak` every access goes to memory at once. Addresses are the host's.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/simt/clocks.h"
#include "gpu/simt/history.h"
#include "gpu/simt/random.h"

namespace coppice::simt {

enum class Order : uint8_t { kPlain, kRelaxed, kAcquire, kRelease, kAcquireRelease };
inline bool acquires(Order order) { return order == Order::kAcquire || order == Order::kAcquireRelease; }
inline bool releases(Order order) { return order == Order::kRelease || order == Order::kAcquireRelease; }

class WeakMemory {
 public:
  // Begins a launch, with `threads` that are resident at a time, 32 of a warp in a row.
  void begin(uint64_t seed, bool weak, uint32_t threads);
  // Makes `thread` somebody else from now on, who knows of nothing.
  void begin_thread(uint32_t thread);
  void end();

  void load(uint32_t thread, const void* address, void* to, size_t bytes, Order order);
  // Returns true when it changed what this thread sees.
  bool store(uint32_t thread, void* address, const void* from, size_t bytes, Order order);
  // Makes a load whose value is used after await(thread, to) only.
  void load_later(uint32_t thread, const void* address, void* to, size_t bytes, Order order);
  void await(uint32_t thread, const void* to);
  bool is_deferred(uint32_t thread, const void* to) const;

  // These go around a read-modify-write on memory itself, of at most 8 bytes in one unit. The second is
  // called only where it wrote, before any other thread does anything.
  void before_update(uint32_t thread, const void* address, size_t bytes, Order order);
  void after_update(uint32_t thread, const void* address, size_t bytes, Order order);

  void fence(uint32_t thread);  // acquire and release
  void fence_sequentially(uint32_t thread);
  // At a barrier everyone arrives, then everyone leaves. `meeting` is empty at first.
  void arrive(uint32_t thread, Clock& meeting);
  void leave(uint32_t thread, const Clock& meeting) { threads_[thread].known = meeting; }
  void learn(uint32_t thread, const Clock& what) { join(threads_[thread].known, what); }
  // The thread waits for others: what is on its way to memory gets there in a while.
  void wait(uint32_t thread);

  // These serve shared memory, which is not kept here (shared_memory.h): they make a new event of the
  // thread, and tell whether it knows of one.
  uint32_t new_event(uint32_t thread) { return ++threads_[thread].clock; }
  bool knows(uint32_t thread, uint32_t other, uint32_t event) const {
    const Thread& t = threads_[thread];
    return (other == thread && event > t.birth) || contains(t.known, other, event);
  }
  size_t pending() const { return pending_.size(); }

 private:
  struct Deferred {
    uintptr_t address;
    void* to;
    uint32_t bytes;
    Order order;
  };
  struct Thread {
    uint32_t clock = 0;    // its events, and those of whoever had its number before
    uint32_t birth = 0;    // of these
    uint32_t pending = 0;  // of its stores
    Clock known;
    Clock observed;    // read by loads with an order: known to whoever acquires what it releases
    Clock acquirable;  // carried by messages that relaxed loads read
    View fence;        // of its last release fence
    std::vector<Deferred> deferred;
  };
  // This is a store on its way to memory.
  struct Pending {
    uintptr_t unit;
    uint64_t value;
    uint32_t thread;
    uint8_t bytes;
    View view;
  };
  // Says how a warp behaves for a while.
  struct Mood {
    uint32_t left = 0;  // loads until it changes
    uint32_t stale_one_in = 1;
    uint32_t defer_one_in = 1;
  };

  uint64_t read(uint32_t thread, uintptr_t unit, uint8_t bytes, Order order);
  uint32_t choose(uint32_t thread, History& history, uint8_t bytes, Order order);
  void observe(uint32_t thread, History& history, uint32_t index, uint8_t bytes, Order order);
  void write(uint32_t thread, uintptr_t unit, uint64_t value, uint8_t bytes, Order order);
  View view_of(uint32_t thread, uintptr_t unit, uint8_t bytes, Order order);
  View release_view(uint32_t thread);
  void acquire(Thread& t, const View& view, bool now);
  History* history_of(uintptr_t unit);
  void commit(size_t index);
  void reach_memory(Pending store);
  void commit_own(uint32_t thread);
  void commit_own_at(uint32_t thread, uintptr_t unit, uint8_t bytes);
  void commit_some();
  void await_at(uint32_t thread, uintptr_t unit, uint8_t bytes);
  void await_all(uint32_t thread);
  void perform(uint32_t thread, const Deferred& load);
  Mood& mood(uint32_t thread);
  void tick() {
    if (!pending_.empty() && random_.one_in(commit_one_in_)) commit_some();
  }

  bool weak_ = false;
  Random random_;
  uint32_t buffer_one_in_ = 1;  // stores that wait
  uint32_t commit_one_in_ = 1;  // accesses at which one of those that wait gets to memory
  uint32_t buffered_ = 0;       // stores that wait, at most
  std::vector<Thread> threads_;
  std::vector<Mood> moods_;       // of each warp
  std::vector<Pending> pending_;  // of all threads, in the order in which they came
  Histories histories_;
  Clock sequential_;  // what fences of sequential consistency passed on so far
};

}  // namespace coppice::simt
