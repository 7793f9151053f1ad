// Does a stream's operations when their turn comes: the only thing in which the streams of devices differ.
// The queue before it is stream_queue.h.
#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "gpu/stream.h"

namespace coppice {

// Holds what is known of a launch's end, where nobody has looked at it yet.
struct LaunchEnd {
  uint64_t number = 0;          // the launch's
  uint64_t id = 0;              // launch_id()
  uint32_t status = 0;          // when the mark behind it is reached
  std::optional<Error> failed;  // what went wrong behind its loop
  bool is_settled() const { return status == 0 && !failed; }
};

// Serves one stream, on the stream's thread alone. Work that a call begins may still be under way when the
// call returns; what is begun later runs after it, and it says itself what it uses (kept until its mark is
// reached). All of these may throw Error.
class StreamBackend {
 public:
  // Holds what operations used, for the queue to release: the last reference to the stream itself may be
  // among it.
  using KeepAlive = std::vector<IntrusivePtr<RefCounted>>;

  virtual ~StreamBackend() = default;
  // Is called when the compiled code is there.
  virtual void run_loop(const Launch& launch, const LaunchBlock& block) = 0;
  virtual void run_function(const std::function<void()>& function) = 0;
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  virtual void fill(void* to, int byte, size_t bytes) = 0;
  // Returns when `to` or `from`, whichever is the host's, may be used.
  virtual void wait_copy(void* to, const void* from, size_t bytes) = 0;
  virtual void run_primitive(const PrimitiveCall& call) = 0;
  virtual void* result_memory() = 0;  // InStream::result()

  // From begin_recording() to end_recording(), loops, fills, primitives and copies within the device are
  // kept in the recording. When something of it throws, drop_recording() ends it instead.
  virtual void begin_recording() = 0;
  virtual void begin_recorded_part(std::span<const uint32_t> before) = 0;  // InStream::begin_part()
  virtual IntrusivePtr<Recording> end_recording() = 0;
  virtual void drop_recording() noexcept = 0;
  virtual void replay(Recording& recording) = 0;
  // When that has thrown: how many of its launches have begun. They have taken their numbers.
  virtual uint64_t launches_begun(const Recording& recording) const = 0;
  virtual bool is_done_at_return() const = 0;  // InStream::is_done_at_return()
  // Returns when everything begun is done.
  virtual void wait_begun() = 0;
  // Returns whether kernels have left a status that concerns launches behind them. A shortage of cells, or a
  // topology that has changed, does not: the launch that met it resolves it before it is done.
  virtual bool has_status(const DeviceContext& context) = 0;
  // Returns whether it is better to look at a status when a mark behind it is reached than at once.
  virtual bool can_fetch_status() const { return false; }
  // Writes the status, as it is behind what has been begun, to `end` when the next mark is reached; 0 where
  // the device is lost. What the launch prints is held back until then, and where there is a status until
  // hand_over_messages().
  virtual void fetch_status(const DeviceContext&, LaunchEnd& /*end*/) {}

  // InStream::hand_over_messages()
  virtual void hand_over_messages() = 0;

  // Is called when the operation `name`, or its part until it failed, has been begun. Returns true if the
  // end of what is under way is marked. When it returns false or throws, nothing of it is under way, and
  // what it used is in `released`.
  virtual bool mark_end(std::string_view name, DeviceContext& context, KeepAlive& released) = 0;
  // Returns whether the oldest mark is reached; waits for that if told to. Then, and when it throws what
  // went wrong before the mark, the mark is forgotten, and what was used up to it is in `released`.
  virtual bool reach_oldest_mark(bool wait, KeepAlive& released) = 0;
};

}  // namespace coppice
