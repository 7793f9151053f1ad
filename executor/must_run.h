// Work that somebody waits for: it runs even when its queue drops it, with its request cancelled first.
//
// A continuation of a frame or a loop holds values that others wait for. A queue that shuts down by
// dropping its tasks would leave these without an end; so the task's destruction runs it, and every
// operation that it reaches is skipped.
//
// Work that is dropped while dropped work runs on this thread runs after it, not inside of it: a chain of
// operations that a queue refuses one after the other needs no more stack than one of them.
#pragma once
#include <deque>
#include <utility>

#include "executor/host.h"

namespace coppice::executor {

// Dropped work of this thread that still has to run. It lives on the stack of the outermost drop.
class DroppedWork {
 public:
  template <class F>
  static void run(F work) {
    if (current_ != nullptr) {
      current_->behind_.emplace_back(std::move(work));
      return;
    }
    DroppedWork dropped;
    current_ = &dropped;
    work();
    while (!dropped.behind_.empty()) {
      Task next = std::move(dropped.behind_.front());
      dropped.behind_.pop_front();
      next();
    }
    current_ = nullptr;
  }

 private:
  // Thread-local, since destructors have no arguments through which the list could be passed.
  static inline constinit thread_local DroppedWork* current_ = nullptr;
  std::deque<Task> behind_;
};

// `f` is move-only or copyable, called once, and keeps `request` alive.
template <class F>
class MustRun {
 public:
  MustRun(Request& request, F f) : request_(&request), f_(std::move(f)) {}
  MustRun(MustRun&& other) noexcept
      : request_(std::exchange(other.request_, nullptr)), f_(std::move(other.f_)) {}
  ~MustRun() {
    if (request_ == nullptr) return;
    DroppedWork::run([request = request_, f = std::move(f_)]() mutable {
      request->cancel();
      f();
    });
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
