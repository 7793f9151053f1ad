// Every order in which the handles of a device go is clean, and so is every moment at which a program ends.
#include <sys/wait.h>

#include <atomic>
#include <thread>

#include "core/error.h"
#include "sparse/memory_report.h"
#include "sparse/read_back.h"
#include "tests/sparse/lifetime_runs.h"

namespace coppice {
namespace {

TEST_F(Lifetimes, DevicesAreMadeAndDroppedInRandomOrders) { make_and_drop(2, 1, 1); }

TEST_F(Lifetimes, ProgramsEndInRandomWays) { end_programs(4, 83); }

// It has a thread of its own, which the loops of its launches share with the device's.
TEST_F(Lifetimes, AStreamOutlivesItsDevicesOtherHandles) {
  for (const auto make : {+[] { return Device::cpu(2); }, +[] { return Device::simt(); }}) {
    const int before = Device::count();
    IntrusivePtr<Stream> stream = make()->create_stream();
    EXPECT_EQ(Device::count(), before + 1);
    int runs = 0;
    wait(stream->enqueue("count", [&](InStream&) { ++runs; }));
    EXPECT_EQ(runs, 1);
    stream.reset();
    EXPECT_EQ(Device::count(), before);
  }
}

// A compiler's thread that drops the last handle of its device does not wait for itself.
TEST_F(Lifetimes, AContinuationOfCodeDropsItsDevice) {
  const int before = Device::count();
  {
    World::Random random(1);
    auto world = std::make_shared<World>(random);
    const auto code = world->code();
    code.and_then([world = std::move(world)]() mutable { world.reset(); });
  }
  while (Device::count() > before) std::this_thread::yield();
}

// Calls that are refused in a forked child: they would wait for threads that are not there.
int count_refused(const std::vector<std::function<void()>>& calls) {
  int refused = 0;
  for (const auto& call : calls) {
    try {
      call();
    } catch (const Error& error) {
      refused += error.code() == ErrorCode::kUnavailable &&
                 error.message().find("the process that this one was forked from") != std::string::npos;
    }
  }
  return refused;
}

TEST_F(Lifetimes, AForkedChildMayNotUseItsParentsDevice) {
  const auto device = Device::cpu(2);
  Program program(device);
  Tree tree(device);
  Node leaf = tree.root().pointer({4}).bitmasked({4});
  Field<int> x = leaf.place<int>("x"), y = leaf.place<int>("y");
  wait(program.launch(write_every1, range(4), x, 1, 3));
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(count_refused({[&] { program.launch(write_every1, range(4), x, 1, 3); },
                         [&] { program.launch(write_branching1, over(leaf), x, y); },
                         [&] { leaf.activate({{1}}); }, [&] { wait_read(x, {1}); }, [&] { program.wait(); },
                         [&] { tree.wait_memory_report(); }, [&] { device->reserve(64, 64); },
                         [&] { device->create_stream(); }}));
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 8);
  EXPECT_EQ(wait_read(x, {3}), 3);
}

// Its streams' threads, which wait for work in the parent, are not there to be told.
TEST_F(Lifetimes, AForkedChildMayDropItsParentsHandles) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    World::Random random(seed);
    World world(random);
    for (int n = 0; n < 3; ++n) world.work(random);
    wait(world.last());
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      world.let_go(random);
      _exit(7);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << "seed " << seed;
  }
}

// Locks that a thread of the parent holds when it forks are nobody's in the child.
TEST_F(Lifetimes, AForkedChildIsRefusedWhateverItsParentWasDoing) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer ends a forked child that starts a thread";
#endif
  const IntrusivePtr<Device> device = Device::cpu(1);
  Tree tree(device);
  const Field<int> x = tree.root().pointer({4}).bitmasked({4}).place<int>("x");
  Program program(device);
  const BoundLaunch bound = program.bind(write_every1, range(4), x, 1, 3);
  const std::vector<std::function<void()>> calls = {[&] { program.launch(write_every1, range(4), x, 1, 3); },
                                                    [&] { bound.launch(); },
                                                    [&] { program.compile(write_every1, range(4), x, 1, 3); },
                                                    [&] { device->default_stream().clear_error(); }};
  for (const std::function<void()>& call : calls) {
    std::atomic<bool> ends{false};
    std::thread busy([&] {
      while (!ends) {
        call();
        wait(device->default_stream().barrier());
      }
    });
    for (int i = 0; i < 60; ++i) {
      std::this_thread::sleep_for(std::chrono::microseconds(50 * (i % 7)));
      const pid_t child = fork();
      if (child == 0) {
        alarm(20);
        try {
          call();
        } catch (const Error& error) {
          _exit(error.code() == ErrorCode::kUnavailable ? 7 : 8);
        }
        _exit(9);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7)
          << "call " << &call - calls.data() << ", fork " << i << ", status " << status;
    }
    ends = true;
    busy.join();
  }
}

// A thread of the child's own may have the number of one that is the parent's.
TEST_F(Lifetimes, AForkedChildMayDropItsParentsDeviceBesideItsOwn) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer ends a forked child that starts a thread";
#endif
  for (const char* name : {"cpu", "simt"}) {
    for (int order = 0; order < 3; ++order) {
      IntrusivePtr<Device> device = Device::named(name);
      wait(device->default_stream().barrier());
      const pid_t child = fork();
      if (child == 0) {
        alarm(20);
        IntrusivePtr<Device> own = Device::named(name);
        wait(own->default_stream().barrier());
        if (order == 0) own.reset();
        device.reset();
        if (order == 2) wait(own->default_stream().barrier());
        own.reset();
        _exit(7);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7)
          << name << ", order " << order << ", " << status;
    }
  }
}

}  // namespace
}  // namespace coppice
