// Streams that run their operations at once, in the host's memory: those of the cpu device and of the
// emulated GPU. How the loop of a launch is run is the only thing in which they differ.
#pragma once
#include "gpu/cpu/host_recording.h"
#include "gpu/primitives.h"
#include "gpu/stream_backend.h"

namespace coppice {

class MessageLog;

class HostStreamBackend : public StreamBackend {
 public:
  explicit HostStreamBackend(MessageLog& log) : log_(log) {}  // the device's
  // Runs items [0, count), count > 0; may throw Error.
  virtual void run(const Launch& launch, const LaunchBlock& block, KernelEntry entry, uint64_t count) = 0;
  // Returns where this process finds what lies at a device address.
  virtual void* host_address(const void* address) const { return const_cast<void*>(address); }

  void run_loop(const Launch& launch, const LaunchBlock& block) final;
  void copy(void* to, const void* from, size_t bytes) final;
  void fill(void* to, int byte, size_t bytes) final;
  void wait_copy(void* to, const void* from, size_t bytes) final;
  void wait_begun() final {}
  void run_primitive(const PrimitiveCall& call) final;
  void* result_memory() final { return result_; }
  void begin_recording() final { recording_ = make_intrusive<HostRecording>(); }
  void begin_recorded_part(std::span<const uint32_t>) final {}  // it has one thing done at a time
  IntrusivePtr<Recording> end_recording() final { return std::move(recording_); }
  void drop_recording() noexcept final { recording_.reset(); }
  void replay(Recording& recording) final;
  uint64_t launches_begun(const Recording&) const final { return launches_begun_; }
  bool is_done_at_return() const final { return true; }
  bool has_status(const DeviceContext& context) final;
  void hand_over_messages() final;
  // Reads what kernels printed; not sooner: a launch that is repeated forgets it.
  bool mark_end(std::string_view name, DeviceContext& context, KeepAlive& released) final;
  bool reach_oldest_mark(bool wait, KeepAlive& released) final;

 private:
  void run_now(const Launch& launch, const LaunchBlock& block);

  MessageLog& log_;
  IntrusivePtr<HostRecording> recording_;  // null: nothing is being recorded
  uint64_t launches_begun_ = 0;            // of the last replay
  alignas(8) unsigned char result_[64];
  // For primitives, all of which take their turn: recordings have it in common.
  primitives::PrimitiveScratch scratch_;
};

}  // namespace coppice
