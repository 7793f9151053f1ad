// One GPU as all objects of a cuda device share it: its primary context, its properties, which addresses are
// the device's, and whether it is lost.
//
// Thread-safe. A fatal answer of the driver loses the device for good: from then on everything gives that
// first error, and what is freed is freed as far as the driver lets us.
#pragma once
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>

#include "core/intrusive_ptr.h"
#include "gpu/cuda/driver_error.h"
#include "gpu/cuda/kernel_profile.h"

namespace coppice::cuda {

struct Properties {
  std::string name;        // "NVIDIA H200"
  int driver_version = 0;  // 12040: CUDA 12.4
  int sm = 0;              // compute capability: 90
  int multiprocessors = 0;
  int max_shared_bytes = 0;  // of a thread block
  int max_threads = 0;       // of a multiprocessor
  size_t memory_bytes = 0;
  size_t granule_bytes = 0;  // what memory is mapped in multiples of
};

// Holds the fastest that a GPU's clocks go; 0 where the driver does not tell.
struct Clocks {
  int multiprocessor_kHz = 0, memory_kHz = 0, memory_bus_bits = 0;
};

class Context final : public RefCounted {
 public:
  // `driver` is initialized and outlives the context. Errors: kUnavailable, where there is no such device or
  // it cannot do what the cuda device needs.
  Context(const Driver& driver, int ordinal);
  ~Context() override;

  const Driver& driver() const { return driver_; }
  const Properties& properties() const { return properties_; }
  Clocks clocks() const;
  const AllocationProperties& allocation() const { return allocation_; }
  // Returns the profile in which kernels are timed; null where they are not.
  KernelProfile* profile() { return profile_.get(); }

  // While it lives, the calling thread's current context is this one; then again what it was before.
  class Scope {
   public:
    explicit Scope(Context& context);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Context& context_;
    const ContextHandle outer_;
  };

  // Does the same where something is freed: never throws. What the driver does not free then goes with the
  // context.
  class FreeingScope {
   public:
    explicit FreeingScope(Context& context);
    ~FreeingScope();
    FreeingScope(const FreeingScope&) = delete;
    FreeingScope& operator=(const FreeingScope&) = delete;

   private:
    Context& context_;
    ContextHandle outer_ = nullptr;
  };
  // Does the same for good: for threads of our own.
  void make_current();

  // Throws what a failed call means. `call` is the driver's function or what was to be done.
  void check(Result result, std::string_view call);
  // Remembers the first fatal error; gives the one that is remembered, or `error` where it is not fatal.
  Error lost_or(Result result, Error error);
  void throw_if_lost() const;
  bool is_lost() const { return is_lost_.load(std::memory_order_acquire); }

  // Create and destroy streams of the device. They need a Scope. Destroying one waits for what it was
  // given.
  StreamHandle create_stream();
  void wait_destroy_stream(StreamHandle stream);
  // Between the two calls, work given to the stream, which must have nothing under way, becomes a graph.
  // Meanwhile nobody may wait for it, nor for the whole device: the driver would refuse, and drop the
  // graph.
  void begin_capture(StreamHandle stream);
  Result end_capture(StreamHandle stream, GraphHandle* graph);
  // Returns when the device has done everything that was issued to these streams. Needs
  // a Scope. A lost device is done.
  void wait_idle();
  // Does the same where something is freed: never throws.
  void wait_idle_to_free() { synchronize_streams(); }
  // Fill and copy at once, beside the streams: for memory that no issued work knows yet. They need a
  // Scope.
  void wait_fill(DeviceAddress to, unsigned char byte, size_t bytes);
  void wait_copy(DeviceAddress to, DeviceAddress from, size_t bytes);

  // Returns how often kernels, or the host, may have changed DeviceContext::status: a stream looks at it
  // again when this changed.
  uint64_t status_changes() const { return status_changes_.load(std::memory_order_relaxed); }
  void note_status_change() { status_changes_.fetch_add(1, std::memory_order_relaxed); }

  void add_range(DeviceAddress at, size_t bytes);
  void remove_range(DeviceAddress at);
  bool is_device_memory(const void* address) const;

 private:
  // Returns what was current before.
  ContextHandle switch_to(ContextHandle handle);
  int attribute(DeviceAttribute which);
  Result synchronize_streams();
  void read_properties();

  const Driver& driver_;
  const int ordinal_;
  DeviceId device_ = 0;
  ContextHandle handle_ = nullptr;
  Properties properties_;
  AllocationProperties allocation_;
  StreamHandle side_stream_ = nullptr;
  const std::unique_ptr<KernelProfile> profile_ = KernelProfile::from_environment();

  std::mutex streams_mutex_;
  std::map<StreamHandle, bool> streams_;  // and whether each is captured

  std::atomic<uint64_t> status_changes_{0};
  std::atomic<bool> is_lost_{false};
  mutable std::mutex mutex_;
  std::optional<Error> lost_;  // guarded by mutex_; set once
  mutable std::shared_mutex ranges_mutex_;
  std::map<DeviceAddress, size_t> ranges_;  // reserved: address and bytes
};

}  // namespace coppice::cuda
