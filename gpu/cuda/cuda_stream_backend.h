// Does the operations of a stream of the cuda device: it issues them to a CUstream.
//
// Marks are events. Copies between device and host pass through pinned memory where they are small: to
// the device, the caller's memory is free at once; to the host, the bytes arrive when the copy's mark
// is reached, or at the next wait.
//
// A recording is what the driver captures while it is issued; it becomes a graph (cuda_recording.h).
// Meanwhile nothing is waited for, marked, or copied to or from the host.
#pragma once
#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "gpu/buffer.h"
#include "gpu/cuda/context.h"
#include "gpu/cuda/launch_timer.h"
#include "gpu/cuda/small_memory.h"
#include "gpu/cuda/staging.h"
#include "gpu/messages.h"
#include "gpu/stream_backend.h"

namespace coppice::cuda {

class CudaStreamBackend final : public StreamBackend {
 public:
  // `device_context` holds the DeviceContext, `log` (the device's) gets what kernels
  // print. With `exact_errors` every launch is waited for, so that a fault is its own. The status is fetched
  // behind launches (can_fetch_status()) where no other stream `owns_status`.
  // Errors: kUnavailable, kOutOfMemory.
  CudaStreamBackend(IntrusivePtr<Context> context, IntrusivePtr<SmallMemory> small,
                    IntrusivePtr<Buffer> device_context, MessageLog& log, bool exact_errors,
                    bool owns_status);
  ~CudaStreamBackend() override;

  void run_loop(const Launch& launch, const LaunchBlock& block) override;
  void run_function(const std::function<void()>& function) override;
  void copy(void* to, const void* from, size_t bytes) override;
  void fill(void* to, int byte, size_t bytes) override;
  void wait_copy(void* to, const void* from, size_t bytes) override;
  void run_primitive(const PrimitiveCall& call) override;
  void* result_memory() override;
  void begin_recording() override;
  uint64_t launches_begun(const Recording& recording) const override { return recording.launches; }
  bool is_done_at_return() const override { return false; }
  void begin_recorded_part(std::span<const uint32_t> before) override;
  IntrusivePtr<Recording> end_recording() override;
  void drop_recording() noexcept override;
  void replay(Recording& recording) override;
  void wait_begun() override;
  bool has_status(const DeviceContext& context) override;
  bool can_fetch_status() const override { return owns_status_ && !exact_errors_; }
  void fetch_status(const DeviceContext& context, LaunchEnd& end) override;
  void hand_over_messages() override;
  bool mark_end(std::string_view name, DeviceContext& context, KeepAlive& released) override;
  bool reach_oldest_mark(bool wait, KeepAlive& released) override;

 private:
  struct Mark {
    EventHandle event;
    std::string names;  // of what was launched since the one before, for errors
    uint64_t staged;    // what is given back when it is reached
    uint64_t number;
    KeepAlive used;
  };
  // Tells what a status is fetched for: Context::status_changes() then, and the launch_id() of a launch.
  struct StatusOf {
    uint64_t changes, launch;
  };
  // Describes bytes that came from the device and belong to the host's `to`. If `from` is null, they come
  // by themselves.
  struct Delivery {
    uint64_t mark;
    void* to;
    const std::byte* from;
    size_t bytes;
    std::optional<StatusOf> status_of;
  };
  // Holds what is being recorded.
  struct Capture {
    KeepAlive used;
    std::vector<std::string> names;  // of kernels and primitives, each once
    void note(std::string_view name) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
    }
    bool is_in_part = false;
    std::vector<std::vector<GraphNodeHandle>> part_ends;  // of the parts that are done
  };
  std::vector<GraphNodeHandle> capture_dependencies() const;
  void begin();
  // Gives the stream a piece of work, between two events where kernels are timed.
  void issue_timed(const std::function<LaunchTimer::Work()>& work, const std::function<void()>& issue);
  LaunchTimer::Work work_of(const Launch& launch, const LaunchBlock& block);
  void keep(const Launch& launch);
  Result end_capture(GraphHandle* graph, Capture& capture);
  void release(KeepAlive used);
  void* scratch(size_t bytes);
  void check(Result result, std::string_view call);
  void issue_copy(void* to, const void* from, size_t bytes);
  [[noreturn]] static void refuse_to_record(std::string_view what);
  void copy_by_addresses(void* to, const void* from, size_t bytes, bool waits);
  void copy_to_device(void* to, const void* from, size_t bytes, bool is_free_at_return);
  void copy_to_host(void* to, const void* from, size_t bytes);
  std::byte* take_staging(size_t bytes);
  void deliver(uint64_t mark);
  void host_memory_is_used();
  Error at_fault(Result result, std::string_view call);
  void forget_oldest_mark(KeepAlive& released);

  const IntrusivePtr<Context> context_;
  const IntrusivePtr<SmallMemory> small_;
  const IntrusivePtr<Buffer> device_context_;
  MessageLog& log_;
  const bool exact_errors_, owns_status_;
  StreamHandle stream_ = nullptr;
  Staging staging_;
  std::optional<LaunchTimer> timer_;  // in a profile
  std::deque<Mark> marks_;
  std::deque<Delivery> deliveries_;
  std::vector<EventHandle> free_events_;
  uint64_t next_mark_ = 0;
  uint64_t reached_marks_ = 0;  // those before it are known to be reached, whatever the driver says later
  // Since the last mark.
  bool is_issued_ = false;
  std::string names_;
  KeepAlive used_;
  uint64_t status_none_at_ = 0;  // Context::status_changes() when there was none
  std::optional<Capture> capture_;
  // For primitives, once they were needed. Scratch memory grows in place, and what one stream does never runs
  // at once, so that all of its recordings have it in common.
  IntrusivePtr<Buffer> scratch_, result_;
};

}  // namespace coppice::cuda
