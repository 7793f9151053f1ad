// An in-order queue of device work. What may be done only when one's turn has come is another object
// (gpu/in_stream.h). Every operation returns at once with an async value that becomes available when the work
// is done; operations of one stream run one after another, in the order they were given.
//
// Thread-safe. An operation that fails gives its error to its own value; the operations behind it that were
// queued before the next clear_error() are skipped and get the same error, so that nothing computes on what a
// failed one left.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/async_value.h"
#include "gpu/buffer.h"
#include "gpu/in_stream.h"
#include "gpu/launch_block.h"
#include "gpu/launch_uses.h"
#include "gpu/loaded_code.h"
#include "gpu/stream_event.h"

namespace coppice {

// Says that an argument of a launch is an address in a temporary: in an arena, the address alone does not
// say of which.
struct TemporaryArgument {
  static constexpr uint32_t kCount = ~0u;
  uint32_t offset;  // of the address in the launch block's arguments; kCount: it is that of the items' count
  IntrusivePtr<Buffer> buffer;
};

// Describes a compiled kernel and what it runs over. The number of items is read on the device when the
// launch starts.
struct Launch {
  std::string_view name;  // "file.kernel", for profilers, logs and errors; must outlive the launch
  AsyncValueRef<IntrusivePtr<LoadedCode>> code;  // the stream waits for the compiler
  LaunchBlock block;
  uint32_t grain = 1;         // items that one task takes at least
  bool has_checks = false;    // its uses are checked when it runs, by what the host finds out before
  uint32_t shared_bytes = 0;  // fast memory of a thread block (coppice_shared_memory()), where there is such
  // Runs before the launch in stream order (fills in lists that depend on earlier launches); may
  // throw Error. What earlier copies bring to the host may not be there yet, and it must not wait
  // for earlier values of the stream. It is called again where a launch before it turns out to have failed,
  // or to have changed a topology, which is not committed until then.
  std::function<void(InStream&, LaunchBlock&)> before_loop;
  // Runs between the two, where the launch is about to run (and not where only its lists are wanted), with
  // code of its own that the stream waits for, too; null where there is none.
  std::function<void(InStream&, LaunchBlock&)> make_room;
  AsyncValueRef<IntrusivePtr<LoadedCode>> room_code;
  // Runs after the loop in stream order; true runs the loop again (an activation that ran out of cells and
  // has grown).
  std::function<bool(InStream&, LaunchBlock&)> needs_repeat;
  // Throws the Error that a status says which the loop has left. It takes the place of needs_repeat() where
  // nothing but an error can come of the loop.
  std::function<void(InStream&)> throw_error;
  // A GPU is given launches behind one that may leave a status before it is done. Where it has left one,
  // they skip themselves, needs_repeat() or throw_error() is called, and they are given again; else neither
  // is called. So that this can be done with needs_repeat(), tell_changes() gives the device what leaves the
  // status kTopologyChanged where there is something to do although the loop has left no status; `number` is
  // the launch's. Where it is null, a launch with needs_repeat() is waited for.
  std::function<void(InStream&, uint64_t number)> tell_changes;
  // Runs instead of it where the loop could not: the emulated GPU ended it at a fault. Leaves what
  // the kernel uses as after a launch that failed. May throw Error, which is dropped: a device
  // that is lost can do nothing more.
  std::function<void(InStream&)> give_up;
  std::vector<IntrusivePtr<RefCounted>> keep_alive;  // what the kernel uses; let go when the launch is done
  std::vector<TemporaryArgument> temporaries;
  IntrusivePtr<const LaunchUses> uses;  // null: nothing is known to be touched
  // The launch is skipped (successfully) when the device status is not kOk at its turn. A GPU's status is
  // looked at only where a launch before may have left one.
  bool skip_on_status = true;
  // The launch goes on with the one before it, of whose loop it has the rest, say: it has that one's
  // number, and random numbers are those of one launch.
  bool goes_on = false;
  bool may_leave_status() const { return needs_repeat || throw_error; }
  // The bytes of its handles' values that one entry of its loop's list reads and writes at least, for
  // profiles; 0: not known.
  uint64_t item_bytes = 0;
  // Returns whether its result depends on the order of its items: a device in deterministic mode keeps it.
  bool is_ordered() const { return uses && uses->depends_on_order(); }
};

// Calls the launch's give_up(), where its loop could not run; drops an Error of that.
void give_up_on(InStream& s, const Launch& launch);

// Holds a launch to be given more than once: immutable, and kept by whoever holds it. A run works on a
// copy of its block.
class SharedLaunch final : public RefCounted {
 public:
  explicit SharedLaunch(Launch given) : launch(std::move(given)) {}
  const Launch launch;
};

class Stream : public RefCounted {
 public:
  ~Stream() override = default;
  // Returns whether the value is what one of the functions below has returned: who gives the stream work need
  // not wait for it.
  bool gave(const AsyncValue& value) const { return is_stream_event(value, number_); }

  virtual AsyncValueRef<Chain> launch(Launch launch) = 0;
  // Copies a pointer where the other copies 700 bytes.
  virtual AsyncValueRef<Chain> launch(IntrusivePtr<const SharedLaunch> launch) = 0;
  // Runs a host function in stream order, on the stream's thread, when everything before it is done. It may
  // throw Error.
  virtual AsyncValueRef<Chain> enqueue(std::string_view name, std::function<void(InStream&)> function) = 0;
  // Does the same for a function that only gives device work: what is before it may still be under way,
  // and so may be what it gave when it returns.
  virtual AsyncValueRef<Chain> issue(std::string_view name, std::function<void(InStream&)> function) = 0;
  // Copies from device to device, device to host or host to device; host memory must stay valid until the
  // value is available.
  virtual AsyncValueRef<Chain> copy(void* to, const void* from, size_t bytes) = 0;
  virtual AsyncValueRef<Chain> fill(void* to, int byte, size_t bytes) = 0;
  // Returns a value that is available when everything queued so far is done.
  virtual AsyncValueRef<Chain> barrier() = 0;
  // Lets what is queued from now on run whatever became of the operations before it; those stay skipped.
  virtual void clear_error() = 0;
  // Returns how many times that was done: what was queued in between may have been skipped.
  virtual uint64_t errors_cleared() const = 0;

 protected:
  AsyncValueRef<Chain> make_event() const { return make_stream_event(number_); }

 private:
  static inline std::atomic<uint32_t> last_number_{0};
  const uint32_t number_ = last_number_.fetch_add(1, std::memory_order_relaxed) + 1;
};

}  // namespace coppice
