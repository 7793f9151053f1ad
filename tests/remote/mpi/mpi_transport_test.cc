// Packets and workers over MPI. Each test runs on all ranks at once: `mpiexec -n 3 mpi_transport_tests`. With
// --funneled MPI is initialised for the main thread alone.
//
// Seen to fail: tags of large packets that do not count, and a receive that is posted again before its bytes
// are copied (other bytes); a packet that is dropped, and a wake() that only notifies (they hang); bytes that
// are freed before they are sent (it hangs among thousands of calls); ranks that do not agree on lengths
// ("message truncated"); an end that does not take what comes (a segmentation fault).
#include "executor/remote/mpi/mpi_transport.h"

#include <gmock/gmock.h>

#include <cstring>
#include <map>
#include <random>

#include "core/count_down.h"
#include "core/error.h"
#include "executor/remote/driver.h"
#include "executor/remote/mpi/mpi_rank_link.h"
#include "executor/remote/mpi/mpi_session.h"
#include "tests/remote/mpi/mpi_member.h"

namespace coppice::executor::remote {
namespace {

using testing::HasSubstr;

bool is_funneled = false;

class Mpi : public testing::Test {
 protected:
  void SetUp() override {
    if (is_funneled) GTEST_SKIP() << "of a program that may call MPI on any thread";
  }
};
class MpiFunneled : public testing::Test {
 protected:
  void SetUp() override {
    if (!is_funneled) GTEST_SKIP() << "of a program that may call MPI on the main thread alone";
  }
};

// A packet says who has sent it as which, where it has room; all else follows from that.
Bytes packet_of(WorkerId from, WorkerId to, uint32_t index, size_t size) {
  Bytes bytes(size);
  std::mt19937 random(from * 1000 + to * 100 + index);
  for (size_t i = 0; i + 4 <= size; i += 4) {
    const uint32_t word = i == 0 ? from : i == 4 ? index : static_cast<uint32_t>(random());
    std::memcpy(bytes.data() + i, &word, 4);
  }
  return bytes;
}

void exchange_every_length(const MpiTransportOptions& options, const std::vector<size_t>& sizes) {
  MpiTransport transport(MPI_COMM_WORLD, options);
  const WorkerId self = transport.rank(), n = transport.n_ranks();
  for (WorkerId by = 1; by < n; ++by)
    for (uint32_t i = 0; i < sizes.size(); ++i)
      transport.send((self + by) % n, packet_of(self, (self + by) % n, i, sizes[i]));
  std::map<std::pair<WorkerId, uint32_t>, int> seen;
  for (size_t n_come = 0; n_come < (n - 1) * sizes.size();) {
    const auto packet = transport.receive();
    if (!packet) {
      transport.wait(1s);
      continue;
    }
    ++n_come;
    if (packet->size() < 8) continue;
    uint32_t from = 0, index = 0;
    std::memcpy(&from, packet->data(), 4);
    std::memcpy(&index, packet->data() + 4, 4);
    ASSERT_LT(from, n);
    ASSERT_LT(index, sizes.size());
    EXPECT_TRUE(*packet == packet_of(from, self, index, sizes[index])) << from << " " << index;
    ++seen[{from, index}];
  }
  for (const auto& [key, times] : seen) EXPECT_EQ(times, 1) << key.first << " " << key.second;
  EXPECT_EQ(seen.size(), (n - 1) * static_cast<size_t>(std::count_if(sizes.begin(), sizes.end(),
                                                                     [](size_t size) { return size >= 8; })));
  EXPECT_EQ(transport.counts().lost, 0u);
  EXPECT_EQ(transport.counts().sent, transport.counts().received);
}

TEST_F(Mpi, EveryLengthFromNothingToTwentyMegabytesGoesBothWaysAtOnce) {
  const size_t eager = MpiTransportOptions{}.eager_bytes;
  exchange_every_length({},
                        {0, 1, 8, 20'000'000, eager - 1, eager, eager + 1, 65536, 1'000'000, 20'000'001, 12});
}
TEST_F(Mpi, LargePacketsGoInPartsAndLittleRingsServeManyMessages) {
  std::vector<size_t> sizes;
  for (size_t i = 0; i < 300; ++i) sizes.push_back(i * i);
  exchange_every_length({.eager_bytes = 100, .part_bytes = 1000, .n_receives = 3, .most_pending = 100'000},
                        sizes);
}
TEST_F(Mpi, RankZeroSaysHowLongMessagesAre) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const size_t mine = 64 << rank;
  exchange_every_length({.eager_bytes = mine, .part_bytes = mine}, {8, 63, 64, 65, 128, 129, 10'000});
}

TEST_F(Mpi, WakeEndsAWaitAlsoBeforeIt) {
  MpiTransport transport(MPI_COMM_WORLD);
  transport.wake();
  transport.wait(kNever);
  for (int i = 0; i < 20; ++i) {
    std::atomic<bool> is_waiting{false};
    std::thread waker([&] {
      while (!is_waiting) std::this_thread::yield();
      // Some come while it spins, and some while it sleeps.
      for (int j = 0; j < i * 50; ++j) std::this_thread::yield();
      transport.wake();
    });
    is_waiting = true;
    transport.wait(kNever);
    waker.join();
  }
}

TEST_F(Mpi, RanksShareASessionAndTransportsDoNot) {
  uint64_t before = 0;
  for (int i = 0; i < 3; ++i) {
    const MpiTransport transport(MPI_COMM_WORLD);
    std::vector<uint64_t> all(transport.n_ranks());
    const uint64_t mine = transport.session();
    MPI_Allgather(&mine, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, MPI_COMM_WORLD);
    for (const uint64_t other : all) EXPECT_EQ(other, mine);
    EXPECT_NE(mine, before);
    before = mine;
  }
}

// Packets that are on their way when a transport ends do not come to the next.
TEST_F(Mpi, AnEndTakesWhatNobodyHasReceived) {
  for (int i = 0; i < 20; ++i) {
    MpiTransport transport(MPI_COMM_WORLD, {.n_receives = 2});
    EXPECT_FALSE(transport.receive());
    MPI_Barrier(MPI_COMM_WORLD);
    for (WorkerId to = 0; to < transport.n_ranks(); ++to) {
      if (to == transport.rank()) continue;
      for (const size_t size : {size_t{10}, size_t{100'000}, size_t{0}}) transport.send(to, Bytes(size));
    }
  }
  EXPECT_EQ(MpiTransport::n_abandoned(), 0);
}

// A link of ranks in lockstep (core/rank_link.h): parts of any length, and none, to everybody at once.
TEST_F(Mpi, RanksExchangeParts) {
  MpiRankLink link(MPI_COMM_WORLD);
  const auto n = static_cast<WorkerId>(link.n_ranks()), self = static_cast<WorkerId>(link.rank());
  const auto size_of = [&](WorkerId from, WorkerId to, uint32_t round) -> size_t {
    if (round == 0) return 3'000'000 + from;
    std::mt19937 random(from * 100 + to * 10 + round);
    return random() % 4 == 0 ? 0 : random() % 20'000;
  };
  for (uint32_t round = 0; round < 50; ++round) {
    std::vector<Bytes> parts;
    for (WorkerId to = 0; to < n; ++to) parts.push_back(packet_of(self, to, round, size_of(self, to, round)));
    const std::vector<Bytes> come = link.wait_exchange(std::move(parts));
    ASSERT_EQ(come.size(), n);
    for (WorkerId from = 0; from < n; ++from)
      ASSERT_TRUE(come[from] == packet_of(from, self, round, size_of(from, self, round)))
          << from << " " << round;
  }
}

TEST_F(Mpi, CallsObjectsAndErrorsComeBack) {
  MpiMember me;
  const WorkerId other = me.after(1);
  const auto sum = me.worker.remote<int32_t>(other, me.callee("add"), 40, 2);
  const auto here = sum.to_here();
  const auto call = me.worker.rpc_async<int32_t>(other, me.callee("add"), 1, 2);
  const auto wrong = me.worker.rpc_async<int32_t>(other, me.callee("divide"), 1, 0);
  wait(here);
  wait(call);
  wait(wrong);
  EXPECT_EQ(here.get(), 42);
  EXPECT_EQ(call.get(), 3);
  EXPECT_TRUE(wrong.is_error());
  EXPECT_THAT(wrong.error().what(), HasSubstr("worker " + std::to_string(other) + " @divide"));
  me.wait_end();
}

// Each makes an object on the next rank and gives it to the one after that, a user as itself.
TEST_F(Mpi, AUserSharesAReferenceWithAUser) {
  MpiMember me;
  {
    const auto object = me.worker.remote<int32_t>(me.after(1), me.callee("add"), 40, 2);
    const auto seen = me.worker.rpc_async<int32_t>(me.after(2), me.callee("fetch"), object);
    const auto made = me.worker.rpc_async<RemoteRef<int32_t>>(me.after(1), me.callee("make"),
                                                              static_cast<int32_t>(me.after(2)), 6);
    wait(seen);
    wait(made);
    EXPECT_EQ(seen.get(), 42);
    ASSERT_FALSE(made.is_error());
    EXPECT_EQ(made.get().owner(), me.after(2));
    const auto brought = made.get().to_here();
    wait(brought);
    EXPECT_EQ(brought.get(), 7);
  }
  me.wait_end();
  EXPECT_TRUE(me.worker.counts().is_at_rest()) << me.worker.report();
  EXPECT_EQ(me.worker.counts().malformed, 0u);
}

TEST_F(Mpi, LongValuesComeWhileOthersGo) {
  MpiMember me;
  std::vector<AsyncValueRef<std::string>> texts;
  for (WorkerId by = 1; by < me.n(); ++by)
    for (const int32_t size : {0, 100'000, 20'000'000})
      texts.push_back(me.worker.rpc_async<std::string>(me.after(by), me.callee("long_text"), size));
  for (size_t i = 0; i < texts.size(); ++i) {
    wait(texts[i]);
    ASSERT_FALSE(texts[i].is_error()) << texts[i].error().what();
    EXPECT_EQ(texts[i].get(), std::string(std::array{0, 100'000, 20'000'000}[i % 3], 'x'));
  }
  me.wait_end();
}

TEST_F(Mpi, ThousandsOfCallsOfSeveralThreadsEachComeBackOnce) {
  constexpr int kThreads = 4, kCalls = 1500;
  MpiMember me;
  std::atomic<int> n_wrong{0};
  CountDown done(kThreads * kCalls);
  std::vector<std::thread> users;
  for (int t = 0; t < kThreads; ++t) {
    users.emplace_back([&, t] {
      for (int i = 0; i < kCalls; ++i) {
        const WorkerId other = me.after(1 + static_cast<WorkerId>(i) % std::max(1u, me.n() - 1));
        const auto sum = me.worker.rpc_async<int32_t>(other, me.callee("add"), i, t);
        sum.and_then([&n_wrong, done, sum = sum, i, t]() mutable {
          if (sum.is_error() || sum.get() != i + t) ++n_wrong;
          done.count_down();
        });
      }
    });
  }
  for (std::thread& user : users) user.join();
  wait(done.chain());
  EXPECT_EQ(n_wrong, 0);
  me.wait_end();
  EXPECT_EQ(me.worker.state(), Protocol::State::kClosed);
  EXPECT_EQ(me.worker.counts().malformed, 0u);
}

TEST_F(MpiFunneled, AThreadOfItsOwnIsRefusedInOneLine) {
  try {
    const MpiTransport transport(MPI_COMM_WORLD);
    FAIL() << "it was made";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(e.what(), HasSubstr("MPI was initialised without MPI_THREAD_SERIALIZED"));
  }
}
TEST_F(MpiFunneled, TheMainThreadMayDriveIt) {
  exchange_every_length({.drives_on_main_thread = true}, {0, 8, 100, 1'000'000});
}

// Rank 0 asks the others, one after the other, and tells each that it was the last time.
TEST_F(MpiFunneled, ADriverNeedsNoOtherThreadOfMpi) {
  MpiTransport transport(MPI_COMM_WORLD, {.drives_on_main_thread = true});
  const SteadyClock clock;
  const auto queue = make_intrusive<DrivenQueue>(transport);
  Registry registry;
  add_builtin_operations(registry);
  bool is_told = false;
  registry.add("tell", [&] { return is_told = true; });
  Worker worker({.protocol = {.self = transport.rank(),
                              .n_workers = transport.n_ranks(),
                              .session = transport.session()}},
                transport, clock, make_intrusive<Host>(queue), Codecs());
  const Hash128 module = worker.add_module(LoadedModule::load(parse(R"(
    func @add(%a: i32, %b: i32) -> i32 { %c = add.i32 (%a, %b) return %c }
    func @tell() -> bool { %v = tell return %v })"),
                                                              registry));
  MPI_Barrier(MPI_COMM_WORLD);
  Driver driver(worker, transport, clock, *queue);
  if (transport.rank() != 0) driver.run_until([&] { return is_told; });
  for (WorkerId other = 1; transport.rank() == 0 && other < transport.n_ranks(); ++other) {
    const auto sum = worker.remote<int32_t>(other, {module, "add"}, 40, 2).to_here();
    driver.wait(sum);
    EXPECT_EQ(sum.get(), 42);
    const auto told = worker.rpc_async<bool>(other, {module, "tell"});
    driver.wait(told);
    EXPECT_FALSE(told.is_error());
  }
  queue->wait_idle();
  driver.wait(worker.shutdown());
  queue->shutdown(WorkQueue::Shutdown::kDrain);
}

}  // namespace

int run_tests(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  is_funneled = argc > 1 && std::string_view(argv[1]) == "--funneled";
  int level = 0;
  if (is_funneled) MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
  int failed = 0;
  {
    const MpiSession session;
    if (session.rank() != 0)
      delete testing::UnitTest::GetInstance()->listeners().Release(
          testing::UnitTest::GetInstance()->listeners().default_result_printer());
    failed = RUN_ALL_TESTS();
    // Another rank's findings are told by its exit code, and by a line each.
    if (session.rank() != 0)
      for (int i = 0; i < testing::UnitTest::GetInstance()->total_test_suite_count(); ++i) {
        const testing::TestSuite& suite = *testing::UnitTest::GetInstance()->GetTestSuite(i);
        for (int j = 0; j < suite.total_test_count(); ++j) {
          const testing::TestResult& result = *suite.GetTestInfo(j)->result();
          for (int k = 0; k < result.total_part_count(); ++k)
            if (result.GetTestPartResult(k).failed())
              std::fprintf(stderr, "rank %u: %s: line %d: %s\n", session.rank(), suite.GetTestInfo(j)->name(),
                           result.GetTestPartResult(k).line_number(), result.GetTestPartResult(k).message());
        }
      }
  }
  if (is_funneled) MPI_Finalize();
  return failed;
}

}  // namespace coppice::executor::remote

int main(int argc, char** argv) { return coppice::executor::remote::run_tests(argc, argv); }
