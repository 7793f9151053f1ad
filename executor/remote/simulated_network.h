// A network on simulated time that loses, repeats, reorders and delays packets, is cut in parts for a
// while, and whose workers may crash: all of it drawn from a seed, so that a run is replayed by its seed.
//
//   SimulatedNetwork network(RandomFaults(seed, {.lose = 0.2, .repeat = 0.1}));
//   network.send(now, 0, 1, packet);
//   while (auto arrival = network.take(now)) ...          // and go on at network.next_time()
//
// For one thread at a time.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "executor/remote/ids.h"

namespace coppice::executor::remote {

class SimulatedNetwork {
 public:
  struct Sent {
    uint64_t index;  // of all packets, in the order of their sending
    Time now;
    WorkerId from, to;
    const Bytes& packet;
  };
  // Says after what time each copy of a packet arrives: none, it is lost.
  using Judge = std::function<std::vector<Time>(const Sent&)>;
  struct Arrival {
    WorkerId from, to;
    Bytes packet;
  };

  explicit SimulatedNetwork(Judge judge) : judge_(std::move(judge)) {}

  void send(Time now, WorkerId from, WorkerId to, Bytes packet);
  // Returns a packet that has arrived by now, if there is one: the earliest, the first sent among equals.
  std::optional<Arrival> take(Time now);
  Time next_time() const { return arrivals_.empty() ? kNever : arrivals_.begin()->first; }
  uint64_t n_sent() const { return n_sent_; }
  // Packets that a crashed worker has sent still arrive; what it sends, and what is for it, does not.
  void crash(WorkerId worker) { crashed_.push_back(worker); }
  bool has_crashed(WorkerId worker) const;

 private:
  Judge judge_;
  std::multimap<Time, Arrival> arrivals_;
  std::vector<WorkerId> crashed_;
  uint64_t n_sent_ = 0;
};

// Random numbers that a seed of any kind, 0, 1, 2, ... included, gives at once (SplitMix64).
class SimulatedRandom {
 public:
  explicit SimulatedRandom(uint64_t seed) : state_(seed) {}
  uint64_t next();
  uint64_t below(uint64_t bound) { return next() % bound; }
  bool chance(double p) { return static_cast<double>(next() >> 11) * 0x1p-53 < p; }
  Time between(Time least, Time most) {
    return least + Time(static_cast<int64_t>(below(static_cast<uint64_t>((most - least).count()) + 1)));
  }

 private:
  uint64_t state_;
};

// A judge: each packet's fate, drawn from a seed.
class RandomFaults {
 public:
  struct Options {
    double lose = 0, repeat = 0;  // chances of a packet; a copy may come much later than the packet itself
    Time least_delay = std::chrono::microseconds(100), most_delay = std::chrono::milliseconds(20);
    Time latest_copy = std::chrono::seconds(2);
    Time ends = kNever;  // when no packet is lost any more
  };
  // Between two times, no packet passes between `apart` and the other workers.
  struct Partition {
    Time begin, end;
    WorkerId apart;
  };
  RandomFaults(uint64_t seed, const Options& options, std::vector<Partition> partitions = {})
      : random_(seed), options_(options), partitions_(std::move(partitions)) {}

  std::vector<Time> operator()(const SimulatedNetwork::Sent& sent);

 private:
  SimulatedRandom random_;
  Options options_;
  std::vector<Partition> partitions_;
};

}  // namespace coppice::executor::remote
