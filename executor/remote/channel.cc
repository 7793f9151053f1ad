// Channel: numbers, windows, acknowledgements and repeats.
#include "executor/remote/channel.h"

#include <algorithm>

namespace coppice::executor::remote {

ReceiveWindow::Outcome ReceiveWindow::receive(uint64_t number) {
  if (has(number)) return Outcome::kRepeated;
  if (number - next_ >= kWindow) return Outcome::kBeyond;
  words_[number % kWindow / 64] |= uint64_t{1} << number % 64;
  for (; bit(next_); ++next_) words_[next_ % kWindow / 64] &= ~(uint64_t{1} << next_ % 64);
  return Outcome::kNew;
}

uint64_t ReceiveWindow::bits() const {
  uint64_t bits = 0;
  for (uint64_t i = 0; i < 64; ++i) bits |= static_cast<uint64_t>(bit(next_ + 1 + i)) << i;
  return bits;
}

uint64_t Channel::add(Time now, Bytes message, bool lazy, std::vector<HandleId> holds) {
  messages_.push_back({std::move(message), std::move(holds), lazy ? now + options_->linger : now});
  const uint64_t number = next_number() - 1;
  if (number < window_end()) {
    note_unsent(number, number + 1);
    due_ = std::min(due_, unsent_due_);
  }
  return number;
}

bool Channel::receive(Time now, uint64_t number) {
  const auto outcome = received_.receive(number);
  if (outcome == ReceiveWindow::Outcome::kBeyond) return false;
  ack_due_ = std::min(ack_due_, now + options_->ack_delay);
  due_ = std::min(due_, ack_due_);
  return outcome == ReceiveWindow::Outcome::kNew;
}

void Channel::acknowledge_one(uint64_t number, std::vector<HandleId>& holds) {
  // A message that was never sent cannot have been received: whoever says so is not believed.
  if (number < first_ || number >= first_unsent_) return;
  Outgoing& m = outgoing(number);
  if (m.is_acknowledged) return;
  m.is_acknowledged = true;
  ++n_acknowledged_;
  retries_.erase({m.due, number});
  holds.insert(holds.end(), m.holds.begin(), m.holds.end());
  m.message = Bytes();
  m.holds.clear();
}

std::vector<HandleId> Channel::acknowledge(uint64_t next, uint64_t bits) {
  std::vector<HandleId> holds;
  const uint64_t end = std::min(next, first_unsent_), window = window_end();
  for (uint64_t number = first_; number < end; ++number) acknowledge_one(number, holds);
  for (uint64_t i = 0; i < 64; ++i)
    if ((bits >> i & 1) != 0) acknowledge_one(next + 1 + i, holds);
  for (; !messages_.empty() && messages_.front().is_acknowledged; ++first_) {
    messages_.pop_front();
    --n_acknowledged_;
  }
  note_unsent(window, window_end());
  update_due();
  return holds;
}

Time Channel::pause_after(int n_sends) const {
  double pause = static_cast<double>(options_->first_retry.count());
  for (int i = 1; i < n_sends; ++i) pause *= options_->backoff;
  return Time(static_cast<int64_t>(pause));
}

void Channel::note_unsent(uint64_t begin, uint64_t end) {
  for (uint64_t number = begin; number < end; ++number)
    unsent_due_ = std::min(unsent_due_, outgoing(number).due);
}

void Channel::update_due() {
  due_ = std::min(ack_due_, unsent_due_);
  if (!retries_.empty()) due_ = std::min(due_, retries_.begin()->first);
}

bool Channel::is_exhausted(Time now) const {
  for (const auto& [due, number] : retries_) {
    if (due > now) return false;
    if (messages_[number - first_].n_sends >= options_->most_sends) return true;
  }
  return false;
}

void Channel::send_again(Time now, uint64_t number) {
  Outgoing& m = outgoing(number);
  ++m.n_sends;
  m.due = now + pause_after(m.n_sends);
  retries_.emplace(m.due, number);
}

Bytes Channel::collect(Time now, Packet packet) {
  packet.ack_next = received_.next();
  packet.ack_bits = received_.bits();
  std::vector<std::pair<uint64_t, const Bytes*>> chosen;
  size_t size = 0;
  const auto choose = [&](uint64_t number) {
    const Bytes& message = outgoing(number).message;
    if (!chosen.empty() && size + message.size() > options_->packet_bytes) return false;
    size += message.size();
    chosen.emplace_back(number, &message);
    return true;
  };
  while (!retries_.empty() && retries_.begin()->first <= now && choose(retries_.begin()->second)) {
    const uint64_t number = retries_.begin()->second;
    retries_.erase(retries_.begin());
    send_again(now, number);
  }
  // A message that was never sent goes along, though it might have waited.
  const uint64_t end = window_end();
  for (; first_unsent_ < end && choose(first_unsent_); ++first_unsent_) send_again(now, first_unsent_);
  unsent_due_ = kNever;
  note_unsent(first_unsent_, end);
  ack_due_ = kNever;
  update_due();
  return encode(packet, chosen);
}

void Channel::clear() {
  first_ += messages_.size();
  first_unsent_ = first_;
  messages_.clear();
  retries_.clear();
  n_acknowledged_ = 0;
  unsent_due_ = ack_due_ = due_ = kNever;
}

}  // namespace coppice::executor::remote
