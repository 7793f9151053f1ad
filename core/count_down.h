// CountDown: a chain that becomes available when a given number of things have happened, an error if any
// failed.
//
//   CountDown done(n);                        // n = 0: available at once
//   for (...) { submit([done]() mutable { ...; done.count_down(); }); }
//   wait(done.chain());
//
// Copies count down together. Thread-safe. When copies are gone before the count is 0, the chain becomes
// kCancelled.
#pragma once

#include "core/async_value.h"

namespace coppice {

class CountDown {
 public:
  explicit CountDown(int64_t count);

  // Returns true for the call that completes the chain; count_down(0) asks whether the count is 0.
  bool count_down(int64_t n = 1);
  // Counts as count_down() does, and the chain will be an error once the count is 0. Of several errors the
  // one with the lowest rank stays, the first to come among equals.
  bool count_down(Error error, int64_t rank = 0);

  const AsyncValueRef<Chain>& chain() const;

 private:
  struct State;
  IntrusivePtr<State> state_;

 public:
  CountDown(const CountDown&);
  CountDown& operator=(const CountDown&);
  ~CountDown();
};

}  // namespace coppice
