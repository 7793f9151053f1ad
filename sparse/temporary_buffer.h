// Memory that a traced function needs for a while: a piece of an arena, whose bytes other temporaries have at
// other times (sparse/function_memory.h).
//
// While the function is traced nobody knows yet which piece. So the buffer has addresses that no memory has,
// and keeps them: each tells which temporary it is of, and what is given one outside of the function is
// refused. When it has been placed, the addresses among the arguments of what was traced are changed.
#pragma once
#include <cstddef>
#include <cstdint>

#include "gpu/device.h"

namespace coppice {

namespace detail {
struct LaunchRequest;
}

class TemporaryBuffer final : public Buffer {
 public:
  // Errors: kOutOfMemory for more than 2^46 bytes.
  TemporaryBuffer(Device& device, size_t bytes);
  ~TemporaryBuffer() override;

  // Gives it its memory, once; it keeps the arena.
  void place(IntrusivePtr<Buffer> arena, size_t offset);
  bool is_placed() const { return arena_.get() != nullptr; }
  size_t offset() const { return offset_; }  // in the arena
  const IntrusivePtr<Buffer>& arena() const { return arena_; }

  // A temporary has the size that it was made with. Errors: kOutOfRange for more, else kInvalidArgument.
  void grow(size_t size_bytes) override;
  void discard(size_t offset_bytes, size_t bytes) override;
  void shrink(size_t size_bytes) override;
  void release() override { shrink(0); }

 private:
  IntrusivePtr<Buffer> arena_;
  size_t offset_ = 0;
};

// A temporary outside of a trace: memory of its own. What was given to the device's default stream before the
// last handle goes may still use it.
IntrusivePtr<Buffer> temporary_outside_of_a_trace(IntrusivePtr<Device> device, size_t bytes);

// Returns it as such, or null.
const TemporaryBuffer* as_temporary(const Buffer& buffer);
// Returns where a buffer's memory is: of a temporary its piece of the arena, of others data(). Of one
// without a place null.
std::byte* place_of(const Buffer& buffer);
template <class T>
T* place_as(const Buffer& buffer) {
  return reinterpret_cast<T*>(place_of(buffer));
}

// Notes in the request which temporaries its arguments and the count of its range are addresses of. Errors:
// kInvalidArgument for one that is not of the function that is traced on this thread.
void note_temporaries(detail::LaunchRequest& request);
// Throws that Error where it has any, for a launch that is given now.
void refuse_temporaries(const detail::LaunchRequest& request);
// Changes these addresses to those of the temporaries' places.
void take_places(detail::LaunchRequest& request);
// Throws an Error kInvalidArgument where that was not done, for a launch that is to run.
void check_placed(const Launch& launch);

}  // namespace coppice
