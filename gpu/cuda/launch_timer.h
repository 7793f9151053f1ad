// Times what a stream gives the GPU, by two events around each piece of work; for a KernelProfile.
//
// The times are fetched when the stream knows the work to be done, so that nothing is waited for.
// Thread-compatible: one stream's. Every function needs the device's context to be current.
#pragma once
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/cuda/context.h"
#include "gpu/cuda/kernel_profile.h"

namespace coppice::cuda {

class LaunchTimer {
 public:
  // Pieces of work are counted by items of `item_bytes`; how many there were is read at `count`, once they
  // are done, where that is not null. No resources are known of work that is not a kernel.
  struct Work {
    std::string name;
    uint64_t items = 0;
    uint64_t item_bytes = 0;
    const uint64_t* count = nullptr;
    KernelResources resources{};
  };

  explicit LaunchTimer(Context& context) : context_(context) {}
  ~LaunchTimer();
  LaunchTimer(const LaunchTimer&) = delete;
  LaunchTimer& operator=(const LaunchTimer&) = delete;

  // Work that is given to the stream between the two is timed. They return the driver's answer.
  Result begin(StreamHandle stream);
  Result end(StreamHandle stream, Work work, uint64_t mark);
  // Collects the times up to the mark: all work before it is done.
  void collect(uint64_t mark);

 private:
  struct Pending {
    Work work;
    EventHandle begin, end;
    uint64_t mark;
  };
  Result record(StreamHandle stream, EventHandle* event);

  Context& context_;
  EventHandle begun_ = nullptr;
  std::deque<Pending> pending_;
  std::vector<EventHandle> free_;
};

}  // namespace coppice::cuda
