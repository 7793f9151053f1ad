// The example programs of the document on async values that this executor follows, and what it says of each:
// values, reference counts, and which values are indirect. The programs are files: programs/*.graph.
#include <gtest/gtest.h>

#include "core/live_objects.h"
#include "executor/planned/instance.h"
#include "tests/executor/probe_operations.h"

namespace coppice::executor {
namespace {

using NoteList = std::vector<std::string>;

// Returns what a counter of live objects shows of n: 0 in builds that do not count.
int64_t counted(int64_t n) { return kCountsLiveObjects ? n : 0; }

struct SeedProgram : ProbedProgram {
  explicit SeedProgram(const std::string& file) : ProbedProgram(read_program(file)) {}
};

TEST(SeedPrograms, ARegistersUsesAreSettingItArgumentsAndReturns) {
  SeedProgram p("use_counts.graph");
  const Function& foo = p.module->source().functions[0];
  EXPECT_EQ(foo.registers[0].use_count, 4u);
  EXPECT_EQ(foo.registers[0].used_by, std::vector<uint32_t>{1})
      << "one record for the addition, none for return";
  EXPECT_EQ(foo.registers[1].use_count, 2u);
  const auto results = p.run("foo");
  // Set: one of the four uses is over. After the addition, only the returned reference is left.
  EXPECT_EQ(p.notes(), NoteList{"add 3 3"});
  EXPECT_EQ(results[0].use_count(), 1u);
  EXPECT_EQ(results[1].use_count(), 1u);
  EXPECT_EQ(results[0]->get<int32_t>(), 42);
  EXPECT_EQ(results[1]->get<int32_t>(), 84);
}

TEST(SeedPrograms, WhatAFunctionReturnsIsTheCallersWithoutACount) {
  SeedProgram p("use_counts.graph");
  const auto results = p.run("caller");
  EXPECT_EQ(p.notes(), (NoteList{"add 3 3", "caller 1 1"}));
  EXPECT_EQ(results[0]->get<int32_t>(), 126);
}

TEST(SeedPrograms, SharingMakesOneAsyncValueOnly) {
  SeedProgram p("share.graph");
  const int64_t before = live_async_values();
  const auto results = p.run("caller");
  EXPECT_EQ(results[0].get(), results[1].get());
  EXPECT_EQ(results[0].use_count(), 2u);
  EXPECT_EQ(results[0]->get<int32_t>(), 1);
  EXPECT_EQ(live_async_values() - before, counted(1));
}

TEST(SeedPrograms, AnArgumentThatIsReturnedIsTheCallersOwnValue) {
  SeedProgram p("share.graph");
  const auto x = i32(5);
  {
    const auto results = p.run("share", {x});
    EXPECT_EQ(results[0].get(), x.get());
    EXPECT_EQ(results[1].get(), x.get());
    EXPECT_EQ(x.use_count(), 3u);
  }
  EXPECT_EQ(x.use_count(), 1u) << "an argument is +0";
}

TEST(SeedPrograms, AResultWhoseProducerHasNotRunIsIndirect) {
  SeedProgram p("indirect_async_return.graph");
  const auto c = i32(9);
  auto results = p.run("indirect_async_return", {c});
  EXPECT_TRUE(results[0]->is_indirect());
  EXPECT_FALSE(results[0]->is_available());
  EXPECT_EQ(p.later().size(), 1u) << "the second addition has not run";
  ASSERT_TRUE(p.later().run_one());
  EXPECT_FALSE(results[0]->is_available());
  EXPECT_EQ(p.later().size(), 1u);
  p.later().run_all();
  EXPECT_EQ(results[0]->get<int32_t>(), 4);
  EXPECT_EQ(results[0].use_count(), 1u);
  EXPECT_TRUE(results[0]->is_unique()) << "it owns the one reference to what it was forwarded to";
}

TEST(SeedPrograms, AResultWhoseProducerHasRunIsItselfAvailableOrNot) {
  SeedProgram p("indirect_async_return.graph");
  const auto results = p.run("direct_async_return");
  EXPECT_TRUE(results[0]->is_available());
  EXPECT_FALSE(results[0]->is_indirect());
  EXPECT_FALSE(results[1]->is_available());
  EXPECT_FALSE(results[1]->is_indirect());
  EXPECT_EQ(results[1].use_count(), 2u) << "the caller's, and the deferred addition's";
  p.later().run_all();
  EXPECT_EQ(results[1]->get<int32_t>(), 2);
  EXPECT_EQ(results[1].use_count(), 1u);
}

TEST(SeedPrograms, ANonStrictOperationGetsIndirectValuesForMissingArguments) {
  SeedProgram p("indirect_async_arg.graph");
  const int64_t before = live_async_values();
  EXPECT_TRUE(p.run("indirect_async_arg").empty());
  // %c1 and %v2, which the deferred addition holds, and the indirect %v3, which its
  // register keeps until it is set.
  EXPECT_EQ(live_async_values() - before, counted(3));
  p.later().run_all();
  EXPECT_EQ(live_async_values() - before, counted(0));
  p.run("seen");
  EXPECT_EQ(p.notes(), (NoteList{"concrete", "pending", "indirect"}));
  p.later().run_all();
}

TEST(SeedPrograms, DeferredWorkKeepsItsArgumentsAndResultsAlive) {
  SeedProgram p("deferred_work.graph");
  const int64_t before = live_async_values();
  p.run("foo");
  EXPECT_EQ(live_async_values() - before, counted(2)) << "held by the deferred work alone";
  p.later().run_all();
  EXPECT_EQ(live_async_values() - before, counted(0));
  p.run("my_kernel");
  EXPECT_EQ(live_async_values() - before, counted(1));
  p.later().run_all();
  EXPECT_EQ(p.notes(), NoteList{"read 7"});
  EXPECT_EQ(live_async_values() - before, counted(0));
}

TEST(SeedPrograms, AnUnusedIndirectResultLivesUntilItIsForwarded) {
  SeedProgram p("make_indirect.graph");
  const Function& make = p.module->source().functions[0];
  EXPECT_EQ(make.registers[2].use_count, 2u) << "%v3: set and returned";
  const int64_t before = live_async_values();
  p.run("caller");
  // %c1, %v2 and the unused %v3: the last with the reference for setting it.
  EXPECT_EQ(live_async_values() - before, counted(3));
  ASSERT_TRUE(p.later().run_one());
  EXPECT_EQ(live_async_values() - before, counted(3)) << "%v2, the sum to come, %v3";
  EXPECT_TRUE(p.later().run_one());
  EXPECT_FALSE(p.later().run_one());
  EXPECT_EQ(live_async_values() - before, counted(0));
}

TEST(SeedPrograms, AnIndirectResultHasTwoReferencesUntilItIsForwarded) {
  SeedProgram p("make_indirect.graph");
  const auto results = p.run("make_indirect");
  EXPECT_TRUE(results[0]->is_indirect());
  EXPECT_EQ(results[0].use_count(), 2u);
  p.later().run_all();
  EXPECT_EQ(results[0].use_count(), 1u);
  EXPECT_EQ(results[0]->get<int32_t>(), 4);
}

TEST(SeedPrograms, SettingAResultToAnArgumentAddsOneReferenceEach) {
  SeedProgram p("copies.graph");
  const auto in = i32(3);
  const auto results = p.run("copy_to_two", {in});
  EXPECT_EQ(results[0].get(), in.get());
  EXPECT_EQ(results[1].get(), in.get());
  EXPECT_EQ(in.use_count(), 3u);
}

TEST(SeedPrograms, AsynchronousCopiesHoldTheirArgument) {
  SeedProgram p("copies.graph");
  for (const char* function : {"async_copy", "test_async_copy"}) {
    auto in = i32(11);
    AsyncValue* const value = in.get();
    const auto results = p.run(function, {in});
    EXPECT_EQ(in.use_count(), 2u) << function;
    in.reset();
    EXPECT_EQ(references(value), 1u) << function << ": the deferred work's";
    EXPECT_FALSE(results[0]->is_available());
    p.later().run_all();
    EXPECT_EQ(results[0]->get<int32_t>(), 11);
    EXPECT_EQ(results[0].use_count(), 1u);
  }
}

// The document's C++ snippets.

TEST(SeedSnippets, ANewValueHasOneReferenceAndGoesWithTheLast) {
  const LeakCheck check;
  RCReference<AsyncValue> value = make_unconstructed_async_value<int32_t>();
  EXPECT_EQ(value.use_count(), 1u);
  RCReference<AsyncValue> second = value;
  EXPECT_EQ(value.use_count(), 2u);
  second.reset();
  EXPECT_EQ(value.use_count(), 1u);
  value.reset();
  EXPECT_EQ(check.report(), "");
}

TEST(SeedSnippets, TypedAndUntypedReferencesDoTheSame) {
  const AsyncValueRef<int32_t> typed = make_unconstructed_async_value<int32_t>();
  typed.emplace(42);
  EXPECT_EQ(typed.get(), 42);
  const RCReference<AsyncValue> untyped = make_unconstructed_async_value<int32_t>();
  int ran = 0;
  untyped->and_then([&] { ++ran; });
  EXPECT_FALSE(untyped->is_available());
  untyped->emplace<int32_t>(42);
  EXPECT_TRUE(untyped->is_available());
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(untyped->get<int32_t>(), 42);
}

TEST(SeedSnippets, ReferencesConvertExplicitlyToTypedAndImplicitlyBack) {
  RCReference<AsyncValue> generic = make_available_async_value<int32_t>(1);
  AsyncValue* const value = generic.get();
  AsyncValueRef<int32_t> typed(std::move(generic));
  EXPECT_EQ(typed.get_async_value(), value);
  const RCReference<AsyncValue> back = std::move(typed);
  EXPECT_EQ(back.get(), value);
  EXPECT_EQ(back.use_count(), 1u);
  static_assert(!std::is_convertible_v<RCReference<AsyncValue>, AsyncValueRef<int32_t>>);
  static_assert(std::is_convertible_v<AsyncValueRef<int32_t>, RCReference<AsyncValue>>);
}

TEST(SeedSnippets, APointerDoesNotCount) {
  const AsyncValueRef<int32_t> ref = make_available_async_value<int32_t>(7);
  const AsyncValuePtr<int32_t> ptr(ref);
  EXPECT_EQ(RCReference<AsyncValue>(ref).use_count(), 2u) << "the temporary's and ref's";
  const auto other = make_unconstructed_async_value<Chain>();
  int32_t seen = 0;
  other.and_then([ptr = ref.as_ptr(), &seen] { seen = *ptr; });
  other.emplace();
  EXPECT_EQ(seen, 7);
  EXPECT_EQ(*ptr, 7);
}

// Every function of the programs gives the same values under a plan: run twice by one instance.
TEST(SeedPrograms, GiveTheSameUnderAPlan) {
  const auto finish = [](SeedProgram& p) { p.later().run_all(); };
  int num_functions = 0;
  for (const char* const file :
       {"copies.graph", "deferred_work.graph", "indirect_async_arg.graph", "indirect_async_return.graph",
        "make_indirect.graph", "share.graph", "use_counts.graph"}) {
    SeedProgram p(file);
    for (const auto& function : p.module->functions()) {
      std::vector<RCReference<AsyncValue>> arguments;
      for (size_t i = 0; i < function->argument_types.size(); ++i)
        arguments.push_back(i32(static_cast<int32_t>(5 + i)));
      const auto executed = execute(*function, arguments, *p.request);
      finish(p);
      const auto instance = PlannedFunction::create(*function)->instance();
      for (int run = 0; run < 2; ++run) {
        const auto planned = instance->run(arguments, *p.request);
        finish(p);
        ASSERT_EQ(planned.size(), executed.size());
        for (size_t i = 0; i < planned.size(); ++i)
          EXPECT_EQ(planned[i]->get<int32_t>(), executed[i]->get<int32_t>())
              << file << " @" << function->name;
      }
      EXPECT_EQ(p.request->describe_waiting(), "");
      ++num_functions;
    }
  }
  EXPECT_GE(num_functions, 14);
}

}  // namespace
}  // namespace coppice::executor
