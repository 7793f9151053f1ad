// A stream's order, seen from inside: what a function may do whose turn has come. Only the stream makes one,
// and hands it to the functions that it calls (Stream::enqueue(), Launch::before_loop, Launch::needs_repeat,
// ...), which keep no reference to it.
//
//   stream.enqueue("grow", [=](InStream& s) {
//     if (wait_read(s, counter) > room) s.run(move_to_a_larger_buffer);
//   });
//
// Everything here is done at once, after all that was given to the stream before. Errors are thrown (Error).
// There are two kinds. One does what it is told. The other, inside of record(), keeps it instead, to be
// replayed; there the host cannot know what is on the device: it may not read back, nor copy to or from its
// own memory (a failed check), and counts stay where they are (Count).
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "core/check.h"
#include "core/intrusive_ptr.h"
#include "gpu/primitive_call.h"

namespace coppice {

struct Launch;
struct LaunchBlock;

// Holds device work that was recorded, to be given again and again as a whole. It keeps what the work
// uses.
class Recording : public RefCounted {
 public:
  uint32_t launches = 0;         // in it, the runtime's own not counted
  bool may_leave_status = true;  // a launch of it
  // It holds what the device cannot skip: primitives, copies and fills that are no launch's. Where there is a
  // status before it, it is left out as a whole; none of its launches may leave one.
  bool holds_calls = false;
};

// Says how many items there are: known to the host, or left on the device, where all that the host knows
// is how many there can be.
class Count {
 public:
  static Count known(uint64_t value) { return {value, nullptr}; }
  static Count on_device(const uint64_t* address, uint64_t most) { return {most, address}; }
  bool is_known() const { return address_ == nullptr; }
  // Returns the bound, which is the number where that is known: there must be room for as much.
  uint64_t most() const { return most_; }
  uint64_t value() const {
    COPPICE_CHECK(is_known(), "a count that is left on the device");
    return most_;
  }
  const uint64_t* address() const { return address_; }  // null where it is known

 private:
  Count(uint64_t most, const uint64_t* address) : most_(most), address_(address) {}
  uint64_t most_;
  const uint64_t* address_;
};

class InStream {
 public:
  InStream() = default;
  InStream(const InStream&) = delete;
  InStream& operator=(const InStream&) = delete;

  // Runs a launch, and repeats it while its needs_repeat() says so. `block` is its block, or a copy of that
  // for a launch that is run more than once; it is filled in.
  virtual void run(const Launch& launch, LaunchBlock& block) = 0;
  void run(Launch& launch);
  // Runs a parallel primitive (gpu/stream_primitives.h).
  virtual void run(const PrimitiveCall& call) = 0;
  virtual void fill(void* to, int byte, size_t bytes) = 0;
  // Copies within the device; may be under way when it returns.
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  // Copies from device to host, from host to device or within the device, as the addresses say. When it
  // returns, host memory holds what was read, or may be used for something else. Cost where device memory
  // is not the host's: reading waits for the device, some 10 us.
  virtual void wait_copy(void* to, const void* from, size_t bytes) = 0;
  // Returns 64 bytes of device memory of the stream's own, where a primitive may leave its result; the
  // next call may use it.
  virtual void* result() = 0;

  // Returns whether what is given is kept instead of done.
  virtual bool is_recording() const = 0;
  // Returns whether what is given is done when the call returns: nothing is under way, and what kernels have
  // left can be looked at.
  virtual bool is_done_at_return() const = 0;
  // Keeps what `give` gives to the InStream that it is handed: launches, fills, primitives and copies within
  // the device. Recordings do not nest.
  virtual IntrusivePtr<Recording> record(const std::function<void(InStream&)>& give) = 0;
  // Inside of record(): what is given from now on is the next part of the recording; the first, before which
  // nothing is given, is number 0. It is done behind the parts `before` and whatever these are behind, and
  // beside all others where the device can; the work of one part is done in its order.
  virtual void begin_part(std::span<const uint32_t> before) = 0;
  // Does all of a recording on the stream that recorded it, which has scratch memory for all of its own,
  // without waiting for the device: on a GPU as one graph. Launches behind one
  // that leaves a status are skipped on the device, and so is what commits its topology
  // (Launch::needs_repeat) where it ran out of cells. Returns the number of its first launch, which the
  // status has (status_launch()).
  virtual uint64_t replay(Recording& recording) = 0;
  // Is called after a replay whose launch of that number left a status: commits its topology now
  // (Launch::needs_repeat), and repeats it where that says so. What is launched next gets the numbers
  // behind it.
  virtual void resume(const Launch& launch, uint64_t number) = 0;
  // Hands over what kernels have printed, where nothing is under way: what gives many launches within one
  // turn of the stream says so between them, lest the room for messages run out.
  virtual void hand_over_messages() = 0;

 protected:
  ~InStream() = default;
};

}  // namespace coppice
