// A condition of loops and branches whose value is on the device (sparse/function.h).
#pragma once
#include <cstdint>

#include "core/intrusive_ptr.h"
#include "gpu/buffer.h"

namespace coppice {

// Names a u32 in device memory, which kernels write; all but 0 is true.
struct DeviceFlag {
  IntrusivePtr<Buffer> buffer;
  uint64_t offset_bytes = 0;
};

}  // namespace coppice
