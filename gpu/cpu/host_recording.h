// Holds what a stream that works in the host's memory records: its operations, one after another.
#pragma once
#include <functional>
#include <vector>

#include "gpu/stream.h"

namespace coppice {

class HostRecording final : public Recording {
 public:
  std::vector<std::function<void()>> operations;
};

}  // namespace coppice
