// Times what a stream gives the GPU (see launch_timer.h).
#include "gpu/cuda/launch_timer.h"

#include <utility>

namespace coppice::cuda {

LaunchTimer::~LaunchTimer() {
  const Driver& driver = context_.driver();
  if (begun_ != nullptr) driver.event_destroy(begun_);
  for (const Pending& pending : pending_) {
    driver.event_destroy(pending.begin);
    driver.event_destroy(pending.end);
  }
  for (const EventHandle event : free_) driver.event_destroy(event);
}

Result LaunchTimer::record(StreamHandle stream, EventHandle* event) {
  const Driver& driver = context_.driver();
  if (free_.empty()) {
    EventHandle made = nullptr;
    const Result result = driver.event_create(&made, kEventDefault);
    if (result != Result::kSuccess) return result;
    free_.push_back(made);
  }
  const Result result = driver.event_record(free_.back(), stream);
  if (result != Result::kSuccess) return result;
  *event = free_.back();
  free_.pop_back();
  return Result::kSuccess;
}

Result LaunchTimer::begin(StreamHandle stream) {
  if (begun_ != nullptr) free_.push_back(std::exchange(begun_, nullptr));  // what it began was refused
  return record(stream, &begun_);
}

Result LaunchTimer::end(StreamHandle stream, Work work, uint64_t mark) {
  EventHandle end = nullptr;
  const Result result = record(stream, &end);
  if (result == Result::kSuccess)
    pending_.push_back({std::move(work), std::exchange(begun_, nullptr), end, mark});
  return result;
}

void LaunchTimer::collect(uint64_t mark) {
  for (; !pending_.empty() && pending_.front().mark <= mark; pending_.pop_front()) {
    const Pending& done = pending_.front();
    float ms = 0;
    // If the driver does not tell, the launch is missing in the profile: nothing depends on it.
    if (context_.driver().event_elapsed_time(&ms, done.begin, done.end) == Result::kSuccess) {
      const uint64_t items = done.work.count != nullptr ? *done.work.count : done.work.items;
      context_.profile()->add(done.work.name, ms, items * done.work.item_bytes, done.work.resources);
    }
    free_.push_back(done.begin);
    free_.push_back(done.end);
  }
}

}  // namespace coppice::cuda
