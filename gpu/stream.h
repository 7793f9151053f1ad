// An in-order queue of device work. Every operation returns at once with an async value that becomes
// available when the work is done; operations of one stream run one after another, in the order they were
// given.
//
// Thread-safe. An operation that fails gives its error to its own value; the operations behind it that were
// queued before the next clear_error() are skipped and get the same error, so that nothing computes on what a
// failed one left.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/async_value.h"
#include "gpu/jit/loaded_code.h"
#include "gpu/launch_block.h"
#include "gpu/launch_uses.h"
#include "gpu/primitive_call.h"

namespace coppice {

// A compiled kernel and what it runs over. The number of items is read on the device when the launch starts.
struct Launch {
  std::string_view name;  // "file.kernel", for profilers, logs and errors; must outlive the launch
  AsyncValueRef<IntrusivePtr<jit::LoadedCode>> code;  // the stream waits for the compiler
  LaunchBlock block;
  uint32_t grain = 1;         // items that one task takes at least
  uint32_t shared_bytes = 0;  // fast memory of a thread block (coppice_shared_memory()), where there is such
  // Runs before the launch in stream order (fills in lists that depend on earlier launches); may throw Error.
  // Device memory it looks at by Stream::wait_copy_inline; what earlier copies bring to the host may not be
  // there yet, and it must not wait for earlier values of the stream.
  std::function<void(LaunchBlock&)> prepare;
  // Runs between the two, where the launch is about to run (and not where only its lists are wanted), with
  // code of its own that the stream waits for, too; null where there is none.
  std::function<void(LaunchBlock&)> make_room;
  AsyncValueRef<IntrusivePtr<jit::LoadedCode>> room_code;
  // Runs after the loop in stream order; true runs the loop again (an activation that ran out of cells and
  // has grown).
  std::function<bool(LaunchBlock&)> finish;
  // Runs instead of it where the loop could not: the emulated GPU ended it at a fault. Leaves what
  // the kernel uses as after a launch that failed. May throw Error, which is dropped: a device
  // that is lost can do nothing more.
  std::function<void()> give_up;
  std::vector<IntrusivePtr<RefCounted>> keep_alive;  // what the kernel uses; let go when the launch is done
  IntrusivePtr<const LaunchUses> uses;               // null: nothing is known to be touched
  // Skipped (successfully) when the device status is not kOk at its turn. A GPU's is looked at after launches
  // that have a finish(): a kernel that sets a status belongs to one.
  bool skip_on_status = true;
  // Bytes of its handles' values that one entry of its loop's list reads and writes at least, for profiles;
  // 0: not known.
  uint64_t item_bytes = 0;
  // Whether its result depends on the order of its items: a device in deterministic mode keeps it.
  bool is_ordered() const { return uses && uses->depends_on_order(); }
};

// Where its loop could not run.
void give_up_on(const Launch& launch);

// A launch to be given more than once: immutable, and kept by whoever holds it. A run works on a copy of its
// block.
class SharedLaunch final : public RefCounted {
 public:
  explicit SharedLaunch(Launch given) : launch(std::move(given)) {}
  const Launch launch;
};

// Device work that a stream recorded, to be given again and again as a whole (Stream::record_inline()). Keeps
// what the work uses.
class Recording : public RefCounted {
 public:
  uint32_t launches = 0;  // in it, the runtime's own not counted
};

class Stream : public RefCounted {
 public:
  ~Stream() override = default;
  virtual AsyncValueRef<Chain> launch(Launch launch) = 0;
  // Copies a pointer where the other copies 700 bytes.
  virtual AsyncValueRef<Chain> launch(IntrusivePtr<const SharedLaunch> launch) = 0;
  // Runs a host function in stream order, on the stream's thread, when everything before it is done. It may
  // throw Error.
  virtual AsyncValueRef<Chain> enqueue(std::string_view name, std::function<void()> function) = 0;
  // The same for a function that only gives device work inline: what is before it may still be under way, and
  // so may be what it gave when it returns.
  virtual AsyncValueRef<Chain> issue(std::string_view name, std::function<void()> function) = 0;
  // Device to device, device to host or host to device; host memory must stay valid until the value is
  // available.
  virtual AsyncValueRef<Chain> copy(void* to, const void* from, size_t bytes) = 0;
  virtual AsyncValueRef<Chain> fill(void* to, int byte, size_t bytes) = 0;
  // Available when everything queued so far is done.
  virtual AsyncValueRef<Chain> barrier() = 0;
  // What is queued from now on runs whatever became of the operations before it; those stay skipped.
  virtual void clear_error() = 0;
  // Runs a launch at once. Only from inside the stream's own order: an enqueued function, prepare or finish.
  virtual void run_inline(Launch& launch) = 0;
  // Copies at once, after everything before it in the stream: device to host, host to device or within the
  // device, as the addresses say. When it returns, host memory holds what was read, or may be used for
  // something else. Only from inside the stream's own order. Cost where device memory is not the host's: a
  // reading waits for the device, some 10 us.
  virtual void wait_copy_inline(void* to, const void* from, size_t bytes) = 0;
  virtual void fill_inline(void* to, int byte, size_t bytes) = 0;
  // A parallel primitive, at once (gpu/stream_primitives.h).
  virtual void run_inline(const PrimitiveCall& call) = 0;
  // Device memory of the stream's own, of 64 bytes, where such a call may leave its result; the next call may
  // use it.
  virtual void* result_inline() = 0;

  // Keeps the launches, fills and primitives that `give` gives inline instead of doing them. Nothing in it
  // may read back or copy (a failed check): counts are read on the device, and sizes are what there is room
  // for. Only from inside the stream's own order.
  virtual IntrusivePtr<Recording> record_inline(const std::function<void()>& give) = 0;
  virtual bool is_recording() const = 0;
  // Does all of it, without waiting for the device: on a GPU as one graph. Launches behind one that leaves a
  // status are skipped on the device, and what settles that launch (Launch::finish) too where it ran out of
  // cells. Returns the number of the first launch in it, which the status has (status_launch()).
  virtual uint64_t replay_inline(Recording& recording) = 0;
  // After a replay whose launch of that number left a status: has it finish() now, and repeats it where that
  // says so. What is launched next gets the numbers behind it.
  virtual void resume_inline(const Launch& launch, uint64_t number) = 0;
};

}  // namespace coppice
