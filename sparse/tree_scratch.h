// Scratch memory of the runtime's own kernels, for making a tree's loop lists and for what is activated or
// appended in bulk. Each use may find in it what another left.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "gpu/device.h"

namespace coppice {

class TreeScratch {
 public:
  explicit TreeScratch(Device& device) : device_(device) {}

  // Makes room for so many items in a buffer: one of those below, or a list's. What a recording uses so far
  // is kept for it where a buffer is replaced.
  template <class T>
  void reserve(InStream& s, IntrusivePtr<Buffer>& buffer, uint64_t items) {
    const uint64_t bytes = std::max<uint64_t>(items * sizeof(T), 64);
    if (buffer && buffer->reserved_bytes() >= bytes) {
      if (buffer->size_bytes() < bytes) buffer->grow(bytes);
      return;
    }
    if (buffer && s.is_recording()) replaced_.push_back(std::move(buffer));
    buffer = device_.reserve(std::max<uint64_t>(bytes * 2, 4096), bytes);
    ++generation_;
  }
  // Recordings hold addresses: one of another generation is made anew.
  uint64_t generation(InStream&) const { return generation_; }
  void begin_recording() { replaced_.clear(); }
  // Adds to `kept` what the recording uses of it.
  void keep_for_recording(std::vector<IntrusivePtr<RefCounted>>& kept);
  void clear();
  uint64_t size_bytes() const;

  IntrusivePtr<Buffer> keys, cells, flags, selected, elements, rows;

 private:
  Device& device_;
  std::vector<IntrusivePtr<Buffer>> replaced_;  // while recording
  uint64_t generation_ = 0;
};

}  // namespace coppice
