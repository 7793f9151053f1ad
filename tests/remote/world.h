// Workers of a cluster on simulated time, and an oracle that knows at each moment who holds what: for tests
// of the protocol. What users do is a derived class's.
#pragma once
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "executor/remote/protocol.h"
#include "executor/remote/simulated_network.h"

namespace coppice::executor::remote {

using namespace std::chrono_literals;

struct WorldOptions {
  WorkerId n_workers = 3;
  ChannelOptions channel = {.first_retry = 20ms, .backoff = 1.3, .most_sends = 20, .ack_delay = 2ms};
  Time heartbeat = kNever;
};

class World {
 public:
  World(const WorldOptions& options, SimulatedNetwork::Judge judge) : network_(std::move(judge)) {
    for (WorkerId w = 0; w < options.n_workers; ++w)
      workers_.push_back(std::make_unique<Worker>(ProtocolOptions{.self = w,
                                                                  .n_workers = options.n_workers,
                                                                  .session = 7,
                                                                  .incarnation = w + 1,
                                                                  .heartbeat = options.heartbeat,
                                                                  .channel = options.channel}));
  }
  virtual ~World() = default;

  // Runs until nothing is left to happen. Returns what is wrong; empty: nothing.
  std::string run(Time limit = 1000s) {
    while (problem_.empty()) {
      const Time t = next_time();
      if (t == kNever) break;
      if (t > limit) {
        std::string all = "a hang: it goes on after the limit";
        for (WorkerId w = 0; w < workers_.size(); ++w)
          all += "\nworker " + std::to_string(w) + (has_crashed(w) ? ", crashed" : ":\n" + at(w).report());
        return fail(all);
      }
      now_ = std::max(now_, t);
      step();
    }
    return problem_;
  }
  const std::string& problem() const { return problem_; }

 protected:
  struct Awaited {
    bool is_fetch = false;
    RRefId rref;  // of a fetch
  };
  struct Worker {
    explicit Worker(const ProtocolOptions& options) : protocol(options) {}
    Protocol protocol;
    std::vector<HandleId> handles;       // live ones
    std::map<WaiterId, Awaited> awaits;  // not complete yet
  };
  struct Object {
    int live = 0, in_flight = 0;  // handles, and references in calls and replies that have not been received
    int frees = 0;
    bool is_here = false;           // its owner knows of it
    std::optional<Outcome> value;   // once its function has ended
    std::vector<ServiceId> serves;  // that wait for the value
  };

  // These do what users do on a worker.
  virtual void on_run(WorkerId w, effect::Run& run) = 0;
  virtual void on_complete(WorkerId, const Awaited&, const Outcome&, std::vector<HandleId>) {}
  virtual void on_time() {}
  virtual Time users_time() const { return kNever; }

  std::string fail(const std::string& what) {
    if (problem_.empty()) problem_ = what;
    return problem_;
  }
  Protocol& at(WorkerId w) { return workers_[w]->protocol; }
  bool has_crashed(WorkerId w) const { return network_.has_crashed(w); }

