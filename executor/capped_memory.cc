#include "executor/capped_memory.h"

#include <fmt/format.h>

#include "core/check.h"
#include "core/error.h"

namespace coppice::executor {

CappedMemory::~CappedMemory() {
  COPPICE_CHECK(used_bytes() == 0,
                "the memory of a host's functions is destroyed while {} bytes of it are in use",
                used_bytes());
}

void* CappedMemory::do_allocate(size_t bytes, size_t alignment) {
  // Relaxed: a sum that orders nothing.
  size_t used = used_bytes_.load(std::memory_order_relaxed);
  do {
    if (bytes > most_bytes_ - used)
      throw Error(ErrorCode::kOutOfMemory,
                  fmt::format("{} bytes wanted, and {} of {} are in use", bytes, used, most_bytes_));
  } while (!used_bytes_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  try {
    return upstream_.allocate(bytes, alignment);
  } catch (...) {
    used_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    throw;
  }
}

void CappedMemory::do_deallocate(void* memory, size_t bytes, size_t alignment) {
  upstream_.deallocate(memory, bytes, alignment);
  used_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
}

}  // namespace coppice::executor
