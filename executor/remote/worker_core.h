// A worker and its references share this: the protocol, behind a mutex, and what goes on around it.
// Internal to worker.h.
//
// Threads: any may call what is public, but progress(), which one thread at a time calls. Users' code
// (functions, continuations, destructors of values) runs on the host's queue alone.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/hash.h"
#include "executor/executor.h"
#include "executor/remote/codecs.h"
#include "executor/remote/message_trace.h"
#include "executor/remote/protocol.h"
#include "executor/remote/transport.h"

namespace coppice::executor::remote {

// Names a function on whatever worker: code does not travel, so that both must have loaded the same module.
struct Callee {
  Hash128 module;  // module_id()
  std::string function;
};

// Receives what a call or a fetch brings, on the queue; dropped unused, it leaves an error itself.
class Receiver {
 public:
  virtual ~Receiver() = default;
  virtual void set(RCReference<AsyncValue> value) = 0;  // available, no error
  virtual void set_error(Error error) = 0;
};

class WorkerCore final : public RefCounted {
 public:
  struct Options {
    ProtocolOptions protocol;
    Time timeout = kNever;  // of calls and fetches that have none of their own
  };
  WorkerCore(const Options& options, Transport& transport, const Clock& clock, IntrusivePtr<Host> host,
             Codecs codecs);

  WorkerId self() const { return options_.protocol.self; }
  const Codecs& codecs() const { return codecs_; }
  Host& host() const { return *host_; }
  Time deadline(Time timeout) const;

  Hash128 add_module(IntrusivePtr<LoadedModule> module);
  IntrusivePtr<Lease> own(RCReference<AsyncValue> value);
  // Errors of both: kNotFound and kInvalidArgument where this worker has loaded the module, and knows better;
  // kInvalidArgument for arguments that have no codec. `result` is what the function must return.
  IntrusivePtr<Lease> create(WorkerId owner, const Callee& callee,
                             std::vector<RCReference<AsyncValue>> arguments, std::type_index result);
  void call(WorkerId worker, const Callee& callee, std::vector<RCReference<AsyncValue>> arguments,
            std::type_index result, Time deadline, std::unique_ptr<Receiver> receiver);
  void fetch(const Lease& lease, Time deadline, std::unique_ptr<Receiver> receiver);
  std::optional<Error> error_of(const Lease& lease);

  Time progress();
  std::string report();
  Protocol::Counts counts();
  Protocol::State state();
  // Returns a value that is there when all is over.
  AsyncValueRef<Chain> shutdown();
  // Enqueues alone: it may be called where any lock is held.
  void drop(HandleId handle, const RRefId& rref);
  void close();  // the transport is used no more

 private:
  struct Dropped {
    HandleId handle;
    RRefId rref;
  };
  // The duty to finish a service, kept also where a queue drops the work.
  class Service;
  // Work of the protocol's effects that waits until the mutex is free.
  using Tasks = std::vector<Task>;

  // Calls f(protocol, now) under the mutex, and sees to the effects.
  template <class F>
  auto with_protocol(F f);
  void take_effects(Tasks& tasks);
  void apply(effect::Send& e, Tasks& tasks);
  void apply(effect::Run& e, Tasks& tasks);
  void apply(effect::Serve& e, Tasks& tasks);
  void apply(effect::Complete& e, Tasks& tasks);
  void apply(effect::Free& e, Tasks& tasks);
  void apply(effect::Fail& e, Tasks& tasks);
  void apply(effect::Gone& e, Tasks& tasks);
  void take_dropped(Tasks& tasks);
  void forget(const RRefId& rref, Tasks& tasks);
  void enqueue(Task task);
  void wake();
  void enqueue_all(Tasks& tasks);

  IntrusivePtr<Lease> lease_locked(HandleId handle);
  Leases leases_locked(const std::vector<HandleId>& handles);
  AsyncValue* value_locked(const RRefId& rref);
  std::vector<HandleId> handles_of(const Leases& leases) const;
  void check_call(const Callee& callee, const std::vector<RCReference<AsyncValue>>& arguments,
                  std::type_index result);
  Bytes encode_call(const Callee& callee, const std::vector<RCReference<AsyncValue>>& arguments,
                    Leases& leases);
  IntrusivePtr<LoadedModule> find_module(const Hash128& id);
  // Runs a function of a loaded module here. Errors: as of execute(); kNotFound.
  RCReference<AsyncValue> run_here(const Callee& callee, std::span<const RCReference<AsyncValue>> arguments);
  // Does the same for a call's bytes; `step` is how it appears in the paths of errors.
  RCReference<AsyncValue> run_call(const Bytes& payload, const Leases& references, std::string& step);
  void run(Service service, const effect::Run& e, const Leases& references);
  void finish(ServiceId service, const Outcome& outcome);

  const Options options_;
  const IntrusivePtr<Host> host_;
  const Clock& clock_;
  const Codecs codecs_;
  const MessageTrace trace_;

  std::mutex mutex_;  // guards all that follows, but for drops and the transport
  Protocol protocol_;
  std::map<WaiterId, std::unique_ptr<Receiver>> receivers_;
  std::map<RRefId, RCReference<AsyncValue>> values_;  // of this worker's objects
  std::map<Hash128, IntrusivePtr<LoadedModule>> modules_;
  std::vector<effect::Send> outbox_;
  std::optional<Promise<Chain>> closed_;  // of shutdown()

  std::mutex drop_mutex_;
  std::vector<Dropped> dropped_;  // guarded by drop_mutex_, as is the next
  Transport* transport_;          // null once closed
};

}  // namespace coppice::executor::remote
