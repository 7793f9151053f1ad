// How much memory a scene needs, before it is taken.
#pragma once

#include <cstdint>

#include "apps/scene/scene.h"

namespace coppice::mpm {

struct MemoryNeed {
  uint64_t device_bytes;   // particles, what sorts them, and the grid's blocks at the start
  uint64_t host_bytes;     // a frame's copy of the particles, and its picture
  uint64_t picture_bytes;  // the part of it that only the number of pixels decides
};

// Estimates the need of so many particles, within a quarter or so of what a run has at its start. A body that
// splashes has more blocks later on.
MemoryNeed memory_need(const scene::SceneConfig& scene, double particles);

// There is no more than this.
struct MemoryLimits {
  uint64_t device_bytes = ~uint64_t{0};
  uint64_t machine_bytes = ~uint64_t{0};
  bool is_shared = true;  // the device has the machine's memory
};

// Tells of a large need in the log. Errors: kOutOfMemory where that is more than there is, without a place.
void require_memory(const scene::SceneConfig& scene, double particles, const MemoryLimits& limits);

}  // namespace coppice::mpm
