// Frame: one run of a loaded function. Private to the executor.
//
//   offset 0   Frame
//              registers   atomic<AsyncValue*>[n_registers]   null until set
//              waits       atomic<u32>[n_operations]          registers that the operation still waits for
//              next        u32[n_operations]                  the next in a list of ready operations
//
// References: a register's value gets use_count references when it is stored, one of them for the storing
// itself; each use as an argument returns one after the operation has run, those of `return` pass to the
// caller. A missing value that somebody needs at once (a non-strict operation, or the caller of execute) is
// stored as an indirect value, which the storing reference keeps alive until its producer forwards it.
//
// Threads: a frame begins exclusive to the thread that executes it, and its counters are plain. Before
// anything of it is handed to another thread (a continuation, a task), share() makes it shared, for good.
//
// A shared frame is in its request's list, which has a weak reference to it: describe_waiting() and cancel()
// find there what waits. What an operation that waits has as arguments, describe_waiting() may look at: it
// exchanges the operation's count for itself after Request::kDescribed is set, so that whoever starts the
// operation afterwards sees the flag, and gives the arguments back only when it is done.
#pragma once
#include <atomic>

#include "executor/executor.h"

namespace coppice::executor {

// A thread's stacks of ready operations of one frame, linked through Frame::next.
struct ReadyOperations {
  uint32_t here = kNoOperation;     // kInline and kBlocking
  uint32_t compute = kNoOperation;  // kCompute
};

class Frame final : public RefCountedBase<Frame>, private Suspended {
 public:
  static constexpr bool kIsMostlyUnique = true;

  // The caller has the only reference. `request` and the function's module outlive the call that made it, and
  // are kept alive from share() on.
  static IntrusivePtr<Frame> create(const LoadedFunction& function, Request& request);

  void start(std::span<AsyncValue* const> arguments);
  void take_results(std::span<AsyncValue*> results);

 private:
  friend class RefCountedBase<Frame>;
  friend struct coppice::detail::RefAccess;

  Frame(const LoadedFunction& function, Request& request)
      : Suspended(kType), function_(function), request_(request) {}
  static void destroy(Frame* frame);
  void release_resources();  // leaves the list
  static size_t bytes(const LoadedFunction& function);

  void set(ReadyOperations& ready, uint32_t r, AsyncValue* value);
  void set_argument(uint32_t r, AsyncValue* value);
  void forward(ReadyOperations& ready, uint32_t r, AsyncValue* indirect, AsyncValue* value);
  void set_shared(ReadyOperations& ready, uint32_t r, AsyncValue* value, uint32_t uses);
  void publish(ReadyOperations& ready, uint32_t r, AsyncValue* value);
  void publish_pending(ReadyOperations& ready, uint32_t r, AsyncValue* value);
  void arrive(ReadyOperations& ready, uint32_t op);
  void push(ReadyOperations& ready, uint32_t op);
  bool claim(uint32_t op);
  AsyncValue* materialize(uint32_t r);

  // kContinuation: on a thread that goes on with something else, so that nothing expensive runs here.
  enum class Context { kOwn, kContinuation };
  void drain(ReadyOperations& ready, Context context = Context::kOwn);
  bool begin_waiting(ReadyOperations& ready, uint32_t op);
  void start_non_strict();
  void cancel_waiting();
  void dispatch(uint32_t op, Run where);
  void run(ReadyOperations& ready, uint32_t op);
  // Runs an operation of a request with Request::flags(). It is a function apart, so that other requests
  // do not read the flags again when an operation has run.
  [[gnu::noinline]] void run_flagged(ReadyOperations& ready, uint32_t op, uint32_t flags);
  template <bool kHasFlags>
  void run(ReadyOperations& ready, uint32_t op, uint32_t flags);
  void run_function(const LoadedOperation& op, std::span<AsyncValue*> results);
  AsyncValue* first_error(const LoadedOperation& op) const;
  bool has_all_arguments(const LoadedOperation& op) const;
  // Adds a line for each operation that has not started, with what it waits for.
  void describe_waiting(std::string& text) const;
  // A continuation tells these users of a register.
  struct Users {
    bool of_value, of_event;
  };
  void continue_when(AsyncValue& value, uint32_t r, Users users);
  void continue_with(uint32_t r, Users users, Context context);
  void share();

  static const Type kType;
  const LoadedFunction& function_;
  Request& request_;
  bool shared_ = false;  // changed once, before another thread knows the frame
  std::atomic<AsyncValue*>* registers_ = nullptr;
  std::atomic<uint32_t>* waits_ = nullptr;
  uint32_t* next_ = nullptr;
};

}  // namespace coppice::executor
