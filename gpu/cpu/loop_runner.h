// How a stream's thread runs the loop of a launch: the only thing in which the streams of the cpu device and those of the
// emulated GPU differ.
#pragma once
#include <functional>

#include "gpu/stream.h"

namespace coppice {

// One stream's; used by the stream's thread alone.
class LoopRunner {
 public:
  virtual ~LoopRunner() = default;
  // Items [0, count), count > 0; may throw Error.
  virtual void run(const Launch& launch, const LaunchBlock& block, KernelEntry entry, uint64_t count) = 0;
  // A host function in stream order.
  virtual void run_function(const std::function<void()>& function) = 0;
};

}  // namespace coppice
