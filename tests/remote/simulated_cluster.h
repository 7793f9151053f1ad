// Workers with hosts, queues and functions on a simulated network and simulated time.
#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <vector>

#include "executor/builtin_operations.h"
#include "executor/remote/simulated_network.h"
#include "executor/remote/worker.h"
#include "executor/text.h"

namespace coppice::executor::remote {

using namespace std::chrono_literals;

class SimulatedCluster {
 public:
  struct Options {
    WorkerId n_workers = 3;
    Time timeout = kNever, heartbeat = kNever;
    ChannelOptions channel = {.first_retry = 20ms, .backoff = 1.3, .most_sends = 10};
  };
  static std::vector<Time> one_ms(const SimulatedNetwork::Sent&) { return {1ms}; }

  explicit SimulatedCluster(const Options& options, SimulatedNetwork::Judge judge = one_ms)
      : network_(std::move(judge)) {
    add_builtin_operations(registry);
    registry.add_type<RemoteRef<int32_t>>("remote.i32");
    registry.add_type<RemoteRef<float>>("remote.f32");
    codecs.add_remote<int32_t>();
    codecs.add_remote<float>();
    for (WorkerId w = 0; w < options.n_workers; ++w) {
      ends_.push_back(std::make_unique<End>(*this, w));
      hosts.push_back(make_intrusive<Host>(WorkQueue::create({.threads = 1})));
      workers.push_back(std::make_unique<Worker>(Worker::Options{.protocol = {.self = w,
                                                                              .n_workers = options.n_workers,
                                                                              .session = 7,
                                                                              .heartbeat = options.heartbeat,
                                                                              .channel = options.channel},
                                                                 .timeout = options.timeout},
                                                 *ends_.back(), clock, hosts.back(), codecs));
    }
  }
  ~SimulatedCluster() {
    for (const auto& host : hosts) host->queue()->shutdown(WorkQueue::Shutdown::kDrain);
  }

  // Loads a module on all workers, with the operations that are registered by then.
  Hash128 load(const std::string& text) {
    Hash128 id;
    for (const auto& worker : workers) id = worker->add_module(LoadedModule::load(parse(text), registry));
    return id;
  }
  Hash128 only_on_1(const std::string& text) {
    return workers[1]->add_module(LoadedModule::load(parse(text), registry));
  }
  // Goes on until nothing is left to happen, or until `end`.
  void run(Time end = kNever) {
    while (true) {
      Time next = kNever;
      for (WorkerId w = 0; w < workers.size(); ++w) next = std::min(next, progress(w));
      next = std::min(next, network_.next_time());
      if (next <= clock.now() || is_woken_.exchange(false)) continue;
      if (next == kNever || next > end) return;
      clock.set(next);
    }
  }
  Worker& at(WorkerId w) { return *workers[w]; }
  SimulatedNetwork& network() { return network_; }
  // Nothing is held anywhere.
  void expect_rest() {
    for (const auto& w : workers) EXPECT_TRUE(w->counts().is_at_rest()) << w->report();
  }

  Registry registry;
  Codecs codecs;
  ManualClock clock;
  std::vector<IntrusivePtr<Host>> hosts;
  std::vector<std::unique_ptr<Worker>> workers;

 private:
  class End final : public Transport {
   public:
    End(SimulatedCluster& cluster, WorkerId self) : cluster_(cluster), self_(self) {}
    void send(WorkerId to, Bytes packet) override {
      cluster_.network_.send(cluster_.clock.now(), self_, to, std::move(packet));
    }
    std::optional<Bytes> receive() override {
      while (auto arrival = cluster_.network_.take(cluster_.clock.now()))
        cluster_.ends_[arrival->to]->inbox_.push_back(std::move(arrival->packet));
      if (inbox_.empty()) return std::nullopt;
      Bytes packet = std::move(inbox_.front());
      inbox_.pop_front();
      return packet;
    }
    void wait(Time) override {}
    void wake() override { cluster_.is_woken_ = true; }

   private:
    SimulatedCluster& cluster_;
    const WorkerId self_;
    std::deque<Bytes> inbox_;
  };

  Time progress(WorkerId w) {
    if (network_.has_crashed(w)) return kNever;
    const Time next = workers[w]->progress();
    hosts[w]->queue()->wait_idle();
    return next;
  }

  SimulatedNetwork network_;
  std::vector<std::unique_ptr<End>> ends_;
  std::atomic<bool> is_woken_{false};
};

}  // namespace coppice::executor::remote
