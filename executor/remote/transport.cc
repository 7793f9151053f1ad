// LocalNetwork: queues between the workers of one process.
#include "executor/remote/transport.h"

namespace coppice::executor::remote {

class LocalNetwork::End final : public Transport {
 public:
  End(LocalNetwork& network, WorkerId self) : network_(network), self_(self) {}

  void send(WorkerId to, Bytes packet) override {
    Mailbox& box = network_.mailboxes_[to];
    {
      const std::lock_guard lock(box.mutex);
      box.packets.push_back(std::move(packet));
    }
    box.changed.notify_one();
  }
  std::optional<Bytes> receive() override {
    Mailbox& box = network_.mailboxes_[self_];
    const std::lock_guard lock(box.mutex);
    if (box.packets.empty()) return std::nullopt;
    Bytes packet = std::move(box.packets.front());
    box.packets.pop_front();
    return packet;
  }
  void wait(Time most) override {
    Mailbox& box = network_.mailboxes_[self_];
    std::unique_lock lock(box.mutex);
    const auto is_over = [&] { return box.is_woken || !box.packets.empty(); };
    // A longer wait than a day would overflow the clock's sum.
    box.changed.wait_for(lock, std::min<Time>(most, std::chrono::hours(24)), is_over);
    box.is_woken = false;
  }
  void wake() override {
    Mailbox& box = network_.mailboxes_[self_];
    {
      const std::lock_guard lock(box.mutex);
      box.is_woken = true;
    }
    box.changed.notify_one();
  }

 private:
  LocalNetwork& network_;
  const WorkerId self_;
};

std::unique_ptr<Transport> LocalNetwork::transport(WorkerId worker) {
  return std::make_unique<End>(*this, worker);
}

}  // namespace coppice::executor::remote
