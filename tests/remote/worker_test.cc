// Workers on a simulated network: PyTorch's tests of remote references, said anew, and others.
#include "executor/remote/worker.h"

#include <gmock/gmock.h>

#include <map>

#include "tests/remote/simulated_cluster.h"

namespace coppice::executor::remote {
namespace {

using testing::HasSubstr;

constexpr const char* kText = R"(
  func @add(%a: i32, %b: i32) -> i32 { %c = add.i32 (%a, %b) return %c }
  func @divide(%a: i32, %b: i32) -> i32 { %c = div.i32 (%a, %b) return %c }
  func @fetch(%r: remote.i32) -> i32 { %v = fetch (%r) return %v }
  func @same(%r: remote.i32) -> remote.i32 { return %r }
  func @fetch_float(%r: remote.f32) -> f32 { %v = fetch.f32 (%r) return %v }
  func @nothing() { return }
  func @two(%a: i32) -> (i32, i32) { return %a, %a }
  func @forward(%r: remote.i32, %to: i32) -> i32 { %v = forward (%r, %to) return %v }
  func @make(%on: i32, %v: i32) -> remote.i32 { %r = make (%on, %v) return %r }
  func @wait() -> i32 { %v = wait return %v }
)";

class WorkerTest : public testing::Test {
 public:
  explicit WorkerTest(const SimulatedCluster::Options& options = {.n_workers = 4},
                      SimulatedNetwork::Judge judge = SimulatedCluster::one_ms)
      : cluster(options, std::move(judge)) {
    cluster.registry.add("fetch", [](const RemoteRef<int32_t>& r) { return r.to_here(); });
    cluster.registry.add("fetch.f32", [](const RemoteRef<float>& r) { return r.to_here(); });
    // Passes a reference on to worker `to`, which passes it on to `to - 1`, ...; worker 0 fetches it.
    cluster.registry.add("forward", [this](const RemoteRef<int32_t>& r, int32_t to) {
      return to < 0 ? r.to_here()
                    : at(self_of(r))
                          .rpc_async<int32_t>(static_cast<WorkerId>(to), {module, "forward"}, r, to - 1);
    });
    cluster.registry.add("make", [this](int32_t on, int32_t v) {
      return at(2).remote<int32_t>(static_cast<WorkerId>(on), {module, "add"}, v, 0);
    });
    cluster.registry.add("wait", [this] {
      waiting.push_back(make_promise<int32_t>());
      return waiting.back().value();
    });
    module = cluster.load(kText);
  }
  // Everything that tests hold is gone, and so is everything that workers hold.
  void TearDown() override {
    cluster.run();
    if (expects_rest) cluster.expect_rest();
  }
  Worker& at(WorkerId w) { return cluster.at(w); }
  static WorkerId self_of(const RemoteRef<int32_t>& r) { return r.get_lease()->core().self(); }
  Callee callee(const std::string& function) const { return {module, function}; }
  template <class T>
  std::string error_of(const AsyncValueRef<T>& value) {
    if (!value.is_available()) return "not available";
    return value.is_error() ? value.error().what() : "";
  }

