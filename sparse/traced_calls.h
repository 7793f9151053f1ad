// A thread on which a function is traced (sparse/tracer.h) gives its device work to this, instead of the
// stream: whatever gives device work asks for it first.
#pragma once
#include "gpu/device.h"

namespace coppice {

class BoundLaunch;
class Node;

class TracedCalls {
 public:
  // Returns that of the calling thread; null where nothing is traced.
  static TracedCalls* current() { return current_; }

  // Note what was given, and return a value that is an error, for whoever looks at it: nothing has run.
  virtual AsyncValueRef<Chain> launch(const BoundLaunch& launch) = 0;
  virtual AsyncValueRef<Chain> deactivate_all(const Node& node) = 0;
  // Returns the temporary that begins at the address, where it is one of what is traced; or null.
  virtual IntrusivePtr<Buffer> temporary_at(uintptr_t begin) const = 0;

 protected:
  ~TracedCalls() = default;
  // This is thread-local, since code that is traced runs on one thread, however deep in a call it is.
  static inline constinit thread_local TracedCalls* current_ = nullptr;
};

}  // namespace coppice
