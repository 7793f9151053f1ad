// The order in which a queue's ready tasks run: round robin between sources; of one source the highest
// priority first, the latest first among equals. Not thread-safe.
//
//   turns   [source 7] -> [source 3] -> [source 9] -> back to source 7
//              |             |             |
//             heap          heap          heap       of (priority, sequence, task)
//
// A source exists while it has tasks, and comes last when it appears: a task waits for at most one task of
// each other source, and for those of its own source that go before it.
#pragma once
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "executor/task.h"

namespace coppice::executor {

class ReadyTasks {
 public:
  void push(uint64_t source, uint32_t priority, Task task);
  Task pop();  // not of an empty one
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

 private:
  struct Entry {
    uint64_t sequence;
    uint32_t priority;
    Task task;
  };
  struct Source {
    std::vector<Entry> heap;
    uint64_t next_sequence = 0;
  };
  using Sources = std::unordered_map<uint64_t, Source>;
  static bool runs_later(const Entry& a, const Entry& b);

  Sources sources_;
  std::deque<Sources::value_type*> turns_;  // all of sources_
  std::vector<Sources::node_type> unused_;  // emptied sources: one that comes and goes allocates nothing
  size_t size_ = 0;
};

}  // namespace coppice::executor
