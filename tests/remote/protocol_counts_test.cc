// How many messages the scenarios take, beside PyTorch's (docs/remote.md).
#include "tests/remote/scenarios.h"

namespace coppice::executor::remote {
namespace {

struct Expected {
  Scenario scenario;
  int user_messages, control_messages, control_packets;
  int pytorch;  // control messages of sharing and of deleting all references, acknowledgements included
};
// A control message that rides on a user's, and an acknowledgement that does, takes no packet.
constexpr Expected kExpected[] = {
    {Scenario::kReturn, 3, 1, 2, 2},
    {Scenario::kArgument, 3, 1, 2, 4},
    {Scenario::kOwnerToUser, 4, 1, 2, 2},
    {Scenario::kUserToUser, 5, 3, 6, 8},
};

TEST(ProtocolCounts, ScenariosTakeNoMoreControlPacketsThanPyTorch) {
  for (const Expected& e : kExpected) {
    SCOPED_TRACE(name_of(e.scenario));
    ScenarioWorld world(e.scenario, nullptr, options_for(e.scenario));
    ASSERT_EQ(world.play(), "");
    const SentCounts& c = world.counts();
    EXPECT_EQ(c.user_messages, e.user_messages);
    EXPECT_EQ(c.control_messages, e.control_messages);
    EXPECT_EQ(c.control_packets, e.control_packets);
    EXPECT_LE(c.control_packets, e.pytorch);
  }
}

// In PyTorch it begins after a round trip to the owner: at 3 ms here.
TEST(ProtocolCounts, CalleeOfSharedReferenceBeginsAtOnce) {
  ScenarioWorld world(Scenario::kUserToUser, nullptr);
  ASSERT_EQ(world.play(), "");
  EXPECT_EQ(world.callee_began(), Time(1ms));
}

// Shares many references of worker B's with worker C in one call; C drops them all.
class ManyShared : public ScenarioWorld {
 public:
  explicit ManyShared(int n) : ScenarioWorld(Scenario::kReplyOfThird, nullptr), n_(n) {}

 private:
  void start() override {
    std::vector<HandleId> all;
    for (int i = 0; i < n_; ++i) all.push_back(create(kA, kB, "make " + std::to_string(i), {}));
    call(kA, kC, "drop", all);
    for (const HandleId h : all) drop(kA, h);
    is_disturbed_ = true;  // no results to check
  }
  void on_run(WorkerId w, effect::Run& run) override {
    if (run.result) return finish_create(w, run.service, *run.result, value_of(*run.result));
    for (const HandleId h : run.call.references) drop(w, h);
    finish(w, run.service, Value{});
  }
  const int n_;
};

TEST(ProtocolCounts, ManyReferencesTakeAsManyPacketsAsOne) {
  ManyShared one(1), hundred(100);
  ASSERT_EQ(one.play(), "");
  ASSERT_EQ(hundred.play(), "");
  EXPECT_EQ(hundred.counts().control_messages, 300);  // PyTorch: 800
  EXPECT_EQ(hundred.counts().packets, one.counts().packets);
  EXPECT_EQ(hundred.counts().packets, 9);
}

}  // namespace
}  // namespace coppice::executor::remote
