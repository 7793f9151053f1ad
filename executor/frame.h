// Frame: one run of a loaded function. Private to the executor.
//
//   offset 0   Frame
//              registers   atomic<AsyncValue*>[n_registers]   null until set
//              waits       atomic<u32>[n_operations]          registers that the operation still waits for
//              next        u32[n_operations]                  the next in a list of ready operations
//
// References: a register's value gets use_count references when it is stored, one of them for the storing itself; each
// use as an argument returns one after the operation has run, those of `return` pass to the caller. A missing value
// that somebody needs at once (a non-strict operation, or the caller of execute) is stored as an indirect value, which
// the storing reference keeps alive until its producer forwards it.
//
// Threads: a frame begins exclusive to the thread that executes it, and its counters are plain. Before anything of it is
// handed to another thread (a continuation, a task), share() makes it shared, for good.
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
  static constexpr bool kAllowsWeakReferences = false;
  static constexpr bool kIsMostlyUnique = true;

  // The caller has the only reference. `request` and the function's module outlive the call that made it, and are kept
  // alive from share() on.
  static IntrusivePtr<Frame> create(const LoadedFunction& function, Request& request);
  ~Frame();

  void start(std::span<AsyncValue* const> arguments);
  void take_results(std::span<AsyncValue*> results);

 private:
  friend class RefCountedBase<Frame>;
  friend struct coppice::detail::RefAccess;

  Frame(const LoadedFunction& function, Request& request)
      : Suspended(&describe_waiting), function_(function), request_(request) {}
  static void destroy(Frame* frame);
  static size_t bytes(const LoadedFunction& function);

  void set(ReadyOperations& ready, uint32_t r, AsyncValue* value);
  void set_argument(ReadyOperations& ready, uint32_t r, AsyncValue* value);
  void forward(ReadyOperations& ready, uint32_t r, AsyncValue* indirect, AsyncValue* value);
  void set_shared(ReadyOperations& ready, uint32_t r, AsyncValue* value, uint32_t uses);
  void publish(ReadyOperations& ready, uint32_t r, AsyncValue* value);
  void publish_pending(ReadyOperations& ready, uint32_t r, AsyncValue* value);
  void arrive(ReadyOperations& ready, uint32_t op);
  void push(ReadyOperations& ready, uint32_t op);
  bool claim(uint32_t op);
  AsyncValue* materialize(uint32_t r);

  void drain(ReadyOperations& ready);
  void start_non_strict();
  void dispatch(uint32_t op, Run where);
  void run(ReadyOperations& ready, uint32_t op);
  void run_function(const LoadedOperation& op, std::span<AsyncValue*> results);
  void fail_with_exception(const LoadedOperation& op, std::span<AsyncValue*> results) const;
  void check_results(const LoadedOperation& op, std::span<AsyncValue*> results) const;
  static bool take_back_dropped(const LoadedOperation& op, std::span<AsyncValue*> results);
  AsyncValue* first_error(const LoadedOperation& op) const;
  Error skipped(const LoadedOperation& op, AsyncValue& argument) const;
  // Lines of operations that have not started and what they wait for.
  static void describe_waiting(const Suspended& self, std::string& text);
  void describe_waiting(std::string& text) const;
  Error located(const Error& error, const LoadedOperation& op) const;
  static void fail(std::span<AsyncValue*> results, Error error);
  void continue_with(uint32_t r, bool was_enqueued);
  void share();

  const LoadedFunction& function_;
  Request& request_;
  bool shared_ = false;  // changed once, before another thread knows the frame
  std::atomic<AsyncValue*>* registers_ = nullptr;
  std::atomic<uint32_t>* waits_ = nullptr;
  uint32_t* next_ = nullptr;
};

}  // namespace coppice::executor
