// How packets get from worker to worker, and what time it is: all that the protocol needs of the world.
//
// A transport may lose, repeat and reorder packets. Its functions are called by one thread, the one that
// calls Worker::progress(), but for wake().
#pragma once
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "executor/remote/ids.h"

namespace coppice::executor::remote {

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() const = 0;
};
class SteadyClock final : public Clock {
 public:
  Time now() const override { return std::chrono::steady_clock::now().time_since_epoch(); }
};
// Stands still until it is told.
class ManualClock final : public Clock {
 public:
  Time now() const override { return now_; }
  void set(Time now) { now_ = now; }

 private:
  Time now_{0};
};

// One worker's end.
class Transport {
 public:
  virtual ~Transport() = default;
  // Takes a packet for another worker; waits for nothing.
  virtual void send(WorkerId to, Bytes packet) = 0;
  // Returns a packet that has come, if there is one.
  virtual std::optional<Bytes> receive() = 0;
  // Waits until a packet has come, wake() was called since the last wait, or `most` is over.
  virtual void wait(Time most) = 0;
  // Ends a wait(), or the next one. Any thread may call it.
  virtual void wake() = 0;
};

// Workers in one process: their packets go through queues, and none is lost. The network outlives its
// transports.
class LocalNetwork {
 public:
  explicit LocalNetwork(WorkerId n_workers) : mailboxes_(n_workers) {}
  std::unique_ptr<Transport> transport(WorkerId worker);

 private:
  class End;
  struct Mailbox {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Bytes> packets;  // guarded by mutex, as is the next
    bool is_woken = false;
  };
  std::vector<Mailbox> mailboxes_;
};

}  // namespace coppice::executor::remote
