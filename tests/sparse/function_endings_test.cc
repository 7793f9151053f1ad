// Functions and launches that the process's end overtakes.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "function.kernels.h"
#include "sparse/buffer_operations.h"
#include "sparse/function.h"
#include "sparse/program.h"

namespace coppice {
namespace {

// Seen to fail: exit() waited ten seconds for the stream, which never had nothing to do.
TEST(FunctionsDeathTest, EndWithTheProcessWhileAnotherThreadGivesMore) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        static auto* const device = new IntrusivePtr<Device>(Device::named("simt"));
        Program program(*device);
        const auto words = (*device)->reserve(4096, 4096);
        const Function f = trace(*device, [&] { program.launch(add_one, range(64), words->as<uint32_t>()); });
        wait(f.run());
        std::thread([f] {
          while (true) f.run(1);
        }).detach();
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        std::exit(0);
      },
      testing::ExitedWithCode(0), "^(kernels: .*\n)*$");
}

// Seen to fail: nothing said that they had not run.
TEST(FunctionsDeathTest, LaunchesThatTheProcessesEndOvertakesAreTold) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const auto device = Device::cpu({.threads = 2});
        Program program(device);
        const auto words = device->reserve(4096, 4096);
        static std::atomic<bool> may_go{false};
        device->default_stream().enqueue("test.block", [](InStream&) {
          while (!may_go) std::this_thread::yield();
        });
        for (int i = 0; i < 3; ++i) program.launch(add_one, range(64), words->as<uint32_t>());
        const auto kept = program.launch(add_one, range(64), words->as<uint32_t>());
        std::thread([] {
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
          may_go = true;
        }).detach();
        std::exit(0);
      },
      testing::ExitedWithCode(0),
      "the process ends before 3 launches \\(first function.add_one\\) that nobody waited for");
}

// Seen to fail: exit() waited ten seconds for the replays, and went on without them.
TEST(FunctionsDeathTest, EndWithTheProcessHoweverOftenTheyAreRun) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const auto device = Device::named("simt");
        Program program(device);
        const auto words = device->reserve(4096, 4096);
        const Function f = trace(device, [&] {
          program.launch(add_one, range(1), words->as<uint32_t>());
          sort_by_key<uint32_t>(*device, words, words, 512);
        });
        wait(f.run());
        const auto done = f.run(20000000);
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        std::exit(done.is_available() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "^(kernels: .*\n)*$");
}

}  // namespace
}  // namespace coppice
