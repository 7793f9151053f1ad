// Workers on real threads, in one process: references shared and dropped from everywhere at once.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/count_down.h"
#include "executor/builtin_operations.h"
#include "executor/remote/worker.h"
#include "executor/text.h"

namespace coppice::executor::remote {
namespace {

constexpr WorkerId kWorkers = 3;
#ifdef COPPICE_DEBUG
constexpr int kRounds = 50;
#else
constexpr int kRounds = 300;
#endif

struct Member {
  Member(WorkerId w, LocalNetwork& network, const Clock& clock, const Codecs& codecs)
      : transport(network.transport(w)),
        host(make_intrusive<Host>(WorkQueue::create({.threads = 2}))),
        worker({.protocol = {.self = w, .n_workers = kWorkers, .session = 1}}, *transport, clock, host,
               codecs) {}
  ~Member() { host->queue()->shutdown(WorkQueue::Shutdown::kDrain); }
  std::unique_ptr<Transport> transport;
  IntrusivePtr<Host> host;
  Worker worker;
};

TEST(WorkerThreads, ShareAndDropFromEverywhereAndUsersCodeRunsOnQueues) {
  LocalNetwork network(kWorkers);
  const SteadyClock clock;
  Registry registry;
  add_builtin_operations(registry);
  registry.add_type<RemoteRef<int32_t>>("remote.i32");
  std::atomic<int> n_elsewhere{0};
  registry.add("fetch", [&](const RemoteRef<int32_t>& r) {
    if (!WorkQueue::is_worker_thread()) ++n_elsewhere;
    return r.to_here();
  });
  Codecs codecs;
  codecs.add_remote<int32_t>();
  std::vector<std::unique_ptr<Member>> members;
  Hash128 module;
  for (WorkerId w = 0; w < kWorkers; ++w) {
    members.push_back(std::make_unique<Member>(w, network, clock, codecs));
    module = members.back()->worker.add_module(LoadedModule::load(parse(R"(
      func @add(%a: i32, %b: i32) -> i32 { %c = add.i32 (%a, %b) return %c }
      func @fetch(%r: remote.i32) -> i32 { %v = fetch (%r) return %v })"),
                                                                  registry));
  }
  std::vector<std::unique_ptr<ProgressThread>> progress;
  for (auto& m : members)
    progress.push_back(std::make_unique<ProgressThread>(m->worker, *m->transport, clock));

  std::vector<std::thread> users;
  std::atomic<int> n_wrong{0};
  CountDown done(2 * kRounds * kWorkers);
  for (WorkerId w = 0; w < kWorkers; ++w) {
    users.emplace_back([&, w] {
      Worker& here = members[w]->worker;
      for (int i = 0; i < kRounds; ++i) {
        const auto owner = static_cast<WorkerId>(i % kWorkers),
                   other = static_cast<WorkerId>((i / 3) % kWorkers);
        std::vector<AsyncValueRef<int32_t>> results;
        {
          const auto sum = here.remote<int32_t>(owner, {module, "add"}, i, 1);
          results.push_back(here.rpc_async<int32_t>(other, {module, "fetch"}, sum));
          results.push_back(sum.to_here());
        }
        for (const auto& r : results) {
          r.and_then([&n_wrong, done, r = r, i]() mutable {
            if (r.is_error() || r.get() != i + 1) ++n_wrong;
            done.count_down();
          });
          if (i % 2 == 0) wait(r);
        }
        here.report();
      }
    });
  }
  for (std::thread& t : users) t.join();
  wait(done.chain());
  for (auto& m : members) m->host->queue()->wait_idle();
  std::vector<AsyncValueRef<Chain>> closed;
  for (auto& m : members) closed.push_back(m->worker.shutdown());
  for (const auto& c : closed) wait(c);
  for (auto& m : members) {
    EXPECT_EQ(m->worker.state(), Protocol::State::kClosed);
    EXPECT_TRUE(m->worker.counts().is_at_rest()) << m->worker.report();
    EXPECT_EQ(m->worker.counts().malformed, 0u);
  }
  EXPECT_EQ(n_wrong, 0);
  EXPECT_EQ(n_elsewhere, 0);
  progress.clear();
}

}  // namespace
}  // namespace coppice::executor::remote
