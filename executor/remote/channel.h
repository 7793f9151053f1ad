// One direction each way between this worker and another: every message is delivered exactly once, in any
// order, or the other is lost.
//
//   sender      messages have numbers 0, 1, ... and are sent again, with growing pauses, until they are
//               acknowledged; at most kWindow of them are under way, and later ones wait
//   receiver    `next`: all numbers below were received; and a bit for each of the kWindow behind it.
//               A number that was received is dropped, whenever it comes again: so a late duplicate does
//               nothing, for kWindow bits of memory. A number behind the window comes from no honest sender.
//   acks        each packet says what was received of the other direction; one goes by itself only when
//               nothing else did for `ack_delay`
//
// There is no clock: time is an argument that does not go back. Not thread-safe.
#pragma once
#include <array>
#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "executor/remote/packet.h"

namespace coppice::executor::remote {

struct ChannelOptions {
  Time first_retry = std::chrono::seconds(1);
  double backoff = 1.5;  // of each pause over the one before
  int most_sends = 6;    // of one message: the last pause over, the other worker is lost
  Time ack_delay = std::chrono::milliseconds(5);
  Time linger = std::chrono::milliseconds(1);  // of control messages, for another packet to ride on
  size_t packet_bytes = 64 << 10;              // a packet of more than one message is at most so large
};

// Remembers which numbers were received.
class ReceiveWindow {
 public:
  static constexpr uint64_t kWindow = 1024;

  enum class Outcome { kNew, kRepeated, kBeyond };
  Outcome receive(uint64_t number);
  bool has(uint64_t number) const { return number < next_ || (number - next_ < kWindow && bit(number)); }
  uint64_t next() const { return next_; }
  // Returns a bit for each of the 64 numbers behind next().
  uint64_t bits() const;

 private:
  bool bit(uint64_t number) const { return (words_[number % kWindow / 64] >> number % 64 & 1) != 0; }

  uint64_t next_ = 0;
  std::array<uint64_t, kWindow / 64> words_{};  // of number n: bit n % kWindow; those below next_ are 0
};

class Channel {
 public:
  explicit Channel(const ChannelOptions& options) : options_(&options) {}

  // Returns the number that the next message will have.
  uint64_t next_number() const { return first_ + messages_.size(); }
  // Adds a message that goes when the caller collects next, or (lazy) at the latest after `linger`. `holds`
  // come back when it is acknowledged.
  uint64_t add(Time now, Bytes message, bool lazy, std::vector<HandleId> holds = {});
  // Returns whether a message is one that was not received before, and remembers it. An acknowledgement is
  // owed in any case.
  bool receive(Time now, uint64_t number);
  bool has_received(uint64_t number) const { return received_.has(number); }
  // Takes note of what the other has received; returns the holds of what is acknowledged now.
  std::vector<HandleId> acknowledge(uint64_t next, uint64_t bits);

  // Returns whether a packet should go now.
  bool is_due(Time now) const { return due_ <= now; }
  Time next_time() const { return due_; }
  // Puts what is to go now into one packet; call it while is_due().
  Bytes collect(Time now, Packet packet);
  // Returns whether a message was sent as often as may be, and no acknowledgement has come in time.
  bool is_exhausted(Time now) const;
  // Returns how many messages are not acknowledged, those that were never sent included.
  size_t n_unacknowledged() const { return messages_.size() - n_acknowledged_; }
  // Drops all that is to be sent.
  void clear();

 private:
  struct Outgoing {
    Bytes message;
    std::vector<HandleId> holds;
    Time due;  // when it is to be sent, next
    int n_sends = 0;
    bool is_acknowledged = false;
  };
  Outgoing& outgoing(uint64_t number) { return messages_[number - first_]; }
  // Returns the first number that is not under way and may not be.
  uint64_t window_end() const { return first_ + std::min<size_t>(messages_.size(), ReceiveWindow::kWindow); }
  void acknowledge_one(uint64_t number, std::vector<HandleId>& holds);
  void send_again(Time now, uint64_t number);
  Time pause_after(int n_sends) const;
  // Lets unsent_due_ know of messages that come into the window, or are left there.
  void note_unsent(uint64_t begin, uint64_t end);
  void update_due();

  const ChannelOptions* options_;
  std::deque<Outgoing> messages_;  // from number first_ on, the first is not acknowledged
  uint64_t first_ = 0;
  size_t n_acknowledged_ = 0;  // of those in messages_
  uint64_t first_unsent_ = 0;  // messages are sent first in the order of their numbers
  Time unsent_due_ = kNever;   // of those in the window that were never sent, the earliest
  Time ack_due_ = kNever;      // when an acknowledgement is owed
  Time due_ = kNever;          // of all that is due, the earliest
  // When each message that was sent, and is not acknowledged, goes again. No call looks at the whole window.
  std::set<std::pair<Time, uint64_t>> retries_;
  ReceiveWindow received_;
};

}  // namespace coppice::executor::remote