  static Bytes bytes_of(const std::string& text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }
  static std::string text_of(const Bytes& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  static Outcome value_of(const RRefId& rref) { return Value{bytes_of(describe(rref)), {}}; }

  HandleId own(WorkerId w) {
    RRefId rref;
    const HandleId h = at(w).own(rref);
    if (at(w).state() == Protocol::State::kOpen) objects_[rref].is_here = true;
    objects_[rref].value = value_of(rref);
    return keep(w, h);
  }
  HandleId create(WorkerId w, WorkerId owner, const std::string& call, std::vector<HandleId> arguments) {
    count_in_flight(w, arguments, 1);
    const HandleId h = at(w).create(now_, owner, bytes_of(call), arguments);
    keep(w, h);
    take_effects(w);
    return h;
  }
  WaiterId call(WorkerId w, WorkerId callee, const std::string& call, std::vector<HandleId> arguments,
                Time deadline = kNever) {
    count_in_flight(w, arguments, 1);
    const WaiterId waiter = at(w).call(now_, callee, bytes_of(call), arguments, deadline);
    workers_[w]->awaits[waiter] = {};
    take_effects(w);
    return waiter;
  }
  WaiterId fetch(WorkerId w, HandleId h, Time deadline = kNever) {
    const RRefId rref = at(w).rref_of(h).value_or(RRefId{});
    const WaiterId waiter = at(w).fetch(now_, h, deadline);
    workers_[w]->awaits[waiter] = {true, rref};
    take_effects(w);
    return waiter;
  }
  void drop(WorkerId w, HandleId h) {
    if (const auto rref = at(w).rref_of(h)) --objects_[*rref].live;
    std::erase(workers_[w]->handles, h);
    at(w).drop(now_, h);
    take_effects(w);
  }
  void finish(WorkerId w, ServiceId service, const Outcome& outcome) {
    if (const Value* v = std::get_if<Value>(&outcome)) count_in_flight(w, v->references, 1);
    at(w).finish(now_, service, outcome);
    take_effects(w);
  }
  // The function that makes an object has ended.
  void finish_create(WorkerId w, ServiceId service, const RRefId& rref, const Outcome& outcome) {
    Object& object = objects_[rref];
    object.value = outcome;
    finish(w, service, outcome);
    for (const ServiceId s : std::exchange(object.serves, {})) finish(w, s, outcome);
  }
  void shutdown(WorkerId w) {
    for (const HandleId h : std::exchange(workers_[w]->handles, {}))
      if (const auto rref = at(w).rref_of(h)) --objects_[*rref].live;
    is_disturbed_ = true;
    at(w).shutdown(now_);
    take_effects(w);
  }
  void crash(WorkerId w) {
    is_disturbed_ = true;
    network_.crash(w);
  }
  // Handles that come in are live until they are dropped.
  HandleId keep(WorkerId w, HandleId h) {
    if (const auto rref = at(w).rref_of(h)) ++objects_[*rref].live;
    workers_[w]->handles.push_back(h);
    return h;
  }

  // Checks what must be when all handles are gone and nothing is left to happen.
  void check_rest() {
    for (WorkerId w = 0; w < workers_.size(); ++w) {
      if (has_crashed(w)) continue;
      if (!workers_[w]->awaits.empty()) fail("a waiter of worker " + std::to_string(w) + " never hears");
      const bool is_done = at(w).state() == Protocol::State::kOpen ||
                           at(w).state() == Protocol::State::kClosed ||
                           at(w).state() == Protocol::State::kExpelled;
      if (!is_done) fail("the shutdown of worker " + std::to_string(w) + " never ends");
      if (!at(w).counts().is_at_rest())
        fail("worker " + std::to_string(w) + " still holds:\n" + at(w).report());
      if (at(w).counts().malformed != 0) fail("worker " + std::to_string(w) + " was sent what nobody sends");
    }
    for (const auto& [rref, object] : objects_) {
      if (object.frees > 1) fail(describe(rref) + " was freed twice");
      if (!is_disturbed_ && object.frees != 1) fail(describe(rref) + " was never freed");
    }
  }

  SimulatedNetwork network_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::map<RRefId, Object> objects_;
  Time now_{0};
  bool is_disturbed_ = false;  // a worker has left, was lost, or has crashed: references may become errors
  int n_runs_ = 0;

 private:
  Time next_time() const {
    Time t = std::min(network_.next_time(), users_time());
    for (WorkerId w = 0; w < workers_.size(); ++w)
      if (!has_crashed(w)) t = std::min(t, workers_[w]->protocol.next_time());
    return t;
  }
  void step() {
    while (auto arrival = network_.take(now_)) {
      at(arrival->to).receive(now_, arrival->packet);
      take_effects(arrival->to);
    }
    for (WorkerId w = 0; w < workers_.size(); ++w) {
      if (has_crashed(w) || at(w).next_time() > now_) continue;
      at(w).advance(now_);
      take_effects(w);
      if (at(w).next_time() <= now_) fail("worker " + std::to_string(w) + " stays due");
    }
    on_time();
  }
  void count_in_flight(WorkerId w, const std::vector<HandleId>& handles, int delta) {
    for (const HandleId h : handles)
      if (const auto rref = at(w).rref_of(h)) objects_[*rref].in_flight += delta;
  }
  void take_effects(WorkerId w) {
    for (Effect& e : at(w).take_effects()) std::visit([&](auto& effect) { apply(w, effect); }, e);
  }

  void apply(WorkerId w, effect::Send& e) { network_.send(now_, w, e.to, std::move(e.packet)); }
  void apply(WorkerId w, effect::Run& e) {
    const std::string key = std::to_string(w) + " " + text_of(e.call.payload);
    if (!has_run_.insert(key).second) fail("a function ran twice: " + key);
    ++n_runs_;
    if (e.result) objects_[*e.result].is_here = true;
    count_in_flight(w, e.call.references, -1);
    for (const HandleId h : e.call.references) keep(w, h);
    on_run(w, e);
  }
  void apply(WorkerId w, effect::Serve& e) {
    Object& object = objects_[e.rref];
    if (object.frees != 0) fail(describe(e.rref) + " is asked for after it was freed");
    if (object.value) return finish(w, e.service, *object.value);
    object.serves.push_back(e.service);
  }
  void apply(WorkerId w, effect::Complete& e) {
    const auto found = workers_[w]->awaits.find(e.waiter);
    // The waiter of a call that is refused at once is not noted yet.
    Awaited awaited;
    if (found != workers_[w]->awaits.end()) {
      awaited = found->second;
      workers_[w]->awaits.erase(found);
    } else {
      fail("a waiter hears twice");
    }
    std::vector<HandleId> handles;
    if (const Value* v = std::get_if<Value>(&e.outcome)) {
      handles = v->references;
      count_in_flight(w, handles, -1);
      for (const HandleId h : handles) keep(w, h);
      if (awaited.is_fetch && text_of(v->payload) != describe(awaited.rref))
        fail("a fetch of " + describe(awaited.rref) + " brought " + text_of(v->payload));
    } else if (awaited.is_fetch && !is_disturbed_) {
      check_error(awaited, std::get<Error>(e.outcome));
    }
    on_complete(w, awaited, e.outcome, std::move(handles));
  }
  // Where all workers stay, a fetch fails by its deadline, or as the object's function did.
  void check_error(const Awaited& awaited, const Error& error) {
    const std::string& text = error.message();
    const Object& object = objects_[awaited.rref];
    const bool has_failed = object.value && std::holds_alternative<Error>(*object.value) &&
                            std::get<Error>(*object.value).message() == text;
    if (!has_failed && text.find("has not replied in time") == std::string::npos)
      fail("a fetch of " + describe(awaited.rref) + " failed: " + text);
  }
  void apply(WorkerId, effect::Free& e) {
    Object& object = objects_[e.rref];
    ++object.frees;
    if (is_disturbed_) return;
    if (!object.serves.empty()) fail(describe(e.rref) + " was freed while somebody waits for its value");
    if (object.live != 0 || object.in_flight != 0)
      fail(describe(e.rref) + " was freed, and " + std::to_string(object.live) + " hold it, " +
           std::to_string(object.in_flight) + " will");
  }
  void apply(WorkerId w, effect::Fail& e) {
    Object& object = objects_[e.rref];
    object.value = e.error;
    for (const ServiceId s : std::exchange(object.serves, {})) finish(w, s, e.error);
  }
  void apply(WorkerId, effect::Gone& e) {
    if (!is_disturbed_) fail(std::string("nobody has left, and: ") + e.error.message());
  }

  std::set<std::string> has_run_;
  std::string problem_;
};

}  // namespace coppice::executor::remote
