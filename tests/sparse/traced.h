// Launches as a function that gives them in their order.
#pragma once
#include <utility>
#include <vector>

#include "sparse/function.h"

namespace coppice {

inline Function traced(const std::vector<BoundLaunch>& launches) {
  return trace(share(&launches.front().device()), [&] {
    for (const BoundLaunch& launch : launches) launch.launch();
  });
}

}  // namespace coppice
