// A table of paths that a signal handler reads: atomics, and calls that a handler may use.
#include "core/unfinished_file.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>

namespace coppice {
namespace {

constexpr size_t kMost = 64, kMostBytes = 4096;
constexpr int kPatienceMs = 100;  // with a thread that is making a file

// kTaken: its path is being written; kRemoving: the handler reads its path, and nobody takes it any more.
enum class State : int { kFree, kTaken, kMaking, kMade, kRemoving };

struct Slot {
  std::atomic<State> state{State::kFree};
  std::atomic<pid_t> thread;  // that makes it
  pid_t process;              // that made it: a forked child has its parent's table, and not its files
  std::array<char, kMostBytes> path;
};

// These are globals, since a handler has no other way to know.
constinit std::array<Slot, kMost> slots{};
constinit std::atomic<bool> is_ending{false};
static_assert(std::atomic<State>::is_always_lock_free);

}  // namespace

UnfinishedFile::UnfinishedFile(std::string_view path) {
  if (path.size() >= kMostBytes) return;
  for (size_t i = 0; i < kMost && slot_ < 0; ++i) {
    State free = State::kFree;
    if (slots[i].state.compare_exchange_strong(free, State::kTaken, std::memory_order_acquire))
      slot_ = static_cast<int>(i);
  }
  if (slot_ < 0) return;
  Slot& slot = slots[static_cast<size_t>(slot_)];
  slot.process = getpid();
  slot.thread.store(gettid(), std::memory_order_relaxed);
  std::memcpy(slot.path.data(), path.data(), path.size());
  slot.path[path.size()] = '\0';
  // The handler says that it ends the process before it looks at the table: one of the two sees the other.
  slot.state.store(State::kMaking);
  stop_at_end();
}

void UnfinishedFile::stop_at_end() {
  while (is_ending.load()) pause();
}

void UnfinishedFile::note_made() const {
  if (slot_ < 0) return;
  State making = State::kMaking;
  slots[static_cast<size_t>(slot_)].state.compare_exchange_strong(making, State::kMade);
}

void UnfinishedFile::forget() {
  if (slot_ < 0) return;
  std::atomic<State>& state = slots[static_cast<size_t>(std::exchange(slot_, -1))].state;
  for (State now : {State::kMade, State::kMaking})
    if (state.compare_exchange_strong(now, State::kFree)) return;
}

void UnfinishedFile::remove_all() {
  is_ending.store(true);
  const pid_t process = getpid(), thread = gettid();
  for (Slot& slot : slots) {
    // The thread that the handler interrupts makes nothing meanwhile.
    for (int ms = 0; ms < kPatienceMs && slot.state.load() == State::kMaking &&
                     slot.thread.load(std::memory_order_relaxed) != thread;
         ++ms)
      poll(nullptr, 0, 1);
    for (State now : {State::kMaking, State::kMade}) {  // in the order in which its thread goes on
      if (!slot.state.compare_exchange_strong(now, State::kRemoving)) continue;
      if (slot.process == process) unlink(slot.path.data());
      break;
    }
  }
}

}  // namespace coppice
