// Protocol: the owner's view of its objects and of the references to them.
#include <fmt/format.h>

#include "executor/remote/protocol.h"

namespace coppice::executor::remote {

bool Protocol::has_come(const ForkId& fork) const {
  if (fork.parent == options_.self) return fork.number < next_fork_;
  const Peer* p = find_peer(fork.parent);
  return p != nullptr && p->channel.has_received(fork.number);
}

Protocol::View Protocol::view_of(const RRefId& rref) const {
  if (objects_.count(rref) != 0) return View::kKnown;
  if (rref.creator == options_.self) return View::kDeleted;
  const Peer* p = find_peer(rref.creator);
  // A creator that is gone creates no more.
  if (p != nullptr && (p->gone || p->channel.has_received(rref.number))) return View::kDeleted;
  return View::kUnknown;
}

Protocol::Object* Protocol::find_or_expect(const RRefId& rref) {
  switch (view_of(rref)) {
    case View::kKnown:
      return &objects_.at(rref);
    case View::kDeleted:
      return nullptr;
    case View::kUnknown:
      break;
  }
  count_interest(rref.creator, 1);
  return &objects_[rref];
}

void Protocol::unpin(const RRefId& rref) {
  const auto found = objects_.find(rref);
  if (found == objects_.end()) return;  // a shutdown has freed it
  --found->second.n_pins;
  free_if_unused(rref);
}

void Protocol::erase_fork(Object& object, const ForkId& fork) {
  const auto found = object.forks.find(fork);
  count_interest(found->second, -1);
  object.forks.erase(found);
}

void Protocol::free_if_unused(const RRefId& rref) {
  const auto found = objects_.find(rref);
  if (found == objects_.end()) return;
  Object& object = found->second;
  if (object.n_pins != 0 || !object.forks.empty()) return;
  if (!object.is_created) {
    // Whoever speaks of it next lets it be expected again.
    if (!object.early.empty() || !object.fetches.empty()) return;
    count_interest(rref.creator, -1);
  } else {
    effects_.push_back(effect::Free{rref});
  }
  for (const auto& [fork, holder] : object.early) count_interest(fork.parent, -1);
  objects_.erase(found);
}

void Protocol::end_objects_of(WorkerId worker, const Error& error) {
  std::vector<RRefId> all;
  for (const auto& [rref, object] : objects_) all.push_back(rref);
  for (const RRefId& rref : all) {
    Object& object = objects_.at(rref);
    std::vector<ForkId> forks;
    for (const auto& [fork, holder] : object.forks)
      if (holder == worker) forks.push_back(fork);
    for (const ForkId& fork : forks) erase_fork(object, fork);
    // The message that would make them known does not come any more.
    for (auto i = object.early.begin(); i != object.early.end();) {
      const bool never_comes = i->first.parent == worker;
      if (never_comes) count_interest(worker, -1);
      i = never_comes ? object.early.erase(i) : std::next(i);
    }
    std::erase_if(object.fetches, [&](const Asked& a) { return a.caller == worker; });
    if (!object.is_created && rref.creator == worker) {
      object.is_created = true;
      count_interest(worker, -1);
      const Error failed(error.code(),
                         fmt::format("{} was never created: {}", describe(rref), error.message()));
      for (const Asked& asked : std::exchange(object.fetches, {})) reply(asked, failed);
      effects_.push_back(effect::Fail{rref, failed});
    }
    free_if_unused(rref);
  }
}

// The call that was to bring a child may have been lost with its parent's worker, and nobody would ever
// delete it.
void Protocol::check_children_of(WorkerId lost) {
  for (const auto& [rref, object] : objects_)
    for (const auto& [fork, holder] : object.forks)
      if (fork.parent == lost)
        send(holder, {.kind = Message::Kind::kCheck, .rref = rref, .fork = fork}, /*lazy=*/false);
}

// Every object is freed, whoever refers to it.
void Protocol::end_own(const Error& error) {
  for (const auto& [id, service] : std::exchange(services_, {}))
    if (!service.is_create) reply({service.caller, service.request}, error);
  for (auto& [rref, object] : std::exchange(objects_, {})) {
    for (const Asked& asked : object.fetches) reply(asked, error);
    for (const auto& [fork, holder] : object.forks) count_interest(holder, -1);
    for (const auto& [fork, holder] : object.early) count_interest(fork.parent, -1);
    if (object.is_created) {
      effects_.push_back(effect::Free{rref});
    } else {
      count_interest(rref.creator, -1);
      effects_.push_back(effect::Fail{rref, error});
    }
  }
}

Protocol::Counts Protocol::counts() const {
  Counts c;
  for (const auto& [rref, object] : objects_) {
    ++(object.is_created ? c.objects : c.expected);
    c.forks += object.forks.size();
    c.early += object.early.size();
  }
  c.handles = handles_.size();
  c.waiters = waiters_.size();
  c.services = services_.size();
  for (const WorkerId w : spoken_to_) c.unacknowledged += find_peer(w)->channel.n_unacknowledged();
  c.malformed = n_malformed_;
  return c;
}

std::string Protocol::report() const {
  std::string text;
  for (const auto& [rref, object] : objects_) {
    text += fmt::format("{}, {}: {} held here", describe(rref),
                        object.is_created ? "here" : fmt::format("expected of worker {}", rref.creator),
                        object.n_pins);
    for (const auto& [fork, holder] : object.forks)
      text += fmt::format(", {} held by worker {}", describe(fork), holder);
    for (const auto& [fork, holder] : object.early)
      text += fmt::format(", {} deleted by worker {} before it was known", describe(fork), holder);
    for (const Asked& asked : object.fetches) text += fmt::format(", worker {} waits for it", asked.caller);
    text += '\n';
  }
  for (const auto& [id, handle] : handles_) {
    if (handle.is_owner) continue;  // counted above
    text += fmt::format("{} on worker {}: held here as {}", describe(handle.rref), handle.rref.owner,
                        describe(handle.fork));
    if (handle.is_released) text += fmt::format(", dropped, waits for {} acknowledgements", handle.n_holds);
    if (handle.error) text += fmt::format(", an error: {}", handle.error->message());
    text += '\n';
  }
  for (const auto& [id, waiter] : waiters_)
    text += fmt::format("{} {}: waits for worker {}\n", waiter.is_fetch ? "fetch" : "call", id, waiter.peer);
  for (const auto& [id, service] : services_)
    text +=
        fmt::format("{} of worker {}: runs here\n", service.is_create ? "create" : "request", service.caller);
  for (const WorkerId w : spoken_to_) {
    const Peer& p = *find_peer(w);
    if (p.gone) text += fmt::format("worker {}: {}\n", w, p.gone->message());
    const size_t n = p.channel.n_unacknowledged();
    if (n != 0) text += fmt::format("worker {}: {} messages are not acknowledged\n", w, n);
  }
  return text;
}

}  // namespace coppice::executor::remote
