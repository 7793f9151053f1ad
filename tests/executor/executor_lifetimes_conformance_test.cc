// The executor's conformance list: lifetimes of values (47 to 51), in graphs, calls and loops.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/executor/probe_operations.h"

namespace coppice::executor {
namespace {

using NoteList = std::vector<std::string>;

// By value: made, moved into its place, and the moved-from one is silent. In place: no
// move. The longer way goes first.
TEST(ExecutorConformance, N47_ALinearGraphsValuesAreMadeMovedAndDestroyedInOrder) {
  ProbedProgram p(R"(
func @main() {
  %a = tracked.new 1
  tracked.see "first" (%a)
  %b = tracked.emplace 2
  %c = tracked.pass (%b)
  tracked.see "second" (%c)
  return
})");
  p.run("main");
  EXPECT_EQ(p.notes(), (NoteList{"make 2", "second sees 2", "destroy 2", "make 1", "move 1", "first sees 1",
                                 "destroy 1"}));
}

TEST(ExecutorConformance, N48_ACallThatDoesNothingWithItExtendsAValuesLife) {
  ProbedProgram p(R"(
func @nothing(%t: tracked, %x: i32) -> i32 { %y = note.i32 "in the call" (%x) return %y }
func @main(%x: i32) {
  %t = tracked.emplace 1
  %y = call @nothing (%t, %x)
  %z = note.i32 "after" (%y)
  return
})");
  p.run("main", {i32(0)});
  EXPECT_EQ(p.notes(), (NoteList{"make 1", "in the call 0", "destroy 1", "after 0"}));
}

TEST(ExecutorConformance, N49_ATemporaryOfACalleeDiesInTheCallee) {
  ProbedProgram p(R"(
func @callee(%x: i32) -> i32 {
  %t = tracked.emplace 1
  tracked.see "callee" (%t)
  %y = note.i32 "end of the callee" (%x)
  return %y
}
func @main(%x: i32) { %y = call @callee (%x) %z = note.i32 "after" (%y) return }
)");
  p.run("main", {i32(0)});
  const NoteList notes = p.notes();
  ASSERT_EQ(notes.size(), 5u);
  EXPECT_EQ(notes.back(), "after 0");
  EXPECT_LT(std::find(notes.begin(), notes.end(), "callee sees 1"),
            std::find(notes.begin(), notes.end(), "destroy 1"));
}

TEST(ExecutorConformance, N50_AValueSharedByTwoIsDestroyedOnceAfterTheLast) {
  ProbedProgram p(R"(
func @share(%t: tracked) -> (tracked, tracked) { return %t, %t }
func @direct() {
  %t = tracked.emplace 1
  tracked.see "one" (%t)
  tracked.see "two" (%t)
  return
}
func @across() {
  %t = tracked.emplace 2
  %a, %b = call @share (%t)
  tracked.see "one" (%a)
  tracked.see "two" (%b)
  return
})");
  p.run("direct");
  EXPECT_EQ(p.notes(), (NoteList{"make 1", "one sees 1", "two sees 1", "destroy 1"}));
  p.run("across");
  NoteList notes = p.notes();
  EXPECT_EQ(notes.front(), "make 2");
  EXPECT_EQ(notes.back(), "destroy 2");
  std::sort(notes.begin(), notes.end());  // users of different results come in any order
  EXPECT_EQ(notes, (NoteList{"destroy 2", "make 2", "one sees 2", "two sees 2"}));
}

TEST(ExecutorConformance, N51_ARepeatOfNoneOneAndTwoIterationsDropsWhatItReplaces) {
  ProbedProgram p(R"(
func @body(%old: tracked) -> tracked {
  tracked.see "body" (%old)
  %new = tracked.next (%old)
  return %new
}
func @main(%n: i32) {
  %t = tracked.emplace 1
  %u = repeat @body (%n, %t)
  tracked.see "main" (%u)
  return
})");
  const auto of = [&](int32_t n) {
    p.run("main", {i32(n)});
    return p.notes();
  };
  EXPECT_EQ(of(0), (NoteList{"make 1", "main sees 1", "destroy 1"}));
  EXPECT_EQ(of(-3), (NoteList{"make 1", "main sees 1", "destroy 1"}));
  // The caller holds the loop's argument until the loop has returned.
  EXPECT_EQ(of(1), (NoteList{"make 1", "body sees 1", "make 2", "destroy 1", "main sees 2", "destroy 2"}));
  EXPECT_EQ(of(2), (NoteList{"make 1", "body sees 1", "make 2", "body sees 2", "make 3", "destroy 2",
                             "destroy 1", "main sees 3", "destroy 3"}));
}

}  // namespace
}  // namespace coppice::executor
