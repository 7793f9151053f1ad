// Protocol: the channels to other workers, what is due on them, and how they end.
#include <fmt/format.h>

#include <algorithm>

#include "executor/remote/protocol.h"

namespace coppice::executor::remote {

Protocol::Peer& Protocol::peer(WorkerId worker) {
  std::unique_ptr<Peer>& p = peers_[worker];
  if (p == nullptr) {
    p = std::make_unique<Peer>(options_.channel);
    p->heard = now_;
    spoken_to_.insert(worker);
  }
  return *p;
}

void Protocol::count_interest(WorkerId worker, int delta) {
  if (worker == options_.self) return;
  Peer& p = peer(worker);
  // A peer that was of no interest need not have spoken.
  if (p.n_interests == 0) p.heard = now_;
  p.n_interests += delta;
}

uint64_t Protocol::send(WorkerId to, const Message& message, bool lazy, std::vector<HandleId> holds) {
  Peer& p = peer(to);
  if (p.gone) return 0;
  return p.channel.add(now_, encode(message), lazy, std::move(holds));
}

Packet Protocol::packet_to(WorkerId to) const {
  const Peer* p = find_peer(to);
  return {.session = options_.session,
          .from = options_.self,
          .to = to,
          .from_incarnation = options_.incarnation,
          .to_incarnation = p == nullptr ? 0 : p->incarnation};
}

void Protocol::send_packet(WorkerId to, Peer& p) {
  effects_.push_back(effect::Send{to, p.channel.collect(now_, packet_to(to))});
}

void Protocol::send_farewell(WorkerId to, Packet::Kind kind) {
  Packet packet = packet_to(to);
  packet.kind = kind;
  effects_.push_back(effect::Send{to, encode(packet)});
}

void Protocol::end_peer(WorkerId worker, const Error& error, Packet::Kind farewell) {
  Peer& p = peer(worker);
  if (p.gone) return;
  p.gone = error;
  p.farewell = farewell;
  p.channel.clear();
  std::vector<HandleId> ended;
  for (auto& [id, handle] : handles_) {
    if (handle.is_owner || handle.error || handle.rref.owner != worker) continue;
    handle.error = error;
    handle.n_holds = 0;  // all of them were messages to the owner
    count_interest(worker, -1);
    if (handle.is_released) ended.push_back(id);
  }
  for (const HandleId id : ended) handles_.erase(id);
  std::vector<WaiterId> waiters;
  for (const auto& [id, waiter] : waiters_)
    if (waiter.peer == worker) waiters.push_back(id);
  for (const WaiterId id : waiters) complete(id, error);
  end_objects_of(worker, error);
  effects_.push_back(effect::Gone{worker, error, farewell == Packet::Kind::kExpelled});
}

void Protocol::lose_peer(WorkerId worker, const std::string& reason) {
  end_peer(worker, Error(ErrorCode::kUnavailable, fmt::format("worker {} is lost: {}", worker, reason)),
           Packet::Kind::kExpelled);
  check_children_of(worker);
  // Everybody is to draw the line at the same worker: others may wait for messages that it owes them.
  const std::set<WorkerId> others = spoken_to_;
  for (const WorkerId w : others)
    if (w != worker)
      send(w, {.kind = Message::Kind::kLost, .worker = worker, .text = reason}, /*lazy=*/false);
  advance_shutdown();
}

void Protocol::lose(Time now, WorkerId worker, const std::string& reason) {
  now_ = std::max(now_, now);
  if (!is_other(worker) || peer(worker).gone || state_ >= State::kClosed) return;
  lose_peer(worker, reason);
}

void Protocol::expel(const std::string& reason) {
  state_ = State::kExpelled;
  const Error error(ErrorCode::kUnavailable,
                    fmt::format("worker {} is out of the cluster: {}", options_.self, reason));
  const std::set<WorkerId> others = spoken_to_;
  for (const WorkerId w : others) end_peer(w, error, Packet::Kind::kGone);
}

Time Protocol::heartbeat_time(const Peer& p) const {
  const bool is_asked = p.channel.n_unacknowledged() != 0;
  if (p.gone || p.n_interests == 0 || is_asked || options_.heartbeat == kNever) return kNever;
  return p.heard + options_.heartbeat;
}

void Protocol::advance_peer(WorkerId worker, Peer& p) {
  if (p.gone) return;
  if (p.channel.is_due(now_) && p.channel.is_exhausted(now_))
    return lose_peer(worker, fmt::format("it has not answered worker {} in {} tries", options_.self,
                                         options_.channel.most_sends));
  if (heartbeat_time(p) <= now_) {
    p.heard = now_;
    send(worker, {.kind = Message::Kind::kPing}, /*lazy=*/false);
  }
}

void Protocol::advance(Time now) {
  now_ = std::max(now_, now);
  while (!deadlines_.empty() && deadlines_.begin()->first <= now_) {
    const WaiterId id = deadlines_.begin()->second;
    const Waiter& waiter = waiters_.at(id);
    complete(id,
             Error(ErrorCode::kUnavailable, fmt::format("worker {} has not replied in time", waiter.peer)));
  }
  const std::set<WorkerId> all = spoken_to_;
  for (const WorkerId w : all) advance_peer(w, *peers_[w]);
  advance_shutdown();
  for (const WorkerId w : spoken_to_) {
    Peer& p = *peers_[w];
    while (!p.gone && p.channel.is_due(now_)) send_packet(w, p);
  }
}

Time Protocol::next_time() const {
  Time next = deadlines_.empty() ? kNever : deadlines_.begin()->first;
  for (const WorkerId w : spoken_to_) {
    const Peer& p = *find_peer(w);
    if (!p.gone) next = std::min({next, p.channel.next_time(), heartbeat_time(p)});
  }
  return next;
}

void Protocol::shutdown(Time now) {
  now_ = std::max(now_, now);
  if (state_ != State::kOpen) return;
  state_ = State::kDraining;
  const Error error(ErrorCode::kUnavailable, fmt::format("worker {} has shut down", options_.self));
  while (!waiters_.empty()) complete(waiters_.begin()->first, error);
  end_own(error);
  std::vector<HandleId> ended;
  for (auto& [id, handle] : handles_) {
    handle.is_released = true;
    if (handle.n_holds == 0) ended.push_back(id);
  }
  for (const HandleId id : ended) end_handle(id);
  advance_shutdown();
}

// Says good-bye when nothing that was said is left unheard, and is closed when that is heard.
void Protocol::advance_shutdown() {
  if (state_ != State::kDraining && state_ != State::kClosing) return;
  for (const WorkerId w : spoken_to_)
    if (find_peer(w)->channel.n_unacknowledged() != 0) return;
  if (state_ == State::kClosing) {
    state_ = State::kClosed;
    return;
  }
  if (!handles_.empty()) return;
  state_ = State::kClosing;
  bool is_alone = true;
  for (const WorkerId w : spoken_to_) {
    if (find_peer(w)->gone) continue;
    is_alone = false;
    send(w, {.kind = Message::Kind::kGoodbye}, /*lazy=*/false);
  }
  if (is_alone) state_ = State::kClosed;
}

}  // namespace coppice::executor::remote
