// executor/task.h: where a callable lives, and that it runs or dies exactly once.
#include "executor/task.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

namespace coppice::executor {
namespace {

// A callable of at least `kBytes` that counts what happens to its kind.
struct Counts {
  int alive = 0, runs = 0, allocations = 0;
};
Counts counts;
template <size_t kBytes, bool kMayThrow = false>
struct Counted {
  Counted() { ++counts.alive; }
  Counted(Counted&&) noexcept(!kMayThrow) { ++counts.alive; }
  ~Counted() { --counts.alive; }
  void operator()() { ++counts.runs; }
  static void* operator new(size_t bytes) {
    ++counts.allocations;
    return ::operator new(bytes);
  }
  static void* operator new(size_t, void* place) { return place; }
  static void operator delete(void* memory) { ::operator delete(memory); }
  std::array<std::byte, kBytes> bytes;
};
template <class F>
int allocations_of() {
  counts = {};
  Task task{F{}};
  return counts.allocations;
}

TEST(Task, HoldsFortyEightBytesInlineAndMoreOnTheHeap) {
  EXPECT_EQ(allocations_of<Counted<1>>(), 0);
  EXPECT_EQ(allocations_of<Counted<48>>(), 0);
  EXPECT_EQ(allocations_of<Counted<49>>(), 1);
}

TEST(Task, PutsWhatMayThrowWhenMovedOnTheHeap) { EXPECT_EQ((allocations_of<Counted<8, true>>()), 1); }

template <class F>
void expect_run_or_destroyed_once() {
  counts = {};
  {
    Task ran{F{}};
    Task moved = std::move(ran);
    EXPECT_FALSE(ran);  // NOLINT: a moved-from task is empty
    EXPECT_TRUE(moved);
    moved();
    EXPECT_FALSE(moved);
    EXPECT_EQ(counts.runs, 1);
    EXPECT_EQ(counts.alive, 0);

    const Task unrun{F{}};
    Task assigned{F{}};
    EXPECT_EQ(counts.alive, 2);
    assigned = Task{F{}};
    EXPECT_EQ(counts.alive, 2);
    assigned.reset();
    EXPECT_EQ(counts.alive, 1);
    assigned.reset();
  }
  EXPECT_EQ(counts.alive, 0);
  EXPECT_EQ(counts.runs, 1);
}
TEST(Task, RunsOrDestroysItsCallableOnce) {
  expect_run_or_destroyed_once<Counted<16>>();
  expect_run_or_destroyed_once<Counted<100>>();
  expect_run_or_destroyed_once<Counted<8, true>>();
}

TEST(Task, MovesTriviallyCopyableCallablesByTheirBytes) {
  std::array<int64_t, 5> numbers = {1, 2, 3, 4, 5};
  int64_t sum = 0;
  auto add = [numbers, &sum] {
    for (const int64_t n : numbers) sum += n;
  };
  static_assert(sizeof(add) == Task::kInlineBytes);
  Task first(add), second(std::move(first)), third;
  third = std::move(second);
  numbers = {};
  third();
  EXPECT_EQ(sum, 15);
}

TEST(Task, KeepsAStricterAlignment) {
  struct alignas(64) Aligned {
    void* operator()() const { return const_cast<Aligned*>(this); }
    uintptr_t* address;
    ~Aligned() { *address = reinterpret_cast<uintptr_t>(this); }
  };
  uintptr_t address = 1;
  Task(Aligned{&address}).reset();
  EXPECT_EQ(address % 64, 0u);
}

TEST(Task, TakesCallablesThatAreMoveOnlyAndConsumesThem) {
  struct Consumed {
    std::unique_ptr<int> number;
    int* result;
    void operator()() && { *result = *std::move(number); }
  };
  int result = 0;
  Task task(Consumed{std::make_unique<int>(5), &result});
  task();
  EXPECT_EQ(result, 5);
}

TEST(Task, MayReplaceOrDestroyTheTaskItRunsIn) {
  std::optional<Task> task;
  auto held = std::make_shared<int>(0);
  task.emplace([&task, held] {
    task.emplace([held] { *held += 10; });
    *held += 1;  // this callable is still alive
  });
  (*task)();
  EXPECT_EQ(*held, 1);
  ASSERT_TRUE(task && *task);
  EXPECT_EQ(held.use_count(), 2);
  (*task)();
  EXPECT_EQ(*held, 11);
  task.emplace([&task, held] {
    task.reset();
    *held = 7;
  });
  (*task)();
  EXPECT_EQ(*held, 7);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(TaskDeathTest, RefusesToRunTwiceAndEndsTheProgramOnExceptions) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Task task([] {});
  task();
  EXPECT_DEATH(task(), "an empty task, or one that ran already");
  Task throws([] { throw std::runtime_error("nobody catches this"); });
  EXPECT_DEATH(throws(), "nobody catches this");
}

}  // namespace
}  // namespace coppice::executor
