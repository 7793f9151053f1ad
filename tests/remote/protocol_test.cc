// Everything that can go wrong with a reference or a worker, one at a time, has its stated outcome.
#include "executor/remote/protocol.h"

#include <gmock/gmock.h>

#include "tests/remote/scenarios.h"

namespace coppice::executor::remote {
namespace {

using testing::HasSubstr;
using State = Protocol::State;

// Workers whose packets a test carries by hand, or all at once.
class Cluster {
 public:
  explicit Cluster(WorkerId n_workers = 3, Time heartbeat = kNever) {
    for (WorkerId w = 0; w < n_workers; ++w)
      workers.push_back(
          std::make_unique<Protocol>(ProtocolOptions{.self = w,
                                                     .n_workers = n_workers,
                                                     .session = 7,
                                                     .heartbeat = heartbeat,
                                                     .channel = {.first_retry = 20ms, .most_sends = 3}}));
    dead.resize(n_workers);
  }
  // Carries packets until nothing is left to do, or until `end`.
  void run(Time end = kNever) {
    while (true) {
      Time next = kNever;
      for (WorkerId w = 0; w < workers.size(); ++w) {
        if (!dead[w]) step(w);
        if (!dead[w]) next = std::min(next, worker(w).next_time());
      }
      bool is_quiet = true;
      for (auto& [to, packet] : std::exchange(in_flight, {})) {
        is_quiet = false;
        if (!dead[to]) worker(to).receive(now, packet);
      }
      if (!is_quiet) continue;
      if (next == kNever || next > end) return;
      now = std::max(now, next);
    }
  }
  void step(WorkerId w) {
    worker(w).advance(now);
    for (Effect& e : worker(w).take_effects()) {
      if (auto* send = std::get_if<effect::Send>(&e)) {
        in_flight.emplace_back(send->to, std::move(send->packet));
        sent.push_back(in_flight.back());
      } else if (auto* complete = std::get_if<effect::Complete>(&e)) {
        ASSERT_TRUE(outcomes.emplace(std::pair(w, complete->waiter), complete->outcome).second);
      } else if (auto* free = std::get_if<effect::Free>(&e)) {
        freed.push_back(free->rref);
      } else if (auto* run = std::get_if<effect::Run>(&e)) {
        runs.emplace_back(w, *run);
        if (finishes_at_once) worker(w).finish(now, run->service, Value{});
      } else if (auto* serve = std::get_if<effect::Serve>(&e)) {
        serves.emplace_back(w, *serve);
        if (finishes_at_once) worker(w).finish(now, serve->service, Value{});
      }
    }
    if (worker(w).next_time() <= now) step(w);
  }
  std::string error_of(WorkerId w, WaiterId waiter) {
    const auto found = outcomes.find({w, waiter});
    if (found == outcomes.end()) return "not complete";
    const Error* e = std::get_if<Error>(&found->second);
    return e == nullptr ? "" : e->message();
  }
  Protocol& worker(WorkerId w) { return *workers[w]; }
  HandleId create(WorkerId w, WorkerId owner) { return worker(w).create(now, owner, {}, {}); }

