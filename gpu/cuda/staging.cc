// Pinned host memory for small copies (see staging.h).
#include "gpu/cuda/staging.h"

#include "core/extents.h"

namespace coppice::cuda {

Staging::~Staging() {
  if (memory_ == nullptr) return;
  const Context::FreeingScope scope(*context_);
  context_->driver().mem_free_host(memory_);
}

std::byte* Staging::take(size_t bytes) {
  if (memory_ == nullptr) {
    void* memory = nullptr;
    context_->check(context_->driver().mem_alloc_host(&memory, kBytes), "cuMemAllocHost");
    memory_ = static_cast<std::byte*>(memory);
  }
  const size_t piece = round_up(bytes, size_t{64});
  uint64_t at = taken_;
  if (at % kBytes + piece > kBytes) at = round_up(at, kBytes);  // a piece does not wrap around
  if (at + piece - given_back_ > kBytes) return nullptr;
  taken_ = at + piece;
  return memory_ + at % kBytes;
}

}  // namespace coppice::cuda
