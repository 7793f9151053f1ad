// Memory that a traced function needs for a while: a piece of an arena, whose bytes other temporaries have at
// other times (sparse/function_memory.h).
//
// While the function is traced nobody knows yet which piece: until then the buffer has addresses that no
// memory has, so that each tells which temporary it is of, and whoever uses one faults. Then it is placed,
// and the addresses among the arguments of what was traced are changed.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/device.h"

namespace coppice {

namespace detail {
struct LaunchRequest;
}

class TemporaryBuffer final : public Buffer {
 public:
  TemporaryBuffer(const Device& device, size_t bytes);
  ~TemporaryBuffer() override;

  // Gives it its memory, once; it keeps the arena.
  void place(IntrusivePtr<Buffer> arena, size_t offset);
  bool is_placed() const { return arena_.get() != nullptr; }
  size_t offset() const { return offset_; }  // in the arena
  const IntrusivePtr<Buffer>& arena() const { return arena_; }
  uintptr_t unplaced_begin() const { return unplaced_begin_; }

  // A temporary has the size that it was made with. Errors: kOutOfRange for more, kInvalidArgument for less.
  void grow(size_t size_bytes) override;
  void discard(size_t offset_bytes, size_t bytes) override;
  void shrink(size_t size_bytes) override;
  void release() override { shrink(0); }

  // Returns whether an address is of one that has no memory yet.
  static bool is_unplaced(uintptr_t address);

 private:
  const uintptr_t unplaced_begin_;
  IntrusivePtr<Buffer> arena_;
  size_t offset_ = 0;
};

// A temporary outside of a trace: memory of its own. What was given to the device's default stream before the
// last handle goes may still use it.
IntrusivePtr<Buffer> temporary_outside_of_a_trace(IntrusivePtr<Device> device, size_t bytes);

// Returns it as such, or null.
const TemporaryBuffer* as_temporary(const Buffer& buffer);

// Notes in the request which temporaries its arguments and the count of its range are addresses of. Errors:
// kInvalidArgument for one that is not of the function that is traced on this thread.
void note_temporaries(detail::LaunchRequest& request);
// Throws that Error where it has any, for a launch that is given now.
void refuse_temporaries(const detail::LaunchRequest& request);
// Throws that Error where a launch that was bound has one without a place.
void check_placed(const Launch& launch);
// Changes these addresses to those that the temporaries have now.
void take_places(detail::LaunchRequest& request);

}  // namespace coppice
