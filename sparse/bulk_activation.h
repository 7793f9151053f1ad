// Activation of many cells at once: sort, unique, one allocation per level.
//
// It needs no locks, gives cells their numbers in coordinate order, and grows before it allocates instead of
// being repeated: what the particles of a step ask for, and what is wanted where results must not depend on
// threads.
#pragma once
#include <cstdint>

#include "gpu/device.h"

namespace coppice {

class TreeStorage;

// Activates the cells at `n` coordinates of a node, i32[n][3], missing leading axes 0. Coordinates may
// repeat; cells get their numbers in coordinate order, so that nothing depends on threads. Errors:
// kOutOfRange when a coordinate is outside the domain, kOutOfMemory; then nothing has been activated, or only
// nodes above.
void activate_bulk(InStream& s, TreeStorage& tree, uint32_t node, const int32_t* coords, uint64_t n);

}  // namespace coppice
