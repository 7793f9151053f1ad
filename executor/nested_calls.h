// The depth to which functions call each other on a thread's stack: recursion without an end must not
// overflow it. For whatever runs a function's operations.
#pragma once
#include "core/error.h"
#include "executor/loader.h"

namespace coppice::executor {

// Functions may be nested this deep. They then take half a stack of 4 MiB, which oneTBB's threads have,
// with AddressSanitizer.
inline constexpr int kMostNestedCalls = 500;

namespace detail {
// The count is thread-local, since it is a property of the thread's stack, and the frames of operations
// stand between a function and the next.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local int nested_calls;
}  // namespace detail

// Counts a function whose operations run, for as long as this is there.
class NestedCall {
 public:
  NestedCall() { ++detail::nested_calls; }
  ~NestedCall() { --detail::nested_calls; }
  NestedCall(const NestedCall&) = delete;
  NestedCall& operator=(const NestedCall&) = delete;
  // Returns whether no further function may begin.
  static bool is_one_too_many() { return detail::nested_calls >= kMostNestedCalls; }
  // Returns the error of a function that may not begin.
  static Error error(const LoadedFunction& function);
};

}  // namespace coppice::executor
