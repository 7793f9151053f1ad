// WorkerCore: between the protocol and the host that runs functions.
#include "executor/remote/worker_core.h"

#include <fmt/format.h>

#include "core/log.h"
#include "executor/remote/worker_service.h"

namespace coppice::executor::remote {

Lease::Lease(IntrusivePtr<WorkerCore> core, HandleId handle, RRefId rref, RCReference<AsyncValue> value)
    : core_(std::move(core)), handle_(handle), rref_(rref), value_(std::move(value)) {}
Lease::~Lease() { core_->drop(handle_, rref_); }

WorkerCore::WorkerCore(const Options& options, Transport& transport, const Clock& clock,
                       IntrusivePtr<Host> host, Codecs codecs)
    : options_(options),
      host_(std::move(host)),
      clock_(clock),
      codecs_(std::move(codecs)),
      trace_(options.protocol.self),
      protocol_(options.protocol),
      transport_(&transport) {
  COPPICE_CHECK(host_->queue() != nullptr, "a remote worker's functions run on a queue");
}

Time WorkerCore::deadline(Time timeout) const {
  if (timeout == kNever) timeout = options_.timeout;
  return timeout == kNever ? kNever : clock_.now() + timeout;
}

void WorkerCore::drop(HandleId handle, const RRefId& rref) {
  const std::lock_guard lock(drop_mutex_);
  dropped_.push_back({handle, rref});
  if (transport_ != nullptr) transport_->wake();
}

void WorkerCore::take_dropped(Tasks& tasks) {
  std::vector<Dropped> dropped;
  {
    const std::lock_guard lock(drop_mutex_);
    dropped.swap(dropped_);
  }
  for (const Dropped& d : dropped) {
    protocol_.drop(clock_.now(), d.handle);
    // One that was expected, and never came, is freed without a word.
    if (d.rref.owner == self() && !protocol_.has_object(d.rref)) forget(d.rref, tasks);
  }
}

void WorkerCore::enqueue(Task task) { host_->queue()->add(0, 0, std::move(task)); }
void WorkerCore::enqueue_all(Tasks& tasks) {
  for (Task& task : tasks) enqueue(std::move(task));
}

void WorkerCore::wake() {
  const std::lock_guard lock(drop_mutex_);
  if (transport_ != nullptr) transport_->wake();
}

template <class F>
auto WorkerCore::with_protocol(F f) {
  Tasks tasks;
  // Its destructor runs behind that of the lock.
  struct AtEnd {
    WorkerCore& core;
    Tasks& tasks;
    ~AtEnd() {
      core.enqueue_all(tasks);
      core.wake();
    }
  } const at_end{*this, tasks};
  const std::lock_guard lock(mutex_);
  take_dropped(tasks);
  struct Effects {
    WorkerCore& core;
    Tasks& tasks;
    ~Effects() { core.take_effects(tasks); }
  } const effects{*this, tasks};
  return f(protocol_, clock_.now());
}

Time WorkerCore::progress() {
  Tasks tasks;
  std::vector<effect::Send> sends;
  Time next;
  {
    const std::lock_guard lock(mutex_);
    take_dropped(tasks);
    while (const auto packet = transport_->receive()) {
      const auto begin = Trace::Clock::now();
      try {
        protocol_.receive(clock_.now(), *packet);
      } catch (const Error& e) {
        log_warning("worker {}: a packet is dropped: {}", self(), e.what());
      }
      trace_.note_received(*packet, begin);
    }
    protocol_.advance(clock_.now());
    take_effects(tasks);
    sends.swap(outbox_);
    next = protocol_.next_time();
    const bool is_over =
        protocol_.state() == Protocol::State::kClosed || protocol_.state() == Protocol::State::kExpelled;
    if (is_over && closed_)
      tasks.emplace_back(
          [closed = std::move(*std::exchange(closed_, std::nullopt))]() mutable { closed.emplace(); });
  }
  for (effect::Send& s : sends) {
    trace_.note_sent(s.packet, Trace::Clock::now());
    transport_->send(s.to, std::move(s.packet));
  }
  enqueue_all(tasks);
  return next;
}

// ---- effects, under the mutex ----

void WorkerCore::take_effects(Tasks& tasks) {
  for (Effect& e : protocol_.take_effects()) std::visit([&](auto& effect) { apply(effect, tasks); }, e);
}

AsyncValue* WorkerCore::value_locked(const RRefId& rref) {
  RCReference<AsyncValue>& value = values_[rref];
  if (!value) value = make_indirect_async_value();
  return value.get();
}

IntrusivePtr<Lease> WorkerCore::lease_locked(HandleId handle) {
  RCReference<AsyncValue> value;
  if (const auto mine = protocol_.object_of(handle)) value = share(value_locked(*mine));
  return make_intrusive<Lease>(share(this), handle, protocol_.rref_of(handle).value_or(RRefId{}),
                               std::move(value));
}
Leases WorkerCore::leases_locked(const std::vector<HandleId>& handles) {
  Leases leases;
  for (const HandleId h : handles) leases.push_back(lease_locked(h));
  return leases;
}

void WorkerCore::apply(effect::Send& e, Tasks&) { outbox_.push_back(std::move(e)); }

void WorkerCore::apply(effect::Run& e, Tasks& tasks) {
  tasks.emplace_back([service = Service(share(this), e.service),
                      references = leases_locked(e.call.references), e = std::move(e)]() mutable {
    WorkerCore& core = service.core();
    core.run(std::move(service), e, references);
  });
}

void WorkerCore::apply(effect::Serve& e, Tasks& tasks) {
  RCReference<AsyncValue> value = share(value_locked(e.rref));
  tasks.emplace_back([service = Service(share(this), e.service), value = std::move(value)]() mutable {
    AsyncValue& object = *value;
    object.and_then([service = std::move(service), value = std::move(value)]() mutable {
      WorkerCore& core = service.core();
      core.enqueue([service = std::move(service), value = std::move(value)]() mutable {
        service.end_with(*value, fmt::format("worker {}", service.core().self()));
      });
    });
  });
}

void WorkerCore::apply(effect::Complete& e, Tasks& tasks) {
  const auto found = receivers_.find(e.waiter);
  if (found == receivers_.end()) return;
  std::unique_ptr<Receiver> receiver = std::move(found->second);
  receivers_.erase(found);
  Leases references;
  if (const Value* v = std::get_if<Value>(&e.outcome)) references = leases_locked(v->references);
  tasks.emplace_back([core = share(this), receiver = std::move(receiver), references = std::move(references),
                      outcome = std::move(e.outcome)]() mutable {
    if (const Error* error = std::get_if<Error>(&outcome)) return receiver->set_error(*error);
    try {
      Decoder decoder{Reader(std::get<Value>(outcome).payload), references};
      RCReference<AsyncValue> value = decode_value(core->codecs_, decoder);
      decoder.in.expect_end();
      receiver->set(std::move(value));
    } catch (const Error& error) {
      receiver->set_error(error);
    }
  });
}

// Destructors of values, and what waits for them, are users' code.
void WorkerCore::forget(const RRefId& rref, Tasks& tasks) {
  if (auto node = values_.extract(rref))
    tasks.emplace_back([value = std::move(node.mapped())]() mutable { value.reset(); });
}

void WorkerCore::apply(effect::Free& e, Tasks& tasks) { forget(e.rref, tasks); }

void WorkerCore::apply(effect::Fail& e, Tasks& tasks) {
  tasks.emplace_back([value = share(value_locked(e.rref)), error = e.error] {
    if (!value->is_available()) value->set_error(error);
  });
  if (!protocol_.has_object(e.rref)) forget(e.rref, tasks);
}

void WorkerCore::apply(effect::Gone& e, Tasks&) {
  if (e.is_lost) log_warning("worker {}: {}", self(), e.error.message());
}

// ---- what users want ----

IntrusivePtr<Lease> WorkerCore::own(RCReference<AsyncValue> value) {
  return with_protocol([&](Protocol& p, Time) {
    RRefId rref;
    const HandleId handle = p.own(rref);
    values_[rref] = std::move(value);
    return lease_locked(handle);
  });
}

std::vector<HandleId> WorkerCore::handles_of(const Leases& leases) const {
  std::vector<HandleId> handles;
  for (const auto& lease : leases) {
    if (&lease->core() != this)
      throw Error(ErrorCode::kInvalidArgument, "a remote reference is sent by another worker than its own");
    handles.push_back(lease->handle());
  }
  return handles;
}

IntrusivePtr<Lease> WorkerCore::create(WorkerId owner, const Callee& callee,
                                       std::vector<RCReference<AsyncValue>> arguments,
                                       std::type_index result) {
  check_call(callee, arguments, result);
  if (owner == self()) {
    RCReference<AsyncValue> object = make_indirect_async_value();
    IntrusivePtr<Lease> lease = own(object);
    enqueue([core = share(this), callee, arguments = std::move(arguments), object = std::move(object)] {
      object->forward_to(core->run_here(callee, arguments));
    });
    return lease;
  }
  Leases references;
  Bytes call = encode_call(callee, arguments, references);
  return with_protocol([&](Protocol& p, Time now) {
    return lease_locked(p.create(now, owner, std::move(call), handles_of(references)));
  });
}

void WorkerCore::call(WorkerId worker, const Callee& callee, std::vector<RCReference<AsyncValue>> arguments,
                      std::type_index result, Time deadline, std::unique_ptr<Receiver> receiver) {
  try {
    check_call(callee, arguments, result);
    if (worker == self()) {
      enqueue([core = share(this), callee, arguments = std::move(arguments),
               receiver = std::move(receiver)]() mutable {
        RCReference<AsyncValue> value = core->run_here(callee, arguments);
        AsyncValue& waited_for = *value;
        waited_for.and_then([value = std::move(value), receiver = std::move(receiver)]() mutable {
          if (value->is_error()) return receiver->set_error(value->error());
          receiver->set(std::move(value));
        });
      });
      return;
    }
    Leases references;
    Bytes call = encode_call(callee, arguments, references);
    const std::vector<HandleId> handles = handles_of(references);
    with_protocol([&](Protocol& p, Time now) {
      receivers_.emplace(p.call(now, worker, std::move(call), handles, deadline), std::move(receiver));
    });
  } catch (const Error& e) {
    receiver->set_error(e);
  }
}

void WorkerCore::fetch(const Lease& lease, Time deadline, std::unique_ptr<Receiver> receiver) {
  with_protocol([&](Protocol& p, Time now) {
    receivers_.emplace(p.fetch(now, lease.handle(), deadline), std::move(receiver));
  });
}

std::optional<Error> WorkerCore::error_of(const Lease& lease) {
  const std::lock_guard lock(mutex_);
  return protocol_.error_of(lease.handle());
}

void WorkerCore::finish(ServiceId service, const Outcome& outcome) {
  with_protocol([&](Protocol& p, Time now) { p.finish(now, service, outcome); });
}

std::string WorkerCore::report() {
  const std::lock_guard lock(mutex_);
  return protocol_.report();
}
Protocol::Counts WorkerCore::counts() {
  const std::lock_guard lock(mutex_);
  return protocol_.counts();
}
Protocol::State WorkerCore::state() {
  const std::lock_guard lock(mutex_);
  return protocol_.state();
}

AsyncValueRef<Chain> WorkerCore::shutdown() {
  return with_protocol([&](Protocol& p, Time now) {
    if (!closed_) closed_.emplace(make_promise<Chain>());
    p.shutdown(now);
    return closed_->value();
  });
}

void WorkerCore::close() {
  std::map<RRefId, RCReference<AsyncValue>> values;
  std::map<WaiterId, std::unique_ptr<Receiver>> receivers;
  std::optional<Promise<Chain>> closed;
  {
    const std::lock_guard lock(mutex_);
    values.swap(values_);
    receivers.swap(receivers_);
    closed.swap(closed_);
  }
  const std::lock_guard lock(drop_mutex_);
  transport_ = nullptr;
}

}  // namespace coppice::executor::remote
