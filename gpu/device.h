// A device: memory, streams, and the kernels compiled for it. One interface, several devices: cpu, simt,
// cuda.
//
// Thread-safe. Devices are shared: whoever holds streams, trees or programs keeps the device alive. The
// last of these handles may go at any time and on any thread, within a continuation too: what the device
// was given is done first, and what nobody waits for is not compiled any more. When the process ends
// while handles are left, exit() waits for what is under way; what is queued behind it gets the error
// kCancelled (core/process_end.h).
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/intrusive_ptr.h"
#include "core/process_end.h"
#include "gpu/buffer.h"
#include "gpu/codegen_options.h"
#include "gpu/stream.h"

namespace coppice {

class KernelStore;
class MessageLog;
namespace simt {
struct Options;
}

struct CpuOptions {
  int threads = 0;  // at most 4096, or Device::cpu() throws kInvalidArgument; 0: all cores
  // Results have the same bits from run to run, whatever `threads` is: launches whose result depends on
  // the order of their items (Launch::is_ordered()) run on one thread, in order. docs/architecture.md says
  // what that covers.
  bool deterministic = false;
};

class Device : public RefCounted {
 public:
  Device() { count_.fetch_add(1, std::memory_order_relaxed); }
  ~Device() override { count_.fetch_sub(1, std::memory_order_relaxed); }
  static int count() { return count_.load(std::memory_order_relaxed); }  // in the process, now

  // Returns the device to take where nothing else is asked for: the CPU, until all that it can do has been
  // seen to work on a GPU.
  static IntrusivePtr<Device> best();
  // Returns the device of this name: "cpu", "cuda", "simt" (with the seed that COPPICE_SIMT_SEED says) or
  // "auto". Errors: kUnavailable with the reason, kUsage for another name or a wrong seed.
  static IntrusivePtr<Device> named(std::string_view name);
  static IntrusivePtr<Device> cpu(const CpuOptions& options);
  static IntrusivePtr<Device> cpu(int threads = 0) { return cpu(CpuOptions{.threads = threads}); }
  // Returns an emulated GPU (gpu/simt/machine.h): slow, and the same from run to run. It is for finding
  // races and wrong barriers. Every stream has a machine of its own.
  static IntrusivePtr<Device> simt();
  static IntrusivePtr<Device> simt(const coppice::simt::Options& options);

  virtual std::string_view name() const = 0;    // "cpu"
  virtual std::string description() const = 0;  // "2 threads, znver4"
  virtual int threads() const = 0;              // items that run at once, for load balancing

  // Returns memory of `initial_bytes`, zero, that may grow to `reserved_bytes`, or to `initial_bytes` where
  // that is more. Errors: kOutOfMemory, kUnavailable in a forked child.
  IntrusivePtr<Buffer> reserve(size_t reserved_bytes, size_t initial_bytes,
                               Filling filling = Filling::kPacked);
  // Returns whether a buffer's pages come with their first touch, so that committing a whole range costs
  // no memory. Elsewhere memory is mapped before a launch that uses it.
  virtual bool commits_on_touch() const { return false; }
  // Says whether the threads of a thread block share a loop's item, as a GPU's do.
  virtual bool shares_items() const { return false; }
  // Returns what all buffers together may have: the memory of the machine, or of its control group, or the
  // GPU's.
  virtual uint64_t memory_bytes() const = 0;
  // Copies at once, in no stream's order, between memory that nothing queued uses (a new buffer, say): device
  // to host, host to device or within the device, as the addresses say. Errors:
  // kInvalidArgument for memory of another device.
  virtual void wait_copy(void* to, const void* from, size_t bytes) = 0;
  // Returns a stream that works beside the others. The status is the device's, not a stream's: launches that
  // may leave one (Launch::may_leave_status()), and recordings, belong to the default stream, where programs
  // and traced functions put them. Errors: kUnavailable in a forked child.
  IntrusivePtr<Stream> create_stream();
  virtual Stream& default_stream() = 0;
  // Returns status, seed and counters that kernels of this device share: a place in device memory, to name
  // and to copy from (gpu/host_access.h), not for the host to read.
  virtual DeviceContext& context() = 0;
  // Returns the log of what kernels print; null where nobody reads it.
  virtual MessageLog* message_log() { return nullptr; }
  virtual KernelStore& kernels() = 0;
  // Returns how kernels are compiled for this device where `asked` is wanted.
  virtual CodegenOptions codegen(CodegenOptions asked) const { return asked; }

  // Sets the handler that gets what kernels print (sparse/device/messages.h), line by line, on a stream's
  // thread when a launch has ended; it must neither throw nor wait for the device. Empty: stdout.
  void set_message_handler(std::function<void(std::string_view)> handler);
  // Sets the seed of kernels' Random, in the default stream's order; 0 at first.
  void set_seed(uint64_t seed);

 private:
  virtual IntrusivePtr<Buffer> new_buffer(size_t reserved_bytes, size_t initial_bytes, Filling filling) = 0;
  virtual IntrusivePtr<Stream> new_stream_beside() = 0;

  const ForkGuard guard_;
  static inline constinit std::atomic<int> count_{0};
};

}  // namespace coppice
