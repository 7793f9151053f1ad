// executor/capped_memory.h: how long the memory of a host's functions must live.
#include "executor/capped_memory.h"

#include <gtest/gtest.h>

#include <latch>
#include <vector>

#include "tests/executor/test_operations.h"

namespace coppice::executor {
namespace {

using Bytes = std::pmr::vector<std::byte>;

// A result comes before its operation has let go of its arguments; an idle queue holds nothing.
TEST(CappedMemory, IsUnusedWhenTheHostsQueueIsIdle) {
  Registry registry;
  add_builtin_operations(registry);
  registry.add_type<Bytes>("test_bytes");
  registry.add("allocate",
               [](int32_t bytes, Request& request) {
                 return Bytes(static_cast<size_t>(bytes), &request.host().memory());
               },
               {.run = Run::kBlocking});
  registry.add("size", [](const Bytes& bytes) { return static_cast<int32_t>(bytes.size()); });
  const auto module = LoadedModule::load(
      parse("func @main(%x: i32) -> i32 { %a = allocate (%x) %n = size (%a) return %n }", "test.graph"),
      registry);
  CappedMemory memory(1024);
  const auto host = make_intrusive<Host>(WorkQueue::create({.threads = 1}), memory);
  std::latch may_end(1);
  const auto request = host->start_request();
  auto may_start = make_promise<int32_t>();
  const auto n = execute(module->function("main"), {may_start.value()}, *request)[0];
  std::latch is_there(1);
  n->and_then([&] {
    is_there.count_down();
    may_end.wait();
  });
  may_start.emplace(600);
  is_there.wait();
  EXPECT_EQ(n->get<int32_t>(), 600);
  EXPECT_EQ(memory.used_bytes(), 600u) << "the operation still holds its argument";
  may_end.count_down();
  host->queue()->wait_idle();
  EXPECT_EQ(memory.used_bytes(), 0u);
}

TEST(CappedMemoryDeathTest, MayNotGoWhileItIsInUse) {
  EXPECT_DEATH(
      {
        CappedMemory memory(64);
        (void)memory.allocate(8);
      },
      "memory of a host's functions is destroyed while 8 bytes of it are in use");
}

}  // namespace
}  // namespace coppice::executor