  std::vector<std::unique_ptr<Protocol>> workers;
  std::vector<bool> dead;  // packets to it vanish
  Time now{0};
  bool finishes_at_once = true;
  std::vector<std::pair<WorkerId, Bytes>> in_flight, sent;
  std::map<std::pair<WorkerId, WaiterId>, Outcome> outcomes;
  std::vector<RRefId> freed;
  std::vector<std::pair<WorkerId, effect::Run>> runs;
  std::vector<std::pair<WorkerId, effect::Serve>> serves;
};

Bytes packet_from(WorkerId from, WorkerId to, std::vector<Packet::Numbered> messages) {
  Packet packet{.session = 7, .from = from, .to = to, .from_incarnation = 1};
  packet.messages = std::move(messages);
  return encode(packet);
}

TEST(Protocol, FetchAfterDropIsAnError) {
  Cluster c;
  const HandleId h = c.create(0, 1);
  c.worker(0).drop(c.now, h);
  const WaiterId waiter = c.worker(0).fetch(c.now, h, kNever);
  c.run();
  EXPECT_EQ(c.error_of(0, waiter), "a remote reference is used after it was dropped");
  EXPECT_EQ(c.freed.size(), 1u);
}

// PyTorch's issue 40141: there, the fetch waits for ever.
TEST(Protocol, FetchOfWhatTheOwnerHasDeletedIsAnError) {
  Cluster c;
  const HandleId h = c.create(0, 1);
  c.run();
  c.worker(0).drop(c.now, h);
  c.run();
  ASSERT_EQ(c.freed.size(), 1u);
  // A fetch that no honest worker sends any more, with a number that is still to come.
  c.worker(1).receive(
      c.now, packet_from(0, 1, {{500, {.kind = Message::Kind::kFetch, .request = 9, .rref = c.freed[0]}}}));
  c.step(1);
  const Packet reply = decode_packet(c.sent.back().second);
  ASSERT_EQ(reply.messages.size(), 1u);
  ASSERT_TRUE(reply.messages[0].message.error);
  EXPECT_EQ(reply.messages[0].message.error->message(), "object 1:0:0 is deleted");
}

TEST(Protocol, DeleteBeforeCreateRunsTheFunctionAndFreesItsResult) {
  Cluster c;
  const Bytes early =
      packet_from(0, 1, {{1, {.kind = Message::Kind::kDelete, .rref = {1, 0, 0}, .fork = {0, 0}}}});
  c.worker(1).receive(c.now, early);
  EXPECT_EQ(c.worker(1).counts().expected, 1u);
  EXPECT_EQ(c.worker(1).counts().early, 1u);
  EXPECT_THAT(
      c.worker(1).report(),
      HasSubstr("object 1:0:0, expected of worker 0: 0 held here, fork 0:0 deleted by worker 0 before"));
  c.worker(1).receive(c.now, packet_from(0, 1, {{0, {.kind = Message::Kind::kCreate}}}));
  c.run();
  EXPECT_EQ(c.runs.size(), 1u);
  EXPECT_EQ(c.freed.size(), 1u);
  EXPECT_EQ(c.worker(1).counts().objects, 0u);
  EXPECT_EQ(c.worker(1).counts().early, 0u);
}

TEST(Protocol, FetchBeforeCreateWaitsForIt) {
  Cluster c;
  c.worker(1).receive(
      c.now, packet_from(2, 1, {{0, {.kind = Message::Kind::kFetch, .request = 1, .rref = {1, 0, 0}}}}));
  EXPECT_TRUE(c.serves.empty());
  EXPECT_THAT(c.worker(1).report(), HasSubstr("worker 2 waits for it"));
  c.worker(1).receive(c.now, packet_from(0, 1, {{0, {.kind = Message::Kind::kCreate}}}));
  c.step(1);
  EXPECT_EQ(c.serves.size(), 1u);
}

TEST(Protocol, FetchOfWhatALostWorkerWasToCreateIsAnError) {
  Cluster c;
  c.workers[1]->receive(
      c.now, packet_from(2, 1, {{0, {.kind = Message::Kind::kFetch, .request = 1, .rref = {1, 0, 0}}}}));
  c.worker(1).lose(c.now, 0, "it died");
  c.step(1);
  bool is_told = false;
  for (const auto& [to, packet] : c.sent)
    for (const auto& m : decode_packet(packet).messages)
      if (m.message.error) {
        is_told = true;
        EXPECT_EQ(m.message.error->message(), "object 1:0:0 was never created: worker 0 is lost: it died");
      }
  EXPECT_TRUE(is_told);
  EXPECT_EQ(c.worker(1).counts().expected, 0u);
}

TEST(Protocol, WorkerThatNeverAnswersIsAnErrorAtEveryWaiterAndHandle) {
  Cluster c;
  c.dead[1] = true;
  const HandleId h = c.create(0, 1);
  const WaiterId call = c.worker(0).call(c.now, 1, {}, {}, kNever),
                 fetch = c.worker(0).fetch(c.now, h, kNever);
  c.run();
  const std::string expected = "worker 1 is lost: it has not answered worker 0 in 3 tries";
  EXPECT_EQ(c.error_of(0, call), expected);
  EXPECT_EQ(c.error_of(0, fetch), expected);
  EXPECT_EQ(c.worker(0).error_of(h)->message(), expected);
  // Whatever comes later is refused at once.
  const WaiterId later = c.worker(0).fetch(c.now, h, kNever),
                 call_later = c.worker(0).call(c.now, 1, {}, {}, kNever);
  c.step(0);
  EXPECT_EQ(c.error_of(0, later), expected);
  EXPECT_EQ(c.error_of(0, call_later), expected);
  c.worker(0).drop(c.now, h);
  EXPECT_TRUE(c.worker(0).counts().is_at_rest());
}

// It has acknowledged the call, so that nothing is sent again: only a heartbeat finds out.
TEST(Protocol, WorkerThatDiesWhileItRunsIsFoundByHeartbeat) {
  Cluster c(3, 1s);
  c.finishes_at_once = false;
  const WaiterId call = c.worker(0).call(c.now, 1, {}, {}, kNever);
  c.run(500ms);
  ASSERT_EQ(c.runs.size(), 1u);
  EXPECT_EQ(c.worker(0).counts().unacknowledged, 0u);
  c.dead[1] = true;
  c.run(100s);
  EXPECT_EQ(c.error_of(0, call), "worker 1 is lost: it has not answered worker 0 in 3 tries");
}

TEST(Protocol, WorkerThatRunsForLongIsNotLost) {
  Cluster c(3, 1s);
  c.finishes_at_once = false;
  const WaiterId call = c.worker(0).call(c.now, 1, {}, {}, kNever);
  c.run(1000s);
  EXPECT_EQ(c.error_of(0, call), "not complete");
  c.worker(1).finish(c.now, c.runs[0].second.service, Value{});
  c.run();
  EXPECT_EQ(c.error_of(0, call), "");
}

TEST(Protocol, ObjectIsHeldUntilWhatWasAskedOfItIsServed) {
  Cluster c;
  c.finishes_at_once = false;
  const HandleId h = c.create(0, 1);
  c.run();
  c.worker(1).finish(c.now, c.runs.at(0).second.service, Value{});
  const WaiterId fetch = c.worker(0).fetch(c.now, h, kNever);
  c.worker(0).drop(c.now, h);
  c.run();
  EXPECT_EQ(c.worker(1).counts().forks, 0u);  // it is deleted already
  EXPECT_TRUE(c.freed.empty());
  c.worker(1).finish(c.now, c.serves.at(0).second.service, Value{});
  c.run();
  EXPECT_EQ(c.error_of(0, fetch), "");
  EXPECT_EQ(c.freed.size(), 1u);
}

TEST(Protocol, DeadlineIsAnErrorAndTheLateReplyIsDropped) {
  Cluster c;
  c.finishes_at_once = false;
  const HandleId h = c.create(0, 1);
  c.run();
  const WaiterId waiter = c.worker(0).fetch(c.now, h, c.now + 50ms);
  c.run();
  EXPECT_EQ(c.error_of(0, waiter), "worker 1 has not replied in time");
  const WaiterId call = c.worker(0).call(c.now, 2, {}, {}, c.now + 50ms);
  c.run();
  ASSERT_EQ(c.runs.size(), 2u);
  // The reply brings a reference, which is deleted, for nobody will.
  RRefId rref;
  const HandleId own = c.worker(2).own(rref);
  c.worker(2).finish(c.now, c.runs[1].second.service, Value{{}, {own}});
  c.worker(2).drop(c.now, own);
  c.run();
  EXPECT_EQ(c.error_of(0, call), "worker 2 has not replied in time");
  EXPECT_EQ(c.freed, std::vector<RRefId>{rref});
}

TEST(Protocol, ShutdownWhileThingsAreHeldEndsWithAnErrorAtEveryUser) {
  Cluster c;
  const HandleId of_one = c.create(0, 1);
  RRefId rref;
  const HandleId own = c.worker(1).own(rref);
  c.finishes_at_once = false;
  c.worker(1).call(c.now, 2, {}, std::span(&own, 1), kNever);
  c.run();
  ASSERT_EQ(c.runs.size(), 2u);
  const HandleId at_two = c.runs[1].second.call.references[0];
  const WaiterId from_two = c.worker(2).fetch(c.now, at_two, kNever);
  c.run();
  EXPECT_THAT(c.worker(1).report(), HasSubstr("object 1:1:0, here: 2 held here, fork 1:0 held by worker 2"));
  c.worker(1).shutdown(c.now);
  c.run();
  EXPECT_EQ(c.worker(1).state(), State::kClosed);
  EXPECT_TRUE(c.worker(1).counts().is_at_rest());
  EXPECT_EQ(c.freed.size(), 2u);
  EXPECT_EQ(c.error_of(2, from_two), "worker 1 has shut down");
  EXPECT_EQ(c.worker(0).error_of(of_one)->message(), "worker 1 has shut down");
  EXPECT_EQ(c.worker(2).error_of(at_two)->message(), "worker 1 has shut down");
  EXPECT_THAT(c.worker(0).report(), HasSubstr("worker 1: worker 1 has shut down"));
}

TEST(Protocol, ShutDownWorkerBeginsNothing) {
  Cluster c;
  c.worker(0).shutdown(c.now);
  EXPECT_EQ(c.worker(0).state(), State::kClosed);  // it has spoken to nobody
  const HandleId h = c.create(0, 1);
  const WaiterId call = c.worker(0).call(c.now, 1, {}, {}, kNever),
                 fetch = c.worker(0).fetch(c.now, h, kNever);
  c.run();
  EXPECT_EQ(c.error_of(0, call), "worker 0 has shut down");
  EXPECT_EQ(c.error_of(0, fetch), "worker 0 has shut down");
  EXPECT_TRUE(c.runs.empty());
}

TEST(Protocol, WorkerThatHasShutDownTellsWhoSpeaksToItLater) {
  Cluster c;
  c.worker(1).shutdown(c.now);
  const WaiterId call = c.worker(0).call(c.now, 1, {}, {}, kNever);
  c.run();
  EXPECT_EQ(c.error_of(0, call), "worker 1 has shut down");
  EXPECT_EQ(c.now, 0ms);  // not when retries were exhausted
}

TEST(Protocol, TwoShutDownAtOnce) {
  Cluster c;
  c.create(0, 1);
  c.create(1, 0);
  c.run();
  c.worker(0).shutdown(c.now);
  c.worker(1).shutdown(c.now);
  c.run();
  EXPECT_EQ(c.worker(0).state(), State::kClosed);
  EXPECT_EQ(c.worker(1).state(), State::kClosed);
  EXPECT_EQ(c.freed.size(), 2u);
}

TEST(Protocol, WorkerThatWasDeclaredLostIsOutOfTheCluster) {
  Cluster c;
  const HandleId h = c.create(0, 1);
  c.run();
  c.worker(1).lose(c.now, 0, "its machine is on fire");
  EXPECT_EQ(c.freed.size(), 0u);
  c.step(1);
  EXPECT_EQ(c.freed.size(), 1u);
  const WaiterId fetch = c.worker(0).fetch(c.now, h, kNever);
  c.run();
  EXPECT_EQ(c.worker(0).state(), State::kExpelled);
  EXPECT_EQ(c.error_of(0, fetch), "worker 0 is out of the cluster: worker 1 has declared it lost");
  const WaiterId later = c.worker(0).call(c.now, 2, {}, {}, kNever);
  c.step(0);
  EXPECT_EQ(c.error_of(0, later), "worker 0 is out of the cluster: others have declared it lost");
}

TEST(Protocol, ProcessThatWasStartedAgainIsAStranger) {
  Cluster c;
  const HandleId h = c.create(0, 1);
  c.run();
  c.workers[1] =
      std::make_unique<Protocol>(ProtocolOptions{.self = 1, .n_workers = 3, .session = 7, .incarnation = 2});
  const WaiterId fetch = c.worker(0).fetch(c.now, h, kNever);
  c.run(10s);
  EXPECT_EQ(c.error_of(0, fetch), "worker 1 is lost: another process has its place");
  EXPECT_TRUE(c.serves.empty());
}

TEST(Protocol, PacketsOfAnotherSessionAreNotLookedAt) {
  Cluster c;
  Packet packet{.session = 8, .from = 0, .to = 1, .from_incarnation = 1};
  packet.messages.push_back({0, {.kind = Message::Kind::kCall}});
  c.worker(1).receive(c.now, encode(packet));
  c.step(1);
  EXPECT_TRUE(c.runs.empty());
  EXPECT_TRUE(c.sent.empty());
}

TEST(Protocol, FunctionRunsOnceHoweverOftenItsCallComes) {
  Cluster c;
  c.worker(0).call(c.now, 1, {}, {}, kNever);
  c.step(0);
  const Bytes packet = c.in_flight.at(0).second;
  c.run();
  for (int i = 0; i < 5; ++i) c.worker(1).receive(c.now, packet);
  c.run();
  EXPECT_EQ(c.runs.size(), 1u);
}

TEST(Protocol, MessagesThatNoHonestWorkerSendsAreCounted) {
  Cluster c;
  const RRefId not_mine{2, 0, 0}, mine{1, 0, 40};
  c.worker(1).receive(
      c.now,
      packet_from(
          0, 1,
          {{0, {.kind = Message::Kind::kDelete, .rref = not_mine, .fork = {0, 0}}},
           {1, {.kind = Message::Kind::kAddFork, .rref = mine, .worker = 1}},
           {2, {.kind = Message::Kind::kAddFork, .rref = {1, 77, 0}, .worker = 2}},
           {3, {.kind = Message::Kind::kDelete, .rref = mine, .fork = {1, 5}}},
           {4, {.kind = Message::Kind::kFetch, .rref = not_mine}},
           {5, {.kind = Message::Kind::kLost, .worker = 77}},
           {6, {.kind = Message::Kind::kCall, .references = {{Reference::Kind::kFork, mine, {0, 9}}}}}}));
  EXPECT_EQ(c.worker(1).counts().malformed, 7u);
  EXPECT_EQ(c.worker(1).counts().objects + c.worker(1).counts().expected, 0u);
}

TEST(Protocol, ForkIsDeletedByItsHolderOnly) {
  Cluster c;
  c.create(0, 1);
  c.run();
  c.worker(1).receive(
      c.now, packet_from(2, 1, {{0, {.kind = Message::Kind::kDelete, .rref = {1, 0, 0}, .fork = {0, 0}}}}));
  EXPECT_EQ(c.worker(1).counts().forks, 1u);
  EXPECT_EQ(c.worker(1).counts().malformed, 1u);
}

TEST(Protocol, RefusesWorkersThatThereAreNot) {
  Cluster c;
  const WaiterId far = c.worker(0).call(c.now, 3, {}, {}, kNever),
                 self = c.worker(0).call(c.now, 0, {}, {}, kNever);
  c.step(0);
  EXPECT_EQ(c.error_of(0, far), "worker 3 is none that worker 0 can send to; there are 3");
  EXPECT_EQ(c.error_of(0, self), "worker 0 is none that worker 0 can send to; there are 3");
}

// The parent dies when the owner knows of the child, and the callee does not: nobody would ever delete it.
TEST(Protocol, ChildWhoseParentDiedBeforeItCameIsDeleted) {
  Cluster c;
  const HandleId h = c.create(0, 1);
  c.run();
  c.worker(0).call(c.now, 2, {}, std::span(&h, 1), kNever);
  c.now += 10ms;  // the owner is told a little later
  c.step(0);
  std::erase_if(c.in_flight, [](const auto& p) { return p.first == 2; });
  c.dead[0] = true;
  for (auto& [to, packet] : std::exchange(c.in_flight, {})) c.worker(to).receive(c.now, packet);
  ASSERT_EQ(c.worker(1).counts().forks, 2u);
  c.worker(1).lose(c.now, 0, "it died");
  c.run();
  EXPECT_EQ(c.freed.size(), 1u);
  EXPECT_TRUE(c.worker(1).counts().is_at_rest());
  EXPECT_TRUE(c.worker(2).counts().is_at_rest());
}

}  // namespace
}  // namespace coppice::executor::remote
