// The number of the calling thread in the loop of a cpu device that it has a part in: below the device's
// threads, and no two threads of one loop have the same. Kernels call it (coppice_worker() in
// gpu/device_intrinsics.h).
#pragma once
#include <cstdint>

namespace coppice {

uint32_t worker_number();

}  // namespace coppice
