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
  if (messages_.size() <= ReceiveWindow::kWindow) due_ = std::min(due_, messages_.back().due);
  return next_number() - 1;
}

bool Channel::receive(Time now, uint64_t number) {
  const auto outcome = received_.receive(number);
  if (outcome == ReceiveWindow::Outcome::kBeyond) return false;
  ack_due_ = std::min(ack_due_, now + options_->ack_delay);
  due_ = std::min(due_, ack_due_);
  return outcome == ReceiveWindow::Outcome::kNew;
}

void Channel::acknowledge_one(uint64_t number, std::vector<HandleId>& holds) {
  if (number < first_ || number - first_ >= n_in_window()) return;
  Outgoing& m = messages_[number - first_];
  // A message that was never sent cannot have been received: whoever says so is not believed.
  if (m.is_acknowledged || m.n_sends == 0) return;
  m.is_acknowledged = true;
  ++n_acknowledged_;
  holds.insert(holds.end(), m.holds.begin(), m.holds.end());
  m.message = Bytes();
  m.holds.clear();
}

std::vector<HandleId> Channel::acknowledge(uint64_t next, uint64_t bits) {
  std::vector<HandleId> holds;
  const uint64_t end = std::min(next, first_ + n_in_window());
  for (uint64_t number = first_; number < end; ++number) acknowledge_one(number, holds);
  for (uint64_t i = 0; i < 64; ++i)
    if ((bits >> i & 1) != 0) acknowledge_one(next + 1 + i, holds);
  for (; !messages_.empty() && messages_.front().is_acknowledged; ++first_) {
    messages_.pop_front();
    --n_acknowledged_;
  }
  update_due();
  return holds;
}

Time Channel::pause_after(int n_sends) const {
  double pause = static_cast<double>(options_->first_retry.count());
  for (int i = 1; i < n_sends; ++i) pause *= options_->backoff;
  return Time(static_cast<int64_t>(pause));
}

void Channel::update_due() {
  due_ = ack_due_;
  for (size_t i = 0; i < n_in_window(); ++i)
    if (!messages_[i].is_acknowledged) due_ = std::min(due_, messages_[i].due);
}

bool Channel::is_exhausted(Time now) const {
  for (size_t i = 0; i < n_in_window(); ++i) {
    const Outgoing& m = messages_[i];
    if (!m.is_acknowledged && m.n_sends >= options_->most_sends && m.due <= now) return true;
  }
  return false;
}

Bytes Channel::collect(Time now, Packet packet) {
  packet.ack_next = received_.next();
  packet.ack_bits = received_.bits();
  std::vector<std::pair<uint64_t, const Bytes*>> chosen;
  size_t size = 0;
  for (size_t i = 0; i < n_in_window(); ++i) {
    Outgoing& m = messages_[i];
    // A message that was never sent goes along, though it might have waited.
    if (m.is_acknowledged || (m.due > now && m.n_sends > 0)) continue;
    if (!chosen.empty() && size + m.message.size() > options_->packet_bytes) continue;
    size += m.message.size();
    chosen.emplace_back(first_ + i, &m.message);
    ++m.n_sends;
    m.due = now + pause_after(m.n_sends);
  }
  ack_due_ = kNever;
  update_due();
  return encode(packet, chosen);
}

void Channel::clear() {
  first_ += messages_.size();
  messages_.clear();
  n_acknowledged_ = 0;
  ack_due_ = due_ = kNever;
}

}  // namespace coppice::executor::remote
