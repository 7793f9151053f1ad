// A stack of its own to run on: what one thread of the emulated GPU is. All fibers that switch to each other
// run in one OS thread, the default-made one among them standing for the stack that this thread came with.
//
// Sanitizers are told of every switch. Nothing that lives on a fiber's stack is destroyed when it is reset or
// destroyed.
#pragma once
#include <cstddef>
#include <cstdint>

namespace coppice::simt {

class Fiber {
 public:
  // Runs each time the fiber is switched to after it was made or came to its end; returns who goes on then.
  using Body = Fiber& (*)(void* argument);

  Fiber();  // the stack that the OS thread came with
  Fiber(Body body, void* argument);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Is called on this fiber: goes on with `to`; returns when somebody switches back.
  void switch_to(Fiber& to);
  // Is called elsewhere: the next switch to this fiber starts its body afresh, whatever it was doing.
  void reset();
  bool has_on_stack(const void* address) const {
    return reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(stack_) < stack_bytes_;
  }

 private:
  struct Start;
  void arrived_from(void* context, Fiber& from);

  Body body_ = nullptr;
  void* argument_ = nullptr;
  void* context_ = nullptr;
  void* stack_ = nullptr;  // its lowest byte, above the guard page
  size_t stack_bytes_ = 0;
  void* fake_stack_ = nullptr;  // AddressSanitizer's
  void* tsan_fiber_ = nullptr;
};

}  // namespace coppice::simt
