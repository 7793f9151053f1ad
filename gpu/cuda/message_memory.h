// Holds the memory that kernels on a GPU print to: pinned host memory, which both sides reach at the same
// address. A GPU's own atomics on it are atomic among its threads, and the host reads what launches that
// have ended left.
#pragma once
#include <cstring>

#include "gpu/cuda/context.h"
#include "gpu/message_record.h"
#include "gpu/messages.h"

namespace coppice::cuda {

class MessageMemory {
 public:
  // Errors: kOutOfMemory, kUnavailable.
  explicit MessageMemory(IntrusivePtr<Context> context)
      : context_(std::move(context)), area_(allocate()), log_(*area_) {}
  ~MessageMemory() {
    const Context::FreeingScope scope(*context_);
    context_->driver().mem_free_host(area_);
  }
  MessageMemory(const MessageMemory&) = delete;
  MessageMemory& operator=(const MessageMemory&) = delete;

  MessageArea* area() const { return area_; }
  MessageLog& log() { return log_; }

 private:
  MessageArea* allocate() {
    const Context::Scope scope(*context_);
    void* memory = nullptr;
    context_->check(context_->driver().mem_alloc_host(&memory, sizeof(MessageArea)), "cuMemAllocHost");
    return static_cast<MessageArea*>(std::memset(memory, 0, sizeof(MessageArea)));
  }

  const IntrusivePtr<Context> context_;
  MessageArea* const area_;
  MessageLog log_;
};

}  // namespace coppice::cuda
