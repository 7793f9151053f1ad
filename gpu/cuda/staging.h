// Pinned host memory through which small copies pass, so that the caller's memory is free at once and the
// driver copies without staging of its own: a ring, taken and given back in order.
//
// Thread-compatible: one stream's.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "gpu/cuda/context.h"

namespace coppice::cuda {

class Staging {
 public:
  static constexpr size_t kBytes = size_t{1} << 20;
  static constexpr size_t kMostBytes = kBytes / 4;  // of one piece

  explicit Staging(IntrusivePtr<Context> context) : context_(std::move(context)) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Returns a piece of 0 < bytes <= kMostBytes; null while there is no room. Errors: kOutOfMemory, at the
  // first one.
  std::byte* take(size_t bytes);
  // Returns how much was taken in all; give_back() of it returns every piece taken before.
  uint64_t position() const { return taken_; }
  void give_back(uint64_t position) { given_back_ = std::max(given_back_, position); }

 private:
  const IntrusivePtr<Context> context_;
  std::byte* memory_ = nullptr;          // [kBytes], once something was taken
  uint64_t taken_ = 0, given_back_ = 0;  // bytes since the start, pieces aligned to 64
};

}  // namespace coppice::cuda
