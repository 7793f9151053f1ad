// One tree that several threads use for the first time at once: each gives the call that fixes its layout.
#include <barrier>
#include <functional>
#include <thread>

#include "conformance.kernels.h"
#include "sparse/memory_report.h"
#include "sparse/program.h"
#include "sparse/read_back.h"
#include "sparse/topology_tools.h"
#include "sparse/tree.h"
#include "tests/sparse/test_devices.h"

namespace coppice {
namespace {

constexpr int kThreads = 4, kRounds = 40;

struct FreshTree {
  explicit FreshTree(const IntrusivePtr<Device>& device)
      : tree(device, {.name = "t"}),
        leaf(tree.root().pointer({64}).bitmasked({16})),
        x(leaf.place<int>("x")) {}
  Tree tree;
  Node leaf;
  Field<int> x;
};

class FirstUse : public DeviceTest {
 protected:
  // use(tree, thread) on all threads at once, on a fresh tree each round; then check(tree).
  void race(const std::function<void(FreshTree&, int)>& use, const std::function<void(FreshTree&)>& check) {
    for (int round = 0; round < kRounds; ++round) {
      FreshTree fresh(device);
      std::barrier start(kThreads);
      std::vector<std::jthread> threads;
      for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
          start.arrive_and_wait();
          use(fresh, t);
        });
      }
      threads.clear();
      check(fresh);
    }
  }
};

TEST_P(FirstUse, LaunchesOfSeveralThreads) {
  std::vector<Program> programs;
  for (int t = 0; t < kThreads; ++t) programs.emplace_back(device);
  race([&](FreshTree& f,
           int t) { finish(programs[size_t(t)].launch(write_every1, range(t + 1), f.x, 17, 3)); },
       [](FreshTree& f) {
         for (int i = 0; i < kThreads; ++i) ASSERT_EQ(wait_read(f.x, {17 * i}), 3);
         ASSERT_EQ(f.leaf.wait_num_active_cells(), uint64_t{kThreads});
       });
}

// Seen to fail: threads that shared a program ended in its table of what is prepared.
TEST_P(FirstUse, LaunchesOfSeveralThreadsByOneProgram) {
  Program shared(device);
  race(
      [&](FreshTree& f, int t) {
        finish(shared.launch(write_every1, range(t + 1), f.x, 17, 3));
        const BoundLaunch last = shared.bind(write_every1, range(1), f.x, 17, 4);
        finish(last.launch());
      },
      [](FreshTree& f) {
        for (int i = 0; i < kThreads; ++i) ASSERT_EQ(wait_read(f.x, {17 * i}), i == 0 ? 4 : 3);
      });
}

// A launch among calls of every other kind.
TEST_P(FirstUse, CallsOfDifferentKinds) {
  race(
      [&](FreshTree& f, int t) {
        if (t == 0) finish(program().launch(write_every1, range(1), f.x, 1, 3));
        if (t == 1) finish(f.leaf.activate({{100}}));
        if (t == 2) finish(dilate(f.leaf, Neighbourhood::kFaces, 0));
        if (t == 3) f.tree.wait_memory_report();
      },
      [](FreshTree& f) {
        ASSERT_EQ(wait_read(f.x, {0}), 3);
        ASSERT_TRUE(f.leaf.wait_is_active({100}));
        ASSERT_EQ(f.leaf.wait_num_active_cells(), 2u);
      });
}

// Each prepares a launch of the runtime's own.
TEST_P(FirstUse, DeactivationsOfSeveralThreads) {
  race(
      [](FreshTree& f, int t) {
        finish(f.leaf.activate({{200 * t}, {200 * t + 50}}));
        for (int i = 0; i < 20; ++i) finish(f.leaf.deactivate({{200 * t + i}}));
      },
      [](FreshTree& f) { ASSERT_EQ(f.leaf.wait_num_active_cells(), uint64_t{kThreads}); });
}

TEST_P(FirstUse, CompilationsOfSeveralThreads) {
  race([](FreshTree& f, int) { f.tree.compile_runtime(); },
       [](FreshTree& f) { ASSERT_EQ(f.leaf.wait_num_active_cells(), 0u); });
}

INSTANTIATE_TEST_SUITE_P(Sparse, FirstUse, testing::ValuesIn(test_devices()), device_test_name);

}  // namespace
}  // namespace coppice
