// The scenarios of PyTorch's note on remote references, and some that it lacks, on a simulated network in
// which each packet takes 1 ms and whatever a test does to it.
#pragma once
#include <array>
#include <functional>

#include "tests/remote/world.h"

namespace coppice::executor::remote {

enum class Scenario { kReturn, kArgument, kOwnerToUser, kUserToUser, kReplyOfThird, kChain, kKeep };
inline constexpr std::array kScenarios = {
    Scenario::kReturn,       Scenario::kArgument, Scenario::kOwnerToUser, Scenario::kUserToUser,
    Scenario::kReplyOfThird, Scenario::kChain,    Scenario::kKeep};
inline const char* name_of(Scenario s) {
  constexpr const char* kNames[] = {"user to owner as return value",
                                    "user to owner as argument",
                                    "owner to user",
                                    "user to user",
                                    "reply with a third's object",
                                    "chain of users",
                                    "user to user, who keeps it"};
  return kNames[static_cast<int>(s)];
}

// Counts what was sent in a run.
struct SentCounts {
  int user_messages = 0;     // calls, creates, fetches, replies
  int control_messages = 0;  // others
  int packets = 0;
  int control_packets = 0;  // those without a user message
};

class ScenarioWorld : public World {
 public:
  enum : WorkerId { kA, kB, kC, kD };
  // Says what happens to a packet with these messages; null: nothing.
  using Fate = std::function<std::vector<Time>(const SimulatedNetwork::Sent&, const Packet&)>;

  ScenarioWorld(Scenario scenario, Fate fate, const WorldOptions& options = {})
      : World(options, [this](const SimulatedNetwork::Sent& sent) { return judge(sent); }),
        scenario_(scenario),
        fate_(std::move(fate)) {}

  // Plays the scenario to its end, and checks that all is at rest.
  std::string play() {
    start();
    if (run().empty()) check_rest();
    if (problem().empty() && !is_disturbed_) check_results();
    return problem();
  }
  const SentCounts& counts() const { return counts_; }
  // Returns when worker C's function began.
  Time callee_began() const { return callee_began_; }

 protected:
  virtual void start() {
    switch (scenario_) {
      case Scenario::kReturn: {
        const HandleId h = create(kA, kB, "make", {});
        fetch(kA, h);
        return drop(kA, h);
      }
      case Scenario::kArgument: {
        const HandleId h = create(kA, kB, "make", {});
        call(kA, kB, "take", {h});
        return drop(kA, h);
      }
      case Scenario::kOwnerToUser: {
        const HandleId h = own(kB);
        call(kB, kC, "use", {h});
        return drop(kB, h);
      }
      case Scenario::kChain:
      case Scenario::kUserToUser: {
        const HandleId h = create(kA, kB, "make", {});
        call(kA, kC, scenario_ == Scenario::kChain ? "pass" : "use", {h});
        return drop(kA, h);
      }
      case Scenario::kReplyOfThird:
        call(kA, kC, "give", {});
        return;
      case Scenario::kKeep:
        kept_ = create(kA, kB, "make", {});
        fetch(kA, kept_);
        return;
    }
  }

  void on_run(WorkerId w, effect::Run& run) override {
    const std::string what = text_of(run.call.payload);
    if (what == "make") return finish_create(w, run.service, *run.result, value_of(*run.result));
    if (w == kC) callee_began_ = now_;
    if (what == "use") {  // fetches it, and lets it go when the value has come
      fetch(w, run.call.references[0]);
      drop(w, run.call.references[0]);
    } else if (what == "take") {
      if (!at(w).object_of(run.call.references[0])) fail("the owner is given no object of its own");
      drop(w, run.call.references[0]);
    } else if (what == "pass") {  // to a fourth, who passes it to its owner
      const HandleId h = run.call.references[0];
      call(w, w == kC ? kD : kB, w == kC ? "pass" : "take", {h});
      drop(w, h);
    }
    if (what == "keep") {  // and fetches it when its caller has dropped its own long since
      later_ = now_ + 200ms;
      later_handle_ = run.call.references[0];
    }
    Value value;
    if (what == "give") value.references.push_back(create(w, kB, "make", {}));
    finish(w, run.service, value);
    for (const HandleId h : value.references) drop(w, h);
  }
  void on_complete(WorkerId w, const Awaited& awaited, const Outcome& outcome,
                   std::vector<HandleId> handles) override {
    if (std::holds_alternative<Value>(outcome)) ++n_values_;
    if (scenario_ == Scenario::kKeep && w == kA) {  // the owner knows it by now
      if (awaited.is_fetch) {
        call(kA, kC, "keep", {kept_});
      } else {
        drop(kA, kept_);
      }
    }
    for (const HandleId h : handles) {
      fetch(w, h);
      drop(w, h);
    }
  }
  Time users_time() const override { return later_; }
  void on_time() override {
    if (later_ > now_) return;
    later_ = kNever;
    fetch(kC, later_handle_);
    drop(kC, later_handle_);
  }

 private:
  std::vector<Time> judge(const SimulatedNetwork::Sent& sent) {
    const Packet packet = decode_packet(sent.packet);
    ++counts_.packets;
    bool is_control = true;
    for (const auto& m : packet.messages) {
      const bool is_user = m.message.kind <= Message::Kind::kReply;
      ++(is_user ? counts_.user_messages : counts_.control_messages);
      is_control = is_control && !is_user;
    }
    counts_.control_packets += is_control;
    return fate_ ? fate_(sent, packet) : std::vector<Time>{1ms};
  }
  // Every call and fetch has brought a value.
  void check_results() {
    static constexpr int kValues[] = {1, 1, 2, 2, 2, 3, 3};
    const int expected = kValues[static_cast<int>(scenario_)];
    if (n_values_ != expected)
      fail(std::to_string(n_values_) + " values came, and " + std::to_string(expected) + " should");
  }

  const Scenario scenario_;
  const Fate fate_;
  SentCounts counts_;
  int n_values_ = 0;
  Time callee_began_{0};
  HandleId kept_ = 0, later_handle_ = 0;
  Time later_ = kNever;
};

// The chain has a worker more.
inline WorldOptions options_for(Scenario s) {
  WorldOptions options;
  options.n_workers = s == Scenario::kChain ? 4 : 3;
  return options;
}

}  // namespace coppice::executor::remote
