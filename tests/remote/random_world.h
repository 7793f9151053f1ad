// Random users on random workers of a simulated cluster with random faults: one schedule is one seed.
#pragma once
#include <functional>

#include "tests/remote/world.h"

namespace coppice::executor::remote {

class RandomWorld : public World {
 public:
  // These may go wrong for good, besides packets.
  enum class Mode { kTransient, kPartition, kCrash, kShutdown };

  explicit RandomWorld(uint64_t seed)
      : World(options_of(seed), faults_of(seed)), random_(seed * 3 + 1), mode_(mode_of(seed)) {
    is_disturbed_ = mode_ != Mode::kTransient;
    n_left_ = 4 + static_cast<int>(random_.below(14));
    for (int n = n_left_; n > 0; --n) at_time(random_.between(0ms, 80ms), [this] { act(any_worker()); });
    if (mode_ == Mode::kCrash) at_time(random_.between(0ms, 150ms), [this, w = any_worker()] { crash(w); });
    if (mode_ == Mode::kShutdown)
      at_time(random_.between(0ms, 150ms), [this, w = any_worker()] { shutdown(w); });
    at_time(kEnd, [this] { end(); });
  }

  static Mode mode_of(uint64_t seed) {
    const uint64_t k = seed % 16;
    return k < 10 ? Mode::kTransient : k < 12 ? Mode::kPartition : k < 14 ? Mode::kCrash : Mode::kShutdown;
  }
  // Runs the schedule and checks it. Returns what is wrong; empty: nothing.
  static std::string try_seed(uint64_t seed) {
    RandomWorld world(seed);
    if (const std::string problem = world.run(); !problem.empty()) return problem;
    world.check_rest();
    return world.problem();
  }

 private:
  static constexpr Time kEnd = 400ms;  // when nobody begins anything any more, and everything is dropped

  static WorldOptions options_of(uint64_t seed) {
    WorldOptions options;
    options.n_workers = 2 + static_cast<WorkerId>(SimulatedRandom(seed + 17).below(3));
    if (mode_of(seed) == Mode::kTransient) return options;
    options.channel.most_sends = 4;
    options.heartbeat = 100ms;
    return options;
  }
  static SimulatedNetwork::Judge faults_of(uint64_t seed) {
    SimulatedRandom random(seed * 5 + 2);
    RandomFaults::Options o{.lose = 0.1 * static_cast<double>(random.below(5)),
                            .repeat = 0.1 * static_cast<double>(random.below(4)),
                            .ends = 500ms};
    std::vector<RandomFaults::Partition> partitions;
    const auto apart = static_cast<WorkerId>(random.below(options_of(seed).n_workers));
    const Time begin = random.between(0ms, 200ms);
    if (mode_of(seed) == Mode::kTransient) {
      if (random.chance(0.3)) partitions.push_back({begin, begin + random.between(1ms, 150ms), apart});
    } else {
      o.lose *= 0.3;
    }
    if (mode_of(seed) == Mode::kPartition)
      partitions.push_back({begin, begin + random.between(50ms, 2s), apart});
    return RandomFaults(seed, o, std::move(partitions));
  }

  void at_time(Time t, std::function<void()> f) { events_.emplace(t, std::move(f)); }
  WorkerId any_worker() { return static_cast<WorkerId>(random_.below(workers_.size())); }
  WorkerId another(WorkerId w) {
    const auto other = static_cast<WorkerId>(random_.below(workers_.size() - 1));
    return other < w ? other : other + 1;
  }
  bool has_ended() const { return now_ >= kEnd; }

  std::vector<HandleId> some_handles(WorkerId w) {
    std::vector<HandleId> some;
    const auto& all = workers_[w]->handles;
    for (int i = 0; i < 2; ++i)
      if (!all.empty() && random_.chance(0.5)) some.push_back(all[random_.below(all.size())]);
    return some;
  }

  void act(WorkerId w) {
    if (has_crashed(w) || has_ended()) return;
    auto& handles = workers_[w]->handles;
    const Time deadline = random_.chance(0.2) ? now_ + random_.between(5ms, 100ms) : kNever;
    const std::string name = std::to_string(w) + "." + std::to_string(n_calls_++);
    switch (handles.empty() ? random_.below(4) : random_.below(10)) {
      case 0:
        own(w);
        return;
      case 1:
      case 2:
        create(w, another(w), name, some_handles(w));
        return;
      case 3:
      case 4:
      case 5:
        // A late reply's references are dropped before this oracle sees them, so that there are none.
        call(w, another(w), name + (deadline == kNever ? "" : " late"), some_handles(w), deadline);
        return;
      case 6:
      case 7: {
        const HandleId h = handles[random_.below(handles.size())];
        if (!at(w).object_of(h)) fetch(w, h, deadline);
        return;
      }
      default:
        drop(w, handles[random_.below(handles.size())]);
    }
  }

  void drop_some(WorkerId w, const std::vector<HandleId>& handles) {
    for (const HandleId h : handles)
      if (has_ended() || random_.chance(0.5)) drop(w, h);
  }

  void on_run(WorkerId w, effect::Run& run) override {
    drop_some(w, run.call.references);
    if (random_.chance(0.3) && n_left_-- > 0) act(w);
    const bool fails = random_.chance(0.1);
    const bool is_late = text_of(run.call.payload).find("late") != std::string::npos;
    at_time(now_ + random_.between(0ms, 30ms), [this, w, run, fails, is_late] {
      if (has_crashed(w)) return;
      const Outcome error = Error(ErrorCode::kNumeric, "it failed");
      if (run.result)
        return finish_create(w, run.service, *run.result, fails ? error : value_of(*run.result));
      if (fails) return finish(w, run.service, error);
      Value value;
      if (!has_ended() && !is_late) value.references = some_handles(w);
      finish(w, run.service, value);
    });
  }
  void on_complete(WorkerId w, const Awaited&, const Outcome&, std::vector<HandleId> handles) override {
    drop_some(w, handles);
  }
  void end() {
    for (WorkerId w = 0; w < workers_.size(); ++w)
      if (!has_crashed(w))
        while (!workers_[w]->handles.empty()) drop(w, workers_[w]->handles.back());
  }

  Time users_time() const override { return events_.empty() ? kNever : events_.begin()->first; }
  void on_time() override {
    while (!events_.empty() && events_.begin()->first <= now_) {
      const auto event = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      event();
    }
  }

  SimulatedRandom random_;
  const Mode mode_;
  std::multimap<Time, std::function<void()>> events_;
  int n_left_ = 0, n_calls_ = 0;
};

}  // namespace coppice::executor::remote