  SimulatedCluster cluster;
  Hash128 module;
  std::vector<Promise<int32_t>> waiting;
  bool expects_rest = true;
};

TEST_F(WorkerTest, RemoteAndToHereBringTheResult) {
  const auto sum = at(0).remote<int32_t>(1, callee("add"), 40, 2);
  EXPECT_EQ(sum.owner(), 1u);
  EXPECT_FALSE(sum.is_owner());
  const AsyncValueRef<int32_t> here = sum.to_here(), again = sum.to_here();
  EXPECT_FALSE(here.is_available());
  cluster.run();
  EXPECT_EQ(here.get(), 42);
  EXPECT_EQ(again.get(), 42);
  EXPECT_EQ(cluster.clock.now() / 1ms, 8);  // two packets of 1 ms bring it; the rest are acknowledgements
}

// Tail and head of each packet, as a trace has them.
TEST_F(WorkerTest, TracesMessagesAsArrows) {
  Trace::start_live();
  {
    const auto sum = at(0).remote<int32_t>(1, callee("add"), 40, 2);
    const AsyncValueRef<int32_t> here = sum.to_here();
    cluster.run();
    EXPECT_EQ(here.get(), 42);
  }
  cluster.run();
  const TraceRecord record = Trace::take();
  Trace::stop();
  std::map<uint32_t, std::string> rows;
  for (const TraceRecord::Row& row : record.rows) rows[row.id] = row.name;
  std::map<uint64_t, std::string> tails;
  std::vector<std::string> arrows;
  for (const TraceEvent& e : record.events) {
    if (e.arrow.end == TraceArrow::End::kTail)
      tails[e.arrow.number] = rows[e.row] + " " + std::string(e.name);
  }
  for (const TraceEvent& e : record.events) {
    if (e.arrow.end != TraceArrow::End::kHead) continue;
    arrows.push_back(tails[e.arrow.number] + " -> " + rows[e.row] + " " + std::string(e.name));
  }
  EXPECT_THAT(arrows, testing::Contains("messages of worker 0 to worker 1: create, fetch -> "
                                        "messages of worker 1 from worker 0: create, fetch"));
  EXPECT_THAT(arrows, testing::Contains("messages of worker 1 to worker 0: reply -> "
                                        "messages of worker 0 from worker 1: reply"));
  EXPECT_THAT(arrows, testing::Each(testing::StartsWith("messages of worker")));
  EXPECT_EQ(arrows.size(), tails.size());
}

TEST_F(WorkerTest, RemoteToItself) {
  const auto sum = at(0).remote<int32_t>(0, callee("add"), 40, 2);
  EXPECT_TRUE(sum.is_owner());
  cluster.run();
  EXPECT_EQ(sum.to_here().get(), 42);
  EXPECT_EQ(sum.local_value().get(), 42);
  const auto called = at(0).rpc_async<int32_t>(0, callee("fetch"), sum);
  cluster.run();
  EXPECT_EQ(called.get(), 42);
  EXPECT_EQ(cluster.network().n_sent(), 0u);
}

TEST_F(WorkerTest, RpcBringsTheResultOrChain) {
  const auto sum = at(0).rpc_async<int32_t>(1, callee("add"), 40, 2);
  const auto done = at(0).rpc_async<Chain>(1, callee("nothing"));
  cluster.run();
  EXPECT_EQ(sum.get(), 42);
  EXPECT_TRUE(done.is_concrete());
}

TEST_F(WorkerTest, ReferenceIsArgumentForOwnerAndOthers) {
  const auto sum = at(0).remote<int32_t>(1, callee("add"), 40, 2);
  const auto at_owner = at(0).rpc_async<int32_t>(1, callee("fetch"), sum);
  const auto at_other = at(0).rpc_async<int32_t>(2, callee("fetch"), sum);
  const auto there = at(0).remote<int32_t>(3, callee("fetch"), sum);
  const auto here = there.to_here();
  cluster.run();
  EXPECT_EQ(at_owner.get(), 42);
  EXPECT_EQ(at_other.get(), 42);
  EXPECT_EQ(here.get(), 42);
}

TEST_F(WorkerTest, CalleeUsesReferenceThatItsCallerHasDropped) {
  AsyncValueRef<int32_t> result;
  {
    const auto sum = at(0).remote<int32_t>(1, callee("add"), 40, 2);
    result = at(0).rpc_async<int32_t>(2, callee("fetch"), sum);
  }
  cluster.run();
  EXPECT_EQ(result.get(), 42);
}

TEST_F(WorkerTest, CallReturnsReferenceOfAThirdsObject) {
  const auto ref = at(0).rpc_async<RemoteRef<int32_t>>(2, callee("make"), 1, 42);
  cluster.run();
  ASSERT_EQ(error_of(ref), "");
  EXPECT_EQ(ref->owner(), 1u);
  const auto here = ref->to_here();
  cluster.run();
  EXPECT_EQ(here.get(), 42);
}

TEST_F(WorkerTest, ReferenceComesHomeAsTheOwnersOwn) {
  const auto mine = at(0).own(make_available_async_value<int32_t>(7));
  const auto back = at(0).rpc_async<RemoteRef<int32_t>>(1, callee("same"), mine);
  cluster.run();
  ASSERT_EQ(error_of(back), "");
  EXPECT_TRUE(back->is_owner());
  EXPECT_EQ(*back, mine);
  EXPECT_EQ(back->local_value().get_async_value(), mine.local_value().get_async_value());
}

TEST_F(WorkerTest, ReferenceIsForwardedAlongAChainOfWorkers) {
  const auto mine = at(3).own(make_available_async_value<int32_t>(7));
  // Worker 0 has it of 1, which has it of 2, which has it of the owner.
  const auto result = at(3).rpc_async<int32_t>(2, callee("forward"), mine, 1);
  cluster.run();
  EXPECT_EQ(result.get(), 7);
}

TEST_F(WorkerTest, ObjectThatComesLaterIsFetchedThen) {
  auto promise = make_promise<int32_t>();
  auto mine = std::make_optional(at(0).own(promise.value()));
  const auto result = at(0).rpc_async<int32_t>(1, callee("fetch"), *mine);
  mine.reset();
  cluster.run();
  EXPECT_FALSE(result.is_available());
  promise.emplace(9);
  cluster.run();
  EXPECT_EQ(result.get(), 9);
}

TEST_F(WorkerTest, LocalValueOfAUserIsRefused) {
  const auto sum = at(0).remote<int32_t>(1, callee("add"), 40, 2);
  EXPECT_EQ(error_of(sum.local_value()),
            "object 1:0:0 is on worker 1, and this is worker 0: to_here() brings its value");
}

TEST_F(WorkerTest, ErrorsKeepTheirPathOverTheWire) {
  const auto called = at(0).rpc_async<int32_t>(1, callee("divide"), 7, 0);
  const auto object = at(0).remote<int32_t>(2, callee("divide"), 7, 0);
  const auto here = object.to_here();
  const auto by_another = at(0).rpc_async<int32_t>(3, callee("fetch"), object);
  cluster.run();
  EXPECT_EQ(error_of(called), "7 divided by zero [@divide div.i32 -> worker 1 @divide]");
  EXPECT_THAT(error_of(here), HasSubstr("7 divided by zero [@divide div.i32 -> worker 2]"));
  EXPECT_THAT(error_of(by_another),
              HasSubstr("7 divided by zero [@divide div.i32 -> worker 2 -> worker 3 @fetch]"));
  ASSERT_TRUE(called.is_error());
  EXPECT_EQ(called.error().code(), ErrorCode::kNumeric);
}

TEST_F(WorkerTest, WrongCallsAreErrorsAtOnce) {
  EXPECT_EQ(error_of(at(0).rpc_async<int32_t>(1, callee("add"), 1)),
            "@add: 1 arguments are given, and it takes 2");
  EXPECT_EQ(error_of(at(0).rpc_async<int32_t>(1, callee("add"), 1, 2.5f)),
            "@add: argument 2 must be i32, and is f32");
  EXPECT_EQ(error_of(at(0).rpc_async<float>(1, callee("add"), 1, 2)),
            "@add: a result of f32 is wanted, and it returns (i32)");
  EXPECT_EQ(error_of(at(0).rpc_async<int32_t>(1, callee("two"), 1)),
            "@two: a result of i32 is wanted, and it returns (i32, i32)");
  EXPECT_THAT(error_of(at(0).rpc_async<int32_t>(1, callee("ad"), 1, 2)), HasSubstr("@ad"));
  EXPECT_THROW(at(0).remote<int32_t>(1, callee("add"), 1), Error);
  struct Unknown {};
  EXPECT_THAT(error_of(at(0).rpc_async<int32_t>(1, {Hash128{1, 2}, "add"}, Unknown())),
              HasSubstr("cannot be sent: register a codec for it"));
  EXPECT_EQ(cluster.network().n_sent(), 0u);
}

TEST_F(WorkerTest, ModuleThatTheOtherLacksIsAnError) {
  const auto result = at(0).rpc_async<int32_t>(1, {Hash128{1, 2}, "add"}, 1, 2);
  const auto object = at(0).remote<int32_t>(1, {Hash128{1, 2}, "add"}, 1, 2);
  const auto here = object.to_here();
  cluster.run();
  const std::string message = "worker 1 has not loaded module 00000000000000020000000000000001, of @add";
  EXPECT_EQ(error_of(result), message + " [worker 1 @add]");
  EXPECT_EQ(error_of(here), message + " [worker 1]");
}

TEST_F(WorkerTest, ReferencesTypeIsChecked) {
  const auto sum = at(0).remote<int32_t>(1, callee("add"), 40, 2);
  EXPECT_EQ(error_of(at(0).rpc_async<float>(2, callee("fetch_float"), sum)),
            "@fetch_float: argument 1 must be remote.f32, and is remote.i32");
  const auto wrong = RemoteRef<float>(sum.get_lease()).to_here();
  // Nobody has looked at this one before it is at the callee, for the caller has not loaded the module.
  const auto late =
      cluster.only_on_1(R"(func @fetch_it(%r: remote.f32) -> f32 { %v = fetch.f32 (%r) return %v })");
  const auto refused = at(0).rpc_async<float>(1, {late, "fetch_it"}, sum);
  cluster.run();
  EXPECT_EQ(error_of(wrong), "a value of type f32 was to come, and i32 has");
  EXPECT_THAT(error_of(refused), HasSubstr("argument 1 of @fetch_it must be remote.f32, and is remote.i32"));
}

TEST_F(WorkerTest, TimeoutIsAnErrorAndTheResultMayBeFetchedAgain) {
  const auto slow = at(0).remote<int32_t>(1, callee("wait"));
  const auto first = slow.to_here(10ms);
  cluster.run();
  EXPECT_EQ(error_of(first), "worker 1 has not replied in time");
  const auto second = slow.to_here();
  waiting.at(0).emplace(5);
  cluster.run();
  EXPECT_EQ(second.get(), 5);
}

TEST_F(WorkerTest, ReportSaysWhatIsHeldWhere) {
  auto mine = std::make_optional(at(0).own(make_available_async_value<int32_t>(7)));
  const auto slow = at(0).rpc_async<int32_t>(1, callee("wait"));
  const auto ref = at(0).rpc_async<RemoteRef<int32_t>>(2, callee("make"), 1, 42);
  auto shared = std::make_optional(at(0).rpc_async<RemoteRef<int32_t>>(3, callee("same"), *mine));
  cluster.run();
  EXPECT_EQ(at(0).report(),
            "object 0:0:0, here: 2 held here\n"
            "object 1:2:0 on worker 1: held here as fork 2:1\n"
            "call 1: waits for worker 1\n");
  EXPECT_EQ(at(1).report(),
            "object 1:2:0, here: 0 held here, fork 2:1 held by worker 0\n"
            "request of worker 0: runs here\n");
  waiting.at(0).emplace(5);
  mine.reset();
  shared.reset();
}

TEST_F(WorkerTest, ShutdownTellsEverybody) {
  const auto of_one = at(0).remote<int32_t>(1, callee("add"), 40, 2);
  const auto slow = at(0).rpc_async<int32_t>(1, callee("wait"));
  cluster.run();
  const auto closed = at(1).shutdown();
  EXPECT_FALSE(closed.is_available());
  const auto late = of_one.to_here();
  cluster.run();
  EXPECT_TRUE(closed.is_concrete());
  EXPECT_EQ(at(1).state(), Protocol::State::kClosed);
  EXPECT_EQ(error_of(late), "worker 1 has shut down");
  EXPECT_EQ(error_of(slow), "worker 1 has shut down");
  EXPECT_EQ(error_of(at(1).rpc_async<int32_t>(0, callee("add"), 1, 2)), "not available");
  waiting.at(0).emplace(1);
}

TEST_F(WorkerTest, CircularReferencesEndWithShutdown) {
  // Each worker's object is a reference to the other's.
  cluster.codecs.add_remote<RemoteRef<int32_t>>();
  auto promise = make_promise<int32_t>();
  const auto mine = at(0).own(promise.value());
  auto keeper = at(1).own(
      make_available_async_value<RemoteRef<int32_t>>(at(1).own(make_available_async_value<int32_t>(1))));
  keeper = {};
  cluster.run();
  at(0).shutdown();
  at(1).shutdown();
  cluster.run();
  EXPECT_EQ(at(0).state(), Protocol::State::kClosed);
  EXPECT_EQ(at(1).state(), Protocol::State::kClosed);
}

// A third of all packets is lost, and many come twice.
class LossyWorkerTest : public WorkerTest {
 public:
  LossyWorkerTest()
      : WorkerTest({.n_workers = 4, .channel = {.first_retry = 20ms, .backoff = 1.1, .most_sends = 40}},
                   RandomFaults(11, {.lose = 0.33, .repeat = 0.3})) {}
};

TEST_F(LossyWorkerTest, EverythingIsAsOnAGoodNetwork) {
  std::vector<AsyncValueRef<int32_t>> results;
  std::vector<int32_t> expected;
  for (int i = 0; i < 20; ++i) {
    const auto sum = at(i % 4).remote<int32_t>(static_cast<WorkerId>((i + 1) % 4), callee("add"), i, 100);
    results.push_back(sum.to_here());
    results.push_back(at(i % 4).rpc_async<int32_t>(static_cast<WorkerId>((i + 2) % 4), callee("fetch"), sum));
    results.push_back(
        at(i % 4).rpc_async<int32_t>(static_cast<WorkerId>((i + 3) % 4), callee("forward"), sum, 3));
    expected.insert(expected.end(), 3, i + 100);
  }
  cluster.run();
  for (size_t i = 0; i < results.size(); ++i) {
    ASSERT_EQ(error_of(results[i]), "") << i;
    EXPECT_EQ(results[i].get(), expected[i]) << i;
  }
}

TEST_F(WorkerTest, LastDropOnlyEnqueues) {
  auto sum = std::make_optional(at(0).remote<int32_t>(1, callee("add"), 40, 2));
  cluster.run();
  EXPECT_EQ(at(1).counts().objects, 1u);
  const uint64_t n_sent = cluster.network().n_sent();
  sum.reset();
  EXPECT_EQ(cluster.network().n_sent(), n_sent);
  EXPECT_EQ(at(0).counts().handles, 1u);
  cluster.run();
  EXPECT_EQ(at(0).counts().handles, 0u);
  EXPECT_EQ(at(1).counts().objects, 0u);
}

}  // namespace
}  // namespace coppice::executor::remote
