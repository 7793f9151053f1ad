// The order of ready tasks (see ready_tasks.h).
#include "executor/ready_tasks.h"

#include <algorithm>

namespace coppice::executor {
namespace {
constexpr size_t kMostUnusedSources = 64;
constexpr size_t kMostUnusedEntries = 256;  // of one source: the memory of an exceptional load is given back
}  // namespace

bool ReadyTasks::runs_later(const Entry& a, const Entry& b) {
  return a.priority != b.priority ? a.priority < b.priority : a.sequence < b.sequence;
}

void ReadyTasks::push(uint64_t source, uint32_t priority, Task task) {
  auto found = sources_.find(source);
  if (found == sources_.end()) {
    if (unused_.empty()) {
      found = sources_.emplace(source, Source{}).first;
    } else {
      unused_.back().key() = source;
      found = sources_.insert(std::move(unused_.back())).position;
      unused_.pop_back();
    }
    turns_.push_back(&*found);
  }
  Source& in = found->second;
  in.heap.push_back({in.next_sequence++, priority, std::move(task)});
  std::push_heap(in.heap.begin(), in.heap.end(), runs_later);
  ++size_;
}

Task ReadyTasks::pop() {
  COPPICE_DCHECK(size_ > 0);
  Sources::value_type* const turn = turns_.front();
  turns_.pop_front();
  auto& heap = turn->second.heap;
  std::pop_heap(heap.begin(), heap.end(), runs_later);
  Task task = std::move(heap.back().task);
  heap.pop_back();
  --size_;
  if (!heap.empty()) {
    turns_.push_back(turn);
    return task;
  }
  auto node = sources_.extract(turn->first);
  if (unused_.size() < kMostUnusedSources && heap.capacity() <= kMostUnusedEntries)
    unused_.push_back(std::move(node));
  return task;
}

}  // namespace coppice::executor
