// SimulatedNetwork and the fates of its packets.
#include "executor/remote/simulated_network.h"

#include <algorithm>

namespace coppice::executor::remote {

bool SimulatedNetwork::has_crashed(WorkerId worker) const {
  return std::find(crashed_.begin(), crashed_.end(), worker) != crashed_.end();
}

void SimulatedNetwork::send(Time now, WorkerId from, WorkerId to, Bytes packet) {
  if (has_crashed(from)) return;
  const std::vector<Time> delays = judge_({n_sent_++, now, from, to, packet});
  for (const Time delay : delays) arrivals_.emplace(now + delay, Arrival{from, to, packet});
}

std::optional<SimulatedNetwork::Arrival> SimulatedNetwork::take(Time now) {
  while (!arrivals_.empty() && arrivals_.begin()->first <= now) {
    Arrival arrival = std::move(arrivals_.begin()->second);
    arrivals_.erase(arrivals_.begin());
    if (!has_crashed(arrival.to)) return arrival;
  }
  return std::nullopt;
}

uint64_t SimulatedRandom::next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::vector<Time> RandomFaults::operator()(const SimulatedNetwork::Sent& sent) {
  std::vector<Time> delays;
  for (const Partition& p : partitions_) {
    const bool is_cut = (sent.from == p.apart) != (sent.to == p.apart);
    if (is_cut && p.begin <= sent.now && sent.now < p.end) return delays;
  }
  const bool is_lossy = sent.now < options_.ends;
  if (!is_lossy || !random_.chance(options_.lose))
    delays.push_back(random_.between(options_.least_delay, options_.most_delay));
  while (random_.chance(options_.repeat))
    delays.push_back(random_.between(options_.least_delay,
                                     random_.chance(0.5) ? options_.most_delay : options_.latest_copy));
  return delays;
}

}  // namespace coppice::executor::remote
