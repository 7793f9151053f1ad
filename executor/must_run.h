// Work that somebody waits for: it runs even when its queue drops it, with its request cancelled first.
//
// A continuation of a frame or a loop holds values that others wait for. A queue that shuts down by dropping its tasks
// would leave these without an end; so the task's destruction runs it, and every operation that it reaches is skipped.
#pragma once
#include <utility>

#include "executor/host.h"

namespace coppice::executor {

// `f` is move-only or copyable, called once, and keeps `request` alive.
template <class F>
class MustRun {
 public:
  MustRun(Request& request, F f) : request_(&request), f_(std::move(f)) {}
  MustRun(MustRun&& other) noexcept
      : request_(std::exchange(other.request_, nullptr)), f_(std::move(other.f_)) {}
  ~MustRun() {
    if (request_ == nullptr) return;
    request_->cancel();
    (*this)();
  }
  void operator()() {
    request_ = nullptr;
    f_();
  }

 private:
  Request* request_;  // null once it has run, or was moved from
  F f_;
};

}  // namespace coppice::executor
