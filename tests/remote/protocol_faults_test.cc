// Every packet of the scenarios is lost, repeated at once and much later, and delayed: each alone, and each
// two of them in all ways.
#include <gmock/gmock.h>

#include <set>

#include "tests/remote/scenarios.h"

namespace coppice::executor::remote {
namespace {

enum class Fault { kLose, kRepeat, kRepeatLate, kDelay };
constexpr std::array kFaults = {Fault::kLose, Fault::kRepeat, Fault::kRepeatLate, Fault::kDelay};

std::vector<Time> arrivals(Fault fault) {
  switch (fault) {
    case Fault::kLose:
      return {};
    case Fault::kRepeat:
      return {1ms, 500us};  // the copy first, and before what was sent earlier
    case Fault::kRepeatLate:
      return {1ms, 10s};  // when all is at rest, but for this
    case Fault::kDelay:
      return {70ms};  // it was sent again twice meanwhile
  }
  return {};
}

struct Planned {
  uint64_t index;  // of the packet
  Fault fault;
};
// These were met by a fault.
using Met = std::set<std::pair<Message::Kind, Fault>>;

struct PlayedRun {
  std::string problem;
  uint64_t n_packets = 0;
};

PlayedRun run_with(Scenario scenario, const std::vector<Planned>& faults, Met& met) {
  PlayedRun run;
  ScenarioWorld world(
      scenario,
      [&](const SimulatedNetwork::Sent& sent, const Packet& packet) {
        run.n_packets = sent.index + 1;
        for (const Planned& f : faults) {
          if (f.index != sent.index) continue;
          for (const auto& m : packet.messages) met.emplace(m.message.kind, f.fault);
          return arrivals(f.fault);
        }
        return std::vector<Time>{1ms};
      },
      options_for(scenario));
  run.problem = world.play();
  for (const Planned& f : faults)
    if (!run.problem.empty())
      run.problem += "\nwith fault " + std::to_string(static_cast<int>(f.fault)) + " of packet " +
                     std::to_string(f.index);
  return run;
}

class ProtocolFaults : public testing::TestWithParam<Scenario> {};

// The second fault may meet any packet of the run that the first one has changed.
TEST_P(ProtocolFaults, EveryTwoFaultsAtEveryTwoPacketsChangeNothing) {
  Met met;
  const uint64_t n_packets = run_with(GetParam(), {}, met).n_packets;
  ASSERT_GT(n_packets, 0u);
  int n_runs = 0;
  for (uint64_t i = 0; i < n_packets; ++i) {
    for (const Fault first : kFaults) {
      const PlayedRun one = run_with(GetParam(), {{i, first}}, met);
      ASSERT_EQ(one.problem, "");
      for (uint64_t j = i + 1; j < one.n_packets; ++j) {
        for (const Fault second : kFaults) {
          ASSERT_EQ(run_with(GetParam(), {{i, first}, {j, second}}, met).problem, "");
          ++n_runs;
        }
      }
    }
  }
  // Each kind of message that users' objects need has met each fault.
  std::set<Message::Kind> kinds;
  for (const auto& [kind, fault] : met) kinds.insert(kind);
  EXPECT_EQ(met.size(), kinds.size() * kFaults.size());
  EXPECT_TRUE(kinds.count(Message::Kind::kDelete) != 0);
  RecordProperty("runs", n_runs);
}
INSTANTIATE_TEST_SUITE_P(, ProtocolFaults, testing::ValuesIn(kScenarios));

// A hole of PyTorch's (RRefContext::addForkOfOwnerIfNotPresent looks at present forks only): a fork request
// that comes once more after the fork was deleted holds the object for ever.
TEST(ProtocolHoles, LateDuplicateOfForkRequestBringsNothingBack) {
  int n_duplicates = 0;
  ScenarioWorld world(Scenario::kUserToUser, [&](const SimulatedNetwork::Sent&, const Packet& packet) {
    for (const auto& m : packet.messages) {
      if (m.message.kind != Message::Kind::kAddFork) continue;
      ++n_duplicates;
      return std::vector<Time>{1ms, 3s};
    }
    return std::vector<Time>{1ms};
  });
  EXPECT_EQ(world.play(), "");  // which looks for what is held at rest, at 3 s
  EXPECT_EQ(n_duplicates, 1);
}

// The other: when the retries of a fork request are exhausted, the callee's function never runs, and the
// parent is held for ever. Here it runs anyway, and all that waits for the owner is an error.
class UnreachableOwner : public ScenarioWorld {
 public:
  UnreachableOwner()
      : ScenarioWorld(Scenario::kUserToUser, [](const SimulatedNetwork::Sent& sent, const Packet&) {
          return sent.to == kB ? std::vector<Time>{} : std::vector<Time>{1ms};
        }) {
    is_disturbed_ = true;
  }
  std::vector<std::string> errors;

 private:
  void on_complete(WorkerId, const Awaited&, const Outcome& outcome, std::vector<HandleId>) override {
    if (const Error* e = std::get_if<Error>(&outcome)) errors.push_back(e->what());
  }
};
TEST(ProtocolHoles, ExhaustedRetriesAreAnErrorAtEveryWaiterAndTheCalleeRuns) {
  UnreachableOwner world;
  EXPECT_EQ(world.play(), "");
  EXPECT_EQ(world.callee_began(), Time(1ms));
  EXPECT_THAT(world.errors,
              testing::ElementsAre("worker 1 is lost: it has not answered worker 0 in 20 tries"));
}

}  // namespace
}  // namespace coppice::executor::remote
