// Protocol: what others want of this worker.
#include <fmt/format.h>

#include "executor/remote/protocol.h"

namespace coppice::executor::remote {

using Kind = Message::Kind;

void Protocol::receive(Time now, std::span<const std::byte> bytes) {
  Packet packet = decode_packet(bytes);
  now_ = std::max(now_, now);
  if (packet.session != options_.session || packet.to != options_.self || !is_other(packet.from)) return;
  if (state_ == State::kExpelled) return;
  const WorkerId from = packet.from;
  if (packet.to_incarnation != 0 && packet.to_incarnation != options_.incarnation) {
    if (packet.kind == Packet::Kind::kData && !packet.messages.empty())
      send_farewell(from, Packet::Kind::kStranger);
    return;
  }
  Peer& p = peer(from);
  if (packet.kind == Packet::Kind::kStranger) {
    if (!p.gone) lose_peer(from, "another process has its place");
    return;
  }
  if (p.incarnation != 0 && packet.from_incarnation != p.incarnation) {
    if (!p.gone) lose_peer(from, "another process has its place");
    return;
  }
  p.incarnation = packet.from_incarnation;
  if (receive_farewell(packet)) return;
  p.heard = now_;
  for (const HandleId h : p.channel.acknowledge(packet.ack_next, packet.ack_bits)) release_hold(h);
  for (auto& [number, message] : packet.messages) {
    // Whoever has said good-bye wants to hear of others' good-byes only.
    if (state_ >= State::kClosing && message.kind != Kind::kGoodbye) continue;
    if (!p.channel.receive(now_, number)) continue;
    receive_message(from, number, message);
    if (p.gone) break;
  }
  advance_shutdown();
}

// Returns whether nothing is left to do for the packet.
bool Protocol::receive_farewell(const Packet& packet) {
  Peer& p = *peers_[packet.from];
  if (packet.kind == Packet::Kind::kExpelled) {
    expel(fmt::format("worker {} has declared it lost", packet.from));
    return true;
  }
  if (p.gone || state_ == State::kClosed) {
    if (packet.kind == Packet::Kind::kData && !packet.messages.empty())
      send_farewell(packet.from, p.gone ? p.farewell : Packet::Kind::kGone);
    return true;
  }
  if (packet.kind != Packet::Kind::kGone) return false;
  end_peer(packet.from, Error(ErrorCode::kUnavailable, fmt::format("worker {} has shut down", packet.from)),
           Packet::Kind::kGone);
  advance_shutdown();
  return true;
}

void Protocol::receive_message(WorkerId from, uint64_t number, Message& m) {
  switch (m.kind) {
    case Kind::kCall: {
      Value call{std::move(m.payload), accept(m.references)};
      if (const auto error = refusal(from)) {
        for (const HandleId h : call.references) drop(now_, h);
        return reply({from, m.request}, *error);
      }
      services_.emplace(next_service_, Service{from, m.request, std::nullopt, false});
      effects_.push_back(effect::Run{next_service_++, from, std::nullopt, std::move(call)});
      return;
    }
    case Kind::kCreate:
      return receive_create(from, number, m);
    case Kind::kFetch:
      return receive_fetch(from, m);
    case Kind::kReply:
      return receive_reply(from, m);
    case Kind::kAddFork:
      return receive_add_fork(from, number, m);
    case Kind::kDelete:
      return receive_delete(from, m);
    case Kind::kCheck:
      return receive_check(from, m);
    case Kind::kPing:
      return;  // the acknowledgement is the answer
    case Kind::kLost:
      if (m.worker == options_.self) return expel(fmt::format("worker {} has declared it lost", from));
      if (!is_other(m.worker)) return static_cast<void>(++n_malformed_);
      if (!peer(m.worker).gone) lose_peer(m.worker, m.text);
      return;
    case Kind::kGoodbye: {
      Peer& p = *peers_[from];
      send_packet(from, p);  // the last one acknowledges
      const Error error(ErrorCode::kUnavailable, fmt::format("worker {} has shut down", from));
      return end_peer(from, error, Packet::Kind::kGone);
    }
  }
}

std::vector<HandleId> Protocol::accept(const std::vector<Reference>& references) {
  std::vector<HandleId> handles;
  for (const Reference& r : references) handles.push_back(accept(r));
  return handles;
}

HandleId Protocol::accept(const Reference& r) {
  const auto broken = [&](ErrorCode code, std::string message) {
    return add_handle({.rref = r.id, .error = Error(code, std::move(message))});
  };
  if (r.kind == Reference::Kind::kBroken)
    return broken(ErrorCode::kUnavailable, "a remote reference that was an error at its sender already");
  const bool is_mine = r.id.owner == options_.self;
  const bool is_known_worker = r.id.owner < options_.n_workers && r.id.creator < options_.n_workers &&
                               (r.kind == Reference::Kind::kToOwner || r.fork.parent < options_.n_workers);
  if (!is_known_worker || is_mine != (r.kind == Reference::Kind::kToOwner)) {
    ++n_malformed_;
    return broken(ErrorCode::kDataLoss, "a remote reference that no worker sends");
  }
  if (!is_mine) {
    if (const auto& gone = peer(r.id.owner).gone) return broken(gone->code(), gone->message());
    return add_handle({.rref = r.id, .fork = r.fork});
  }
  Object* object = state_ == State::kOpen ? find_or_expect(r.id) : nullptr;
  if (object == nullptr) return broken(ErrorCode::kNotFound, fmt::format("{} is deleted", describe(r.id)));
  ++object->n_pins;
  return add_handle({.rref = r.id, .is_owner = true});
}

void Protocol::serve(const RRefId& rref, const Asked& asked) {
  ++objects_.at(rref).n_pins;
  services_.emplace(next_service_, Service{asked.caller, asked.request, rref, false});
  effects_.push_back(effect::Serve{next_service_++, rref});
}

void Protocol::receive_create(WorkerId from, uint64_t number, Message& m) {
  Value call{std::move(m.payload), accept(m.references)};
  if (state_ != State::kOpen) {
    // Its sender is told with the good-bye.
    for (const HandleId h : call.references) drop(now_, h);
    return;
  }
  const RRefId rref{options_.self, from, number};
  const ForkId fork{from, number};
  if (objects_.count(rref) != 0) count_interest(from, -1);
  Object& object = objects_[rref];
  object.is_created = true;
  ++object.n_pins;
  if (object.early.erase(fork) != 0) {
    count_interest(from, -1);
  } else {
    object.forks.emplace(fork, from);
    count_interest(from, 1);
  }
  services_.emplace(next_service_, Service{from, 0, rref, true});
  effects_.push_back(effect::Run{next_service_++, from, rref, std::move(call)});
  for (const Asked& asked : std::exchange(object.fetches, {})) serve(rref, asked);
}

void Protocol::receive_fetch(WorkerId from, const Message& m) {
  const Asked asked{from, m.request};
  if (state_ != State::kOpen) return reply(asked, *refusal(from));
  if (m.rref.owner != options_.self || m.rref.creator >= options_.n_workers) {
    ++n_malformed_;
    return reply(asked, Error(ErrorCode::kInvalidArgument,
                              fmt::format("{} is not worker {}'s", describe(m.rref), options_.self)));
  }
  Object* object = find_or_expect(m.rref);
  if (object == nullptr)
    return reply(asked, Error(ErrorCode::kNotFound, fmt::format("{} is deleted", describe(m.rref))));
  if (object->is_created) return serve(m.rref, asked);
  object->fetches.push_back(asked);
}

void Protocol::receive_reply(WorkerId from, Message& m) {
  std::vector<HandleId> handles = accept(m.references);
  const auto found = waiters_.find(m.request);
  if (found == waiters_.end() || found->second.peer != from) {
    // Its deadline has passed.
    for (const HandleId h : handles) drop(now_, h);
    return;
  }
  if (m.error) return complete(m.request, *m.error);
  complete(m.request, Value{std::move(m.payload), std::move(handles)});
}

void Protocol::receive_add_fork(WorkerId from, uint64_t number, const Message& m) {
  if (state_ != State::kOpen) return;
  if (m.rref.owner != options_.self || m.rref.creator >= options_.n_workers || !is_other(m.worker)) {
    ++n_malformed_;
    return;
  }
  Object* object = find_or_expect(m.rref);
  if (object == nullptr) return;
  const ForkId fork{from, number};
  if (object->early.erase(fork) != 0) {
    count_interest(from, -1);
  } else if (!peer(m.worker).gone) {
    object->forks.emplace(fork, m.worker);
    count_interest(m.worker, 1);
  }
  free_if_unused(m.rref);
}

void Protocol::receive_delete(WorkerId from, const Message& m) {
  if (state_ != State::kOpen) return;
  const bool is_mine = m.fork.parent == options_.self;
  if (m.rref.owner != options_.self || m.rref.creator >= options_.n_workers ||
      (is_mine ? !has_come(m.fork) : !is_other(m.fork.parent))) {
    ++n_malformed_;
    return;
  }
  Object* object = find_or_expect(m.rref);
  if (object == nullptr) return;
  if (const auto found = object->forks.find(m.fork); found != object->forks.end()) {
    if (found->second == from) {
      erase_fork(*object, m.fork);
    } else {
      ++n_malformed_;
    }
  } else if (!has_come(m.fork) && !peer(m.fork.parent).gone && object->early.emplace(m.fork, from).second) {
    count_interest(m.fork.parent, 1);
  }
  free_if_unused(m.rref);
}

void Protocol::receive_check(WorkerId from, const Message& m) {
  if (m.rref.owner != from || !is_other(m.fork.parent) || m.fork.parent == from) {
    ++n_malformed_;
    return;
  }
  // From here on nothing is taken from the parent's worker: what has not come never does.
  if (!peer(m.fork.parent).gone) lose_peer(m.fork.parent, fmt::format("worker {} says so", from));
  for (const auto& [id, handle] : handles_)
    if (handle.rref == m.rref && handle.fork == m.fork && !handle.error) return;
  send(from, {.kind = Kind::kDelete, .rref = m.rref, .fork = m.fork}, /*lazy=*/true);
}

}  // namespace coppice::executor::remote
