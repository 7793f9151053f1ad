// A worker of a cluster: functions of modules run on others, their results stay there or come here, and
// whoever holds a RemoteRef keeps what it refers to alive.
//
//   Worker worker({.protocol = {.self = rank, .n_workers = n, .session = job}}, transport, clock, host, codecs);
//   const Hash128 module = worker.add_module(LoadedModule::load(parse(text), registry));    // on all workers
//   RemoteRef<Mesh> mesh = worker.remote<Mesh>(1, {module, "make_mesh"}, 0.5f);             // at once; it runs on 1
//   AsyncValueRef<float> area = worker.rpc_async<float>(2, {module, "area"}, mesh);         // on 2, which asks 1
//   AsyncValueRef<Mesh> here = mesh.to_here();
//   AsyncValueRef<Chain> closed = worker.shutdown();
//
// progress() is called by one thread, of whoever made the worker (ProgressThread): it moves packets, and
// never runs users' code, which is the business of the host's queue. All else is thread-safe, and waits for
// nothing.
#pragma once
#include <thread>

#include "executor/remote/remote_ref.h"

namespace coppice::executor::remote {

// Returns the name by which all workers know a module: the hash of its binary form.
Hash128 module_id(const Module& module);

class Worker {
 public:
  using Options = WorkerCore::Options;

  // The host has a queue (checked). `transport` and `clock` outlive the worker; references may outlive it,
  // and are of no use then. The queue is idle before the transport goes.
  Worker(const Options& options, Transport& transport, const Clock& clock, IntrusivePtr<Host> host,
         Codecs codecs);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  WorkerId self() const { return core_->self(); }
  // Makes a module's functions callable, here and by others. Returns its id.
  Hash128 add_module(IntrusivePtr<LoadedModule> module) { return core_->add_module(std::move(module)); }

  // Runs a function on a worker, this one included, which keeps the result. Its error, and any of the way, is
  // what to_here() brings. Errors, thrown: kInvalidArgument for arguments that cannot be sent, or that the
  // function does not take; kNotFound for a function that the module, if it is loaded here, does not have.
  template <class R, class... Args>
  RemoteRef<R> remote(WorkerId owner, const Callee& callee, const Args&... arguments) {
    return RemoteRef<R>(core_->create(owner, callee, values(arguments...), typeid(R)));
  }
  // Runs a function on a worker; its result comes here, or an error: the function's, with the path that it
  // came, the way's, or kUnavailable after `timeout` (kNever: that of the options). What remote() throws is
  // the error, too. The function runs once at most, and may run though the way back has failed.
  template <class R, class... Args>
  AsyncValueRef<R> rpc_async(WorkerId worker, const Callee& callee, const Args&... arguments) {
    return rpc_async_within<R>(kNever, worker, callee, arguments...);
  }
  template <class R, class... Args>
  AsyncValueRef<R> rpc_async_within(Time timeout, WorkerId worker, const Callee& callee,
                                    const Args&... arguments) {
    auto receiver = std::make_unique<detail::TypedReceiver<R>>(core_->codecs());
    AsyncValueRef<R> result = receiver->value();
    core_->call(worker, callee, values(arguments...), typeid(R), core_->deadline(timeout),
                std::move(receiver));
    return result;
  }
  // Makes an object of this worker's that others may refer to; `value` may come later.
  template <class T>
  RemoteRef<T> own(AsyncValueRef<T> value) {
    return RemoteRef<T>(core_->own(std::move(value)));
  }

  // Moves what has come and what is due. Returns when it should be called again, if nothing comes and nobody
  // wakes the transport before. One thread at a time.
  Time progress() { return core_->progress(); }

  // Ends this worker's part (docs/remote.md). The value is there when the others have been told.
  AsyncValueRef<Chain> shutdown() { return core_->shutdown(); }
  // Says, a line each, what is held where, what is awaited and what has not been acknowledged. Any thread may
  // ask, also while nothing goes on any more.
  std::string report() const { return core_->report(); }
  Protocol::Counts counts() const { return core_->counts(); }
  Protocol::State state() const { return core_->state(); }

 private:
  template <class... Args>
  static std::vector<RCReference<AsyncValue>> values(const Args&... arguments) {
    return {RCReference<AsyncValue>(make_available_async_value<detail::Sent<Args>>(arguments))...};
  }
  const IntrusivePtr<WorkerCore> core_;
};

// Calls progress() until it is destroyed, before the worker is.
class ProgressThread {
 public:
  ProgressThread(Worker& worker, Transport& transport, const Clock& clock);
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

 private:
  Transport& transport_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace coppice::executor::remote
