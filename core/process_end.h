// Threads of the library at the end of the process, and in its forked children.
//
// exit() destroys static objects while all other threads run on; one that compiles or runs a loop then uses
// what LLVM or oneTBB have destroyed. So exit() first asks whoever has threads to let them go
// (ProcessEndWatch), and waits until those that start_thread() started are gone, and nothing holds the end up
// (ExitHold): what they are doing is done, what is queued behind it is not. A child that was forked has none
// of these threads: its handles refuse to be used (ForkGuard).
//
// All this happens before any static object is destroyed where main returns, and where exit() is called by
// the main thread or by one of the library's. Where another thread calls it, static objects are destroyed
// first that were made since wait_before_what_is_static_now(): LLVM's, in the milliseconds in which the
// first compilation of the process makes them (gpu/jit/specializer.h). Where a thread of another library
// calls it, in a task of ours (ExitHold), the static objects of shared libraries are not destroyed. A main
// thread that calls pthread_exit() asks for the same; the process ends when its last thread does, which
// oneTBB's are not as long as a device is left.
//
// Thread-safe.
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <string_view>
#include <thread>

namespace coppice {

// Remembers the process that a handle with threads was made in.
class ForkGuard {
 public:
  ForkGuard();
  bool is_in_child() const { return made_in_ != forks_.load(std::memory_order_relaxed); }
  // Errors: kUnavailable in a forked child; `what` is what was to be done.
  void check(std::string_view what) const {
    if (is_in_child()) refuse(what);
  }

 private:
  friend struct ProcessEnd;
  [[noreturn]] static void refuse(std::string_view what);
  static inline constinit std::atomic<int> forks_{0};  // that lie between this process and its first one
  const int made_in_;
};

// An owner of threads that must be told holds one of these. It is made before they are started, and
// destroyed after they were joined or detached.
class ProcessEndWatch {
 public:
  // `let_go` runs once at most, when exit() begins, on the thread that called it. It may only say so to the
  // threads: it must neither wait nor make or destroy another watch. What it returns, where that is not null,
  // is free to do that, and runs on the same thread once all have been told; it keeps what it needs.
  using LetGo = std::function<std::function<void()>()>;
  explicit ProcessEndWatch(LetGo let_go);
  ~ProcessEndWatch();  // when it returns, let_go runs no more
  ProcessEndWatch(const ProcessEndWatch&) = delete;
  ProcessEndWatch& operator=(const ProcessEndWatch&) = delete;

 private:
  friend struct ProcessEnd;
  const ForkGuard guard_;
  const LetGo let_go_;
  std::list<ProcessEndWatch*>::iterator at_;
};

// Starts a thread that exit() waits for, for at most 10 s. Errors: kUnavailable where the system has no more.
std::thread start_thread(std::function<void()> body);
// Lets go of a thread of the process that this child was forked from. It can neither be joined nor detached
// here: a thread of the child's own may have its number.
void forget_thread(std::thread& thread);

// Marks work that a thread of another library's does: exit() waits for it, for at most 10 s, unless it is
// this work that calls it. It is made when the work begins, on the thread's stack.
class ExitHold {
 public:
  ExitHold();
  ~ExitHold();
  ExitHold(const ExitHold&) = delete;
  ExitHold& operator=(const ExitHold&) = delete;
  // Returns true when exit() has begun, and may not have waited: the work must be left, and nothing that
  // it needs be touched.
  bool comes_too_late() const { return comes_too_late_; }

 private:
  const bool was_at_work_;
  bool comes_too_late_ = false;
};

// Returns whether exit() has begun: long work of a thread that exit() waits for is to be left.
bool process_is_ending();

// Is to be called when a library has just made static objects that the threads use: exit() will wait
// before it destroys them. A library makes most of them when it is used for the first time.
void wait_before_what_is_static_now();

namespace detail {
// Runs the first of the continuations that wait behind those that the calling thread is in; false: there is
// none.
bool run_next_continuation();  // core/async_value.cc
}  // namespace detail

// A handle's threads wait on it. A child that was forked while they did must not destroy it: that would wait
// for them.
class ThreadsCondition {
 public:
  ThreadsCondition() : condition_(std::make_unique<std::condition_variable>()) {}
  ~ThreadsCondition() {
    if (guard_.is_in_child()) condition_.release();
  }
  ThreadsCondition(const ThreadsCondition&) = delete;
  ThreadsCondition& operator=(const ThreadsCondition&) = delete;
  std::condition_variable* operator->() const { return condition_.get(); }

 private:
  const ForkGuard guard_;
  std::unique_ptr<std::condition_variable> condition_;
};

}  // namespace coppice
