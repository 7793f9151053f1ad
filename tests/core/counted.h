// An error and payloads that tell how many of them exist, for the tests of async values.
#pragma once
#include "core/async_value.h"

namespace coppice {

inline Error some_error(const char* text = "no snow today") { return Error(ErrorCode::kNumeric, text); }

// Counts what exists of it, in the test that made it.
struct Counted {
  explicit Counted(int* alive) : alive(alive) { ++*alive; }
  Counted(const Counted& other) : Counted(other.alive) {}
  ~Counted() { --*alive; }
  int* alive;
};
struct CountedKept : Counted {
  using Counted::Counted;
};

template <>
inline constexpr bool kKeepPayloadOnError<CountedKept> = true;

}  // namespace coppice
