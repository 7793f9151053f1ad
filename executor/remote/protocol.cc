// Protocol: what this worker wants of others. Its handles, calls, fetches and replies.
#include "executor/remote/protocol.h"

#include <fmt/format.h>

#include "core/check.h"

namespace coppice::executor::remote {

Protocol::Protocol(const ProtocolOptions& options) : options_(options), peers_(options.n_workers) {
  COPPICE_CHECK(options.self < options.n_workers);
  COPPICE_CHECK(options.incarnation != 0, "0 is what a worker has that was not heard of");
  COPPICE_CHECK(options.channel.first_retry > Time(0) && options.channel.most_sends > 0);
}

std::optional<Error> Protocol::refusal(WorkerId worker) const {
  if (state_ == State::kExpelled)
    return Error(ErrorCode::kUnavailable,
                 fmt::format("worker {} is out of the cluster: others have declared it lost", options_.self));
  if (state_ != State::kOpen)
    return Error(ErrorCode::kUnavailable, fmt::format("worker {} has shut down", options_.self));
  if (!is_other(worker))
    return Error(ErrorCode::kInvalidArgument,
                 fmt::format("worker {} is none that worker {} can send to; there are {}", worker,
                             options_.self, options_.n_workers));
  const Peer* p = find_peer(worker);
  return p == nullptr ? std::nullopt : p->gone;
}

HandleId Protocol::add_handle(Handle handle) {
  if (!handle.is_owner && !handle.error) count_interest(handle.rref.owner, 1);
  handles_.emplace(next_handle_, std::move(handle));
  return next_handle_++;
}

HandleId Protocol::own(RRefId& rref) {
  rref = {options_.self, options_.self, next_object_++};
  if (state_ != State::kOpen) return add_handle({.rref = rref, .error = refusal(options_.self)});
  Object& object = objects_[rref];
  object.is_created = true;
  object.n_pins = 1;
  return add_handle({.rref = rref, .is_owner = true});
}

Reference Protocol::reference_to(HandleId id, WorkerId receiver, std::vector<HandleId>& holds) {
  const auto found = handles_.find(id);
  if (found == handles_.end() || found->second.is_released || found->second.error)
    return {Reference::Kind::kBroken, found == handles_.end() ? RRefId{} : found->second.rref, {}};
  Handle& handle = found->second;
  Reference reference{Reference::Kind::kFork, handle.rref, {}};
  if (handle.is_owner) {
    reference.fork = {options_.self, next_fork_++};
    objects_.at(handle.rref).forks.emplace(reference.fork, receiver);
    count_interest(receiver, 1);
    return reference;
  }
  ++handle.n_holds;
  if (receiver == handle.rref.owner) {
    reference.kind = Reference::Kind::kToOwner;
    holds.push_back(id);
    return reference;
  }
  // The parent tells the owner of its child: so the receiver need not ask, nor wait for an answer.
  const Message m{.kind = Message::Kind::kAddFork, .rref = handle.rref, .worker = receiver};
  reference.fork = {options_.self, send(handle.rref.owner, m, /*lazy=*/true, {id})};
  return reference;
}

std::vector<Reference> Protocol::references_to(std::span<const HandleId> handles, WorkerId receiver,
                                               std::vector<HandleId>& holds) {
  std::vector<Reference> references;
  for (const HandleId h : handles) references.push_back(reference_to(h, receiver, holds));
  return references;
}

HandleId Protocol::create(Time now, WorkerId owner, Bytes call, std::span<const HandleId> arguments) {
  now_ = std::max(now_, now);
  if (const auto error = refusal(owner))
    return add_handle({.rref = {owner, options_.self, 0}, .error = error});
  std::vector<HandleId> holds;
  Message m{.kind = Message::Kind::kCreate, .payload = std::move(call)};
  m.references = references_to(arguments, owner, holds);
  // Its number is that of the message, which holds the handle, too.
  const uint64_t number = peer(owner).channel.next_number();
  const HandleId handle =
      add_handle({.rref = {owner, options_.self, number}, .fork = {options_.self, number}, .n_holds = 1});
  holds.push_back(handle);
  send(owner, m, /*lazy=*/false, std::move(holds));
  return handle;
}

WaiterId Protocol::add_waiter(WorkerId peer, Time deadline, bool is_fetch) {
  const WaiterId waiter = next_waiter_++;
  waiters_.emplace(waiter, Waiter{peer, deadline, is_fetch});
  if (deadline != kNever) deadlines_.emplace(deadline, waiter);
  count_interest(peer, 1);
  return waiter;
}

void Protocol::complete(WaiterId id, Outcome outcome) {
  const auto found = waiters_.find(id);
  count_interest(found->second.peer, -1);
  deadlines_.erase({found->second.deadline, id});
  waiters_.erase(found);
  effects_.push_back(effect::Complete{id, std::move(outcome)});
}

WaiterId Protocol::call(Time now, WorkerId callee, Bytes call, std::span<const HandleId> arguments,
                        Time deadline) {
  now_ = std::max(now_, now);
  if (auto error = refusal(callee)) {
    effects_.push_back(effect::Complete{next_waiter_, *std::move(error)});
    return next_waiter_++;
  }
  const WaiterId waiter = add_waiter(callee, deadline, /*is_fetch=*/false);
  std::vector<HandleId> holds;
  Message m{.kind = Message::Kind::kCall, .request = waiter, .payload = std::move(call)};
  m.references = references_to(arguments, callee, holds);
  send(callee, m, /*lazy=*/false, std::move(holds));
  return waiter;
}

std::optional<Error> Protocol::error_of(HandleId id) const {
  const auto found = handles_.find(id);
  if (found == handles_.end() || found->second.is_released)
    return Error(ErrorCode::kInvalidArgument, "a remote reference is used after it was dropped");
  return found->second.error;
}

std::optional<RRefId> Protocol::rref_of(HandleId id) const {
  const auto found = handles_.find(id);
  return found == handles_.end() ? std::nullopt : std::optional(found->second.rref);
}

std::optional<RRefId> Protocol::object_of(HandleId id) const {
  const auto found = handles_.find(id);
  return found == handles_.end() || !found->second.is_owner ? std::nullopt
                                                            : std::optional(found->second.rref);
}

WaiterId Protocol::fetch(Time now, HandleId handle, Time deadline) {
  now_ = std::max(now_, now);
  std::optional<Error> error = error_of(handle);
  if (!error && object_of(handle))
    error = Error(ErrorCode::kInvalidArgument, "the object is here: its value is not fetched");
  if (!error) error = refusal(handles_.at(handle).rref.owner);
  if (error) {
    effects_.push_back(effect::Complete{next_waiter_, *std::move(error)});
    return next_waiter_++;
  }
  Handle& h = handles_.at(handle);
  const WaiterId waiter = add_waiter(h.rref.owner, deadline, /*is_fetch=*/true);
  // Acknowledged, it has pinned the object there: the handle may go before the value has come.
  ++h.n_holds;
  send(h.rref.owner, {.kind = Message::Kind::kFetch, .request = waiter, .rref = h.rref}, /*lazy=*/false,
       {handle});
  return waiter;
}

void Protocol::drop(Time now, HandleId id) {
  now_ = std::max(now_, now);
  const auto found = handles_.find(id);
  if (found == handles_.end() || found->second.is_released) return;
  found->second.is_released = true;
  if (found->second.n_holds == 0) end_handle(id);
  advance_shutdown();
}

void Protocol::end_handle(HandleId id) {
  const auto found = handles_.find(id);
  const Handle handle = std::move(found->second);
  handles_.erase(found);
  if (handle.is_owner) return unpin(handle.rref);
  if (handle.error) return;
  count_interest(handle.rref.owner, -1);
  send(handle.rref.owner, {.kind = Message::Kind::kDelete, .rref = handle.rref, .fork = handle.fork},
       /*lazy=*/true);
}

void Protocol::release_hold(HandleId id) {
  const auto found = handles_.find(id);
  if (found == handles_.end()) return;
  Handle& handle = found->second;
  if (--handle.n_holds == 0 && handle.is_released) end_handle(id);
}

void Protocol::reply(const Asked& asked, const Outcome& outcome) {
  if (find_peer(asked.caller)->gone) return;
  std::vector<HandleId> holds;
  Message m{.kind = Message::Kind::kReply, .request = asked.request};
  if (const Error* error = std::get_if<Error>(&outcome)) {
    m.error = *error;
  } else {
    const Value& value = std::get<Value>(outcome);
    m.payload = value.payload;
    m.references = references_to(value.references, asked.caller, holds);
  }
  send(asked.caller, m, /*lazy=*/false, std::move(holds));
}

void Protocol::finish(Time now, ServiceId id, const Outcome& outcome) {
  now_ = std::max(now_, now);
  const auto found = services_.find(id);
  if (found == services_.end()) return;  // a shutdown has answered already
  const Service service = found->second;
  services_.erase(found);
  if (!service.is_create) reply({service.caller, service.request}, outcome);
  if (service.pinned) unpin(*service.pinned);
}

}  // namespace coppice::executor::remote
