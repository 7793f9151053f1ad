// The two kinds of InStream: one does what it is told, the other records it. Used by the stream's thread
// alone.
#pragma once
#include <functional>
#include <memory>
#include <unordered_map>

#include "gpu/in_stream.h"
#include "gpu/launch_profile.h"
#include "gpu/stream_backend.h"

namespace coppice {

class DirectOrder final : public InStream {
 public:
  // All outlive this.
  DirectOrder(StreamBackend& backend, DeviceContext& context, LaunchProfile& profile)
      : backend_(backend), context_(context), profile_(profile) {}
  using InStream::run;
  void run(const Launch& launch, LaunchBlock& block) override;
  void run(const PrimitiveCall& call) override;
  void fill(void* to, int byte, size_t bytes) override;
  void copy(void* to, const void* from, size_t bytes) override;
  void wait_copy(void* to, const void* from, size_t bytes) override;
  void* result() override { return backend_.result_memory(); }
  bool is_recording() const override { return false; }
  bool is_done_at_return() const override { return backend_.is_done_at_return(); }
  IntrusivePtr<Recording> record(const std::function<void(InStream&)>& give) override;
  void begin_part(std::span<const uint32_t> before) override;  // a failed check
  uint64_t replay(Recording& recording) override;
  void resume(const Launch& launch, uint64_t number) override;
  void hand_over_messages() override;

  // Does the same as run(), but may leave the look at the launch's status to settle(), once the mark behind
  // it is reached: then it returns an end. Until that is settled, all that may be begun behind it are
  // launches that can be (can_begin_behind_unsettled()), by this function: they skip themselves where there
  // is a status.
  std::unique_ptr<LaunchEnd> begin(const Launch& launch, LaunchBlock& block, bool is_behind_unsettled);
  bool can_begin_behind_unsettled(const Launch& launch) const;
  // Is called when the mark is reached; unless the end is_settled(), when all that was begun is done, and all
  // that was begun behind the launch is to be begun again. Repeats the launch where it says so, and throws
  // its error. Returns false where it has not run, and is to be begun again, too.
  bool settle(const Launch& launch, const LaunchEnd& end);

 private:
  void run_to_its_end(const Launch& launch, LaunchBlock& block);
  void repeat(const Launch& launch, LaunchBlock& block);  // once, and while its needs_repeat() says so
  void note_change(const Launch& launch, bool has_changed);
  bool finish(const Launch& launch, LaunchBlock& block);  // returns whether it is to be repeated
  void forget_status();  // that a launch left whose error is told otherwise: it would stop all later ones

  StreamBackend& backend_;
  DeviceContext& context_;
  LaunchProfile& profile_;
  uint64_t launches_ = 0;        // that were not skipped, nor the runtime's own
  uint64_t replayed_from_ = 0;   // DeviceContext::replayed_from
  bool has_old_status_ = false;  // was left by a launch that is settled, when this was last looked at
  // Says for launches that tell_changes(), by their uses, how many of them are still to be waited for, and
  // how many these were at first.
  uint64_t next_number(const Launch& launch) { return launch.goes_on ? launches_ - 1 : launches_++; }
  struct Waits {
    uint32_t left = 0, all = 0;
  };
  std::unordered_map<const LaunchUses*, Waits> waits_for_changes_;
};

class RecordingOrder final : public InStream {
 public:
  // `backend` is recording.
  RecordingOrder(StreamBackend& backend, DeviceContext& context) : backend_(backend), context_(context) {}
  using InStream::run;
  void run(const Launch& launch, LaunchBlock& block) override;
  void run(const PrimitiveCall& call) override;
  void fill(void* to, int byte, size_t bytes) override;
  void copy(void* to, const void* from, size_t bytes) override;
  void* result() override { return backend_.result_memory(); }
  void begin_part(std::span<const uint32_t> before) override { backend_.begin_recorded_part(before); }
  bool is_recording() const override { return true; }
  bool is_done_at_return() const override { return false; }
  uint32_t launches() const { return launches_; }  // so far

  // These are failed checks: a recording cannot do them.
  void wait_copy(void* to, const void* from, size_t bytes) override;
  IntrusivePtr<Recording> record(const std::function<void(InStream&)>& give) override;
  uint64_t replay(Recording& recording) override;
  void resume(const Launch& launch, uint64_t number) override;
  void hand_over_messages() override;

 private:
  StreamBackend& backend_;
  DeviceContext& context_;
  uint32_t launches_ = 0;
  bool is_committing_ = false;  // the last launch
};

}  // namespace coppice
