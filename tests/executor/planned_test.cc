// Planned functions: what the seed's tests say of them, and each pair of features that could disturb each
// other.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "executor/capped_memory.h"
#include "tests/executor/bytes_operations.h"

namespace coppice::executor {
namespace {

std::vector<int32_t> iota(int32_t n, int32_t seed) {
  std::vector<int32_t> items;
  for (int32_t i = 0; i < n; ++i) items.push_back(wrapping(i, seed));
  return items;
}

const char* const kChain = R"(
  func @main(%n: i32) -> (bytes, i32) {
    %a = iota (%n, %n)
    %b = iota (%n, %n)
    %c = mix (%a, %b)
    %d = shift 7 (%c)
    %e = both (%d, %c)
    %s = sum (%d)
    return %e, %s
  })";

TEST(Planned, GivesWhatTheExecutorGives) {
  for (const Placement placement : {Placement::kOffsets, Placement::kGroups}) {
    PlannedProgram p(kChain, {.placement = placement});
    for (const int32_t n : {5, 5, 3, 40, 40, 0, 7}) {
      const auto planned = p.run({number(n)}), executed = p.run_executor({number(n)});
      EXPECT_EQ(items_of(*planned[0]), items_of(*executed[0])) << n;
      EXPECT_EQ(planned[1]->get<int32_t>(), executed[1]->get<int32_t>()) << n;
    }
  }
}

// ManagedTensorRanges.NoAliases of the seed's runtime: a value's bytes are another's behind its last use.
TEST(Planned, ValuesThatAreNeverNeededTogetherShareBytes) {
  PlannedProgram p(R"(
    func @main(%n: i32) -> i32 {
      %a = iota (%n, %n)
      %b = both (%a, %a)
      %c = both (%b, %b)
      %d = both (%c, %c)
      %s = sum (%d)
      return %s
    })");
  EXPECT_EQ(p.plan->memory().num_values, 0u) << "no sizes are known yet";
  (void)p.run({number(16)});
  (void)p.run({number(16)});
  const PlannedMemory memory = p.plan->memory();
  EXPECT_EQ(memory.num_values, 4u);
  EXPECT_EQ(memory.naive_bytes, 64u + 128 + 256 + 512);
  EXPECT_EQ(memory.arena_bytes, 256u + 512);
  EXPECT_EQ(memory.least_bytes, 256u + 512);
}

// AliasExtendingLifetimes: a view keeps what it shows.
TEST(Planned, AViewKeepsTheBytesThatItShows) {
  PlannedProgram p(R"(
    func @main(%n: i32) -> i32 {
      %a = iota (%n, %n)
      %v = half (%a)
      %b = iota (%n, %n)
      %c = shift 3 (%b)
      %m = mix (%c, %v)
      %s = sum (%m)
      return %s
    })");
  for (int run = 0; run < 3; ++run)
    EXPECT_EQ(p.run({number(9)})[0]->get<int32_t>(), p.run_executor({number(9)})[0]->get<int32_t>());
  // a until m, and b, which c and then m are made in the place of.
  EXPECT_EQ(p.plan->memory().arena_bytes, 64u + 36);
}

// OverlappingLifetimesContainers: so does a list of views.
TEST(Planned, AListOfViewsKeepsTheBytesThatTheyShow) {
  PlannedProgram p(R"(
    func @main(%n: i32) -> i32 {
      %a = iota (%n, %n)
      %b = shift 1 (%a)
      %l = pair (%b, %b)
      %c = iota (%n, %n)
      %f = first (%l)
      %m = mix (%f, %c)
      %s = sum (%m)
      return %s
    })");
  for (int run = 0; run < 3; ++run)
    EXPECT_EQ(p.run({number(9)})[0]->get<int32_t>(), p.run_executor({number(9)})[0]->get<int32_t>());
}

// OverlappingLifetimesOutputs, and outputs that are views: they are whole after the next run, too.
TEST(Planned, OutputsAreWholeWhileSomebodyHasThem) {
  PlannedProgram p(R"(
    func @main(%n: i32, %seed: i32) -> (bytes, bytes, bytes) {
      %a = iota (%n, %seed)
      %b = shift 5 (%a)
      %v = half (%b)
      %k = iota (%n, %seed)
      %kv = half (%k)
      return %b, %v, %kv
    })");
  std::vector<std::vector<RCReference<AsyncValue>>> all;
  std::vector<std::vector<std::vector<int32_t>>> expected;
  for (int32_t run = 0; run < 6; ++run) {
    all.push_back(p.run({number(20 + run % 2), number(run)}));
    auto& items = expected.emplace_back();
    for (const auto& result : p.run_executor({number(20 + run % 2), number(run)}))
      items.push_back(items_of(*result));
  }
  p.instance.reset();
  p.plan.reset();
  for (size_t run = 0; run < all.size(); ++run) {
    for (size_t i = 0; i < all[run].size(); ++i)
      EXPECT_EQ(items_of(*all[run][i]), expected[run][i]) << run << i;
  }
}

// StaticRuntime.ManageOutputTensors*: the outputs' memory dies with the last of them, in whatever order
// they go, with plan, instance and module gone before or behind.
void expect_outputs_die_together(const std::string& text, const char* function);

TEST(Planned, TheOutputsMemoryDiesWithTheLastOfThem) {
  const std::string text = R"(
    func @main(%n: i32) -> (bytes, bytes, bytes) {
      %a = iota (%n, %n)
      %b = shift 1 (%a)
      %c = both (%a, %b)
      return %a, %b, %c
    }
    func @make(%n: i32) -> bytes {
      %a = iota (%n, %n)
      return %a
    }
    func @round(%a: bytes) -> bytes {
      %b = shift 1 (%a)
      return %b
    }
    func @of_bodies(%n: i32) -> (bytes, bytes, bytes) {
      %a = call @make (%n)
      %x = iota (%n, %n)
      %t = constant.i32 3
      %b = repeat @round (%t, %x)
      %c = call @make (%n)
      return %a, %b, %c
    })";
  for (const char* const function : {"main", "of_bodies"}) expect_outputs_die_together(text, function);
}

void expect_outputs_die_together(const std::string& text, const char* function) {
  int order[] = {0, 1, 2};
  do {
    CappedMemory memory(1 << 20);
    {
      const auto module = LoadedModule::load(parse(text), bytes_registry());
      const auto host = make_intrusive<Host>(nullptr, memory);
      const auto request = host->start_request();
      auto plan = PlannedFunction::create(module->function(function));
      auto instance = plan->instance();
      for (int run = 0; run < 3; ++run) (void)instance->run({number(50)}, *request);
      EXPECT_EQ(memory.used_bytes(), 0u) << "nobody has the first runs' outputs";
      auto results = instance->run({number(50)}, *request);
      instance.reset();
      plan.reset();
      const size_t used = memory.used_bytes();
      EXPECT_GE(used, 50u * 4 * 4);
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(memory.used_bytes(), used) << "dropping one gives nothing back early";
        results[static_cast<size_t>(order[i])].reset();
      }
      EXPECT_EQ(memory.used_bytes(), 0u) << "and the last one all of it";
    }
  } while (std::next_permutation(std::begin(order), std::end(order)));
}

TEST(Planned, CopyingAnOutputOutIsCounted) {
  PlannedProgram p(kChain);
  (void)p.run({number(8)});
  const auto results = p.run({number(8)});
  EXPECT_EQ(p.plan->num_copied_outputs(), 0);
  const HostBytes copy = results[0]->get<HostBytes>().copy_out();
  EXPECT_EQ(p.plan->num_copied_outputs(), 1);
  EXPECT_NE(copy.data(), results[0]->get<HostBytes>().data());
  const HostBytes shared = results[0]->get<HostBytes>();
  EXPECT_EQ(shared.data(), results[0]->get<HostBytes>().data())
      << "a copy of a value in counted memory refers to it";
  EXPECT_EQ(p.plan->num_copied_outputs(), 1);
}

// DisableManageOutputTensors.
TEST(Planned, OutputsMayHaveMemoryOfTheirOwn) {
  PlannedProgram p(kChain, {.manages_outputs = false});
  for (int run = 0; run < 3; ++run) {
    const auto results = p.run({number(8)});
    EXPECT_EQ(items_of(*results[0]), items_of(*p.run_executor({number(8)})[0]));
  }
  EXPECT_EQ(p.plan->memory().output_bytes, 0u);
}

// The resizing that the seed calls standard: a value that outgrows its place has memory of its own in that
// run, the next has room, and nothing shrinks.
TEST(Planned, SizesAreLearnedAndNeverShrink) {
  for (const Placement placement : {Placement::kOffsets, Placement::kGroups}) {
    PlannedProgram p(kChain, {.placement = placement});
    const auto bytes_after = [&](int32_t n) {
      EXPECT_EQ(items_of(*p.run({number(n)})[0]), items_of(*p.run_executor({number(n)})[0]));
      return p.plan->memory().arena_bytes;
    };
    const size_t small = bytes_after(16);
    EXPECT_EQ(p.instance->counters().outgrown, 1);
    EXPECT_EQ(bytes_after(16), small);
    EXPECT_EQ(p.instance->counters().outgrown, 1);
    const size_t large = bytes_after(100);
    EXPECT_EQ(p.instance->counters().outgrown, 2);
    EXPECT_GT(large, small);
    EXPECT_EQ(bytes_after(100), large);
    EXPECT_EQ(bytes_after(4), large);
    EXPECT_EQ(p.instance->counters().outgrown, 2);
    EXPECT_EQ(p.instance->clone()->run({number(100)}, *p.request).size(), 2u);
    EXPECT_EQ(p.plan->memory().arena_bytes, large) << "a clone begins with what was learned";
  }
}

// Rounds write into two places by turns. Seen to fail: each learned the sizes of its own rounds alone, so
// that a further round of a size that was known outgrew its place.
TEST(Planned, PlacesOfALoopsRoundsLearnTogether) {
  struct Case {
    const char *type, *returns;
    size_t bytes_of_one, bytes_of_two;  // with those of %a, which an output may be
  };
  for (const auto& [type, returns, bytes_of_one, bytes_of_two] :
       {Case{"i32", "%s", 64 + 16, 2 * 1216 + 300}, Case{"bytes", "%x", 64, 2 * 1216}}) {
    PlannedProgram p(fmt::format(R"(
      func @twice(%x: bytes) -> bytes {{
        %y = both (%x, %x)
        return %y
      }}
      func @main(%n: i32, %times: i32) -> {} {{
        %a = iota (%n, %n)
        %x = repeat @twice (%times, %a)
        %s = sum (%x)
        return {}
      }})",
                                 type, returns));
    const auto run = [&](int32_t n, int32_t times) {
      const auto planned = p.run({number(n), number(times)}),
                 executed = p.run_executor({number(n), number(times)});
      if (returns[1] == 's')
        EXPECT_EQ(planned[0]->get<int32_t>(), executed[0]->get<int32_t>());
      else
        EXPECT_EQ(items_of(*planned[0]), items_of(*executed[0]));
    };
    run(4, 1);
    const auto room = [&] { return p.plan->memory().arena_bytes + p.plan->memory().output_bytes; };
    EXPECT_EQ(room(), bytes_of_one) << "a loop of one round has no second place";
    run(75, 2);  // 150 items, and 300, which is the most
    EXPECT_EQ(p.instance->counters().outgrown, 2);
    run(75, 3), run(75, 4), run(75, 5);
    EXPECT_EQ(p.instance->counters().outgrown, 2);
    EXPECT_EQ(room(), bytes_of_two);
  }
}

TEST(Planned, AResultMayTakeAnArgumentsPlace) {
  PlannedProgram p(R"(
    func @main(%n: i32) -> i32 {
      %a = iota (%n, %n)
      %b = shift 1 (%a)
      %c = shift 2 (%b)
      %d = mix (%c, %c)
      %s = sum (%d)
      return %s
    })");
  for (int run = 0; run < 3; ++run)
    EXPECT_EQ(p.run({number(16)})[0]->get<int32_t>(), p.run_executor({number(16)})[0]->get<int32_t>());
  // d reads c twice, so that it is not made in its place.
  EXPECT_EQ(p.plan->memory().arena_bytes, 128u);
  EXPECT_NE(p.plan->explain().find("in an argument's place"), std::string::npos) << p.plan->explain();
}

TEST(Planned, WhatAFallbackMayKeepIsNotPlanned) {
  PlannedProgram p(R"(
    func @main(%n: i32, %seed: i32) -> i32 {
      %a = iota (%n, %seed)
      %k = keep (%a)
      %b = iota (%n, %n)
      %m = mix (%k, %b)
      %s = sum (%m)
      return %s
    })");
  std::vector<std::vector<int32_t>> expected;
  for (int32_t run = 0; run < 4; ++run) {
    (void)p.run({number(12), number(run)});
    expected.push_back(iota(12, run));
  }
  const auto kept = p.host->shared<KeptBytes>().take();
  ASSERT_EQ(kept.size(), 4u);
  for (size_t run = 0; run < 4; ++run) EXPECT_EQ(items_of(kept[run].value()), expected[run]);
}

// A loop's rounds write where the outputs lie, by turns: a copy that counted a reference to that was
// overwritten two rounds later.
TEST(Planned, CopiesOfALoopsValuesKeepTheirBytes) {
  for (const char* const loop : {"%c = repeat @round (%n, %a)", "%c = call @loop (%n, %a)"}) {
    PlannedProgram p(R"(
      func @round(%x: bytes) -> bytes {
        %y = shift 1 (%x)
        %k = note (%y)
        return %y
      }
      func @loop(%n: i32, %x: bytes) -> bytes {
        %y = repeat @round (%n, %x)
        return %y
      }
      func @main(%n: i32) -> bytes {
        %a = iota (%n, %n)
        )" + std::string(loop) +
                     R"(
        return %c
      })");
    NotedBytes& noted = noted_bytes();
    for (int run = 0; run < 4; ++run) {
      const auto expected = p.run_executor({number(5)});
      const std::vector<HostBytes> right = noted.take();
      const auto planned = p.run({number(5)});
      EXPECT_EQ(items_of(noted.take()), items_of(right)) << run;
      EXPECT_EQ(items_of(*planned[0]), items_of(*expected[0]));
      // The result counts its memory, and so does its copy.
      const HostBytes copy = planned[0]->get<HostBytes>();
      EXPECT_EQ(copy.data(), planned[0]->get<HostBytes>().data());
    }
  }
}

TEST(Planned, ErrorsAreTheExecutorsWithPathAndPlace) {
  PlannedProgram p(R"(
    func @inner(%a: bytes) -> bytes {
      %b = fail_odd (%a)
      return %b
    }
    func @main(%n: i32) -> (i32, bytes, i32) {
      %a = iota (%n, %n)
      %f = call @inner (%a)
      %s = sum (%f)
      %b = shift 1 (%a)
      %t = sum (%b)
      return %s, %f, %t
    })");
  for (const int32_t n : {4, 5, 4, 7, 7, 8}) {
    const auto planned = p.run({number(n)}), executed = p.run_executor({number(n)});
    for (size_t i = 0; i < planned.size(); ++i) {
      ASSERT_EQ(planned[i]->is_error(), executed[i]->is_error()) << n << " " << i;
      if (!planned[i]->is_error()) continue;
      EXPECT_STREQ(planned[i]->error().what(), executed[i]->error().what());
    }
    EXPECT_EQ(planned[2]->get<int32_t>(), executed[2]->get<int32_t>());
  }
}

TEST(Planned, AValueThatDoesNotFitTheHostsMemoryIsAnError) {
  CappedMemory memory(4096);
  {
    const auto module = LoadedModule::load(parse(kChain), bytes_registry());
    const auto host = make_intrusive<Host>(nullptr, memory);
    const auto request = host->start_request();
    const auto plan = PlannedFunction::create(module->function("main"));
    const auto instance = plan->instance();
    for (int run = 0; run < 2; ++run) {
      const auto results = instance->run({number(100'000)}, *request);
      EXPECT_EQ(results[0]->error().code(), ErrorCode::kOutOfMemory);
      EXPECT_EQ(instance->run({number(50)}, *request)[0]->is_error(), false);
    }
    const auto negative = instance->run({number(-1)}, *request);
    EXPECT_EQ(negative[0]->error().code(), ErrorCode::kOutOfRange);
  }
}

TEST(Planned, BodiesShareTheArenaWithTheirCaller) {
  PlannedProgram p(R"(
    func @then(%a: bytes) -> bytes {
      %b = both (%a, %a)
      %c = both (%b, %b)
      %d = mix (%c, %a)
      return %d
    }
    func @else(%a: bytes) -> bytes {
      %b = shift 3 (%a)
      return %b
    }
    func @round(%x: bytes, %y: bytes) -> (bytes, bytes) {
      %t = both (%x, %y)
      %u = mix (%t, %y)
      return %u, %y
    }
    func @main(%n: i32, %c: bool, %times: i32) -> i32 {
      %a = iota (%n, %n)
      %b = if @then, @else (%c, %a)
      %x, %y = repeat @round (%times, %b, %a)
      %m = mix (%x, %y)
      %s = sum (%m)
      return %s
    })");
  for (int run = 0; run < 3; ++run) {
    for (const bool c : {true, false}) {
      for (const int32_t times : {0, 1, 2, 5}) {
        const auto flag = make_available_async_value<bool>(c).release_rc_reference();
        EXPECT_EQ(p.run({number(16), flag, number(times)})[0]->get<int32_t>(),
                  p.run_executor({number(16), flag, number(times)})[0]->get<int32_t>())
            << c << times;
      }
    }
  }
  EXPECT_EQ(p.instance->counters().outgrown, 3) << p.plan->explain();
  const PlannedMemory memory = p.plan->memory();
  EXPECT_LT(memory.arena_bytes, memory.naive_bytes);
}

// Values that a loop exchanges must not be written over while it is still read.
TEST(Planned, ALoopThatExchangesItsValuesIsRight) {
  PlannedProgram p(R"(
    func @swap(%x: bytes, %y: bytes) -> (bytes, bytes) {
      %u = mix (%x, %y)
      return %u, %x
    }
    func @main(%n: i32, %times: i32) -> (bytes, bytes) {
      %a = iota (%n, %n)
      %b = shift 2 (%a)
      %x, %y = repeat @swap (%times, %a, %b)
      return %x, %y
    })");
  for (const int32_t times : {0, 1, 2, 3, 6, 6}) {
    const auto planned = p.run({number(9), number(times)}),
               executed = p.run_executor({number(9), number(times)});
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(items_of(*planned[i]), items_of(*executed[i])) << times;
  }
}

TEST(Planned, AFunctionThatCallsItselfRunsAsTheExecutorRunsIt) {
  PlannedProgram p(R"(
    func @stop(%n: i32, %a: bytes) -> bytes { return %a }
    func @down(%n: i32, %a: bytes) -> bytes {
      %one = constant.i32 1
      %m = sub.i32 (%n, %one)
      %b = shift 1 (%a)
      %more = is_positive (%m)
      %c = if @down, @stop (%more, %m, %b)
      return %c
    }
    func @main(%n: i32) -> i32 {
      %a = iota (%n, %n)
      %b = call @down (%n, %a)
      %s = sum (%b)
      return %s
    })");
  for (int run = 0; run < 3; ++run)
    EXPECT_EQ(p.run({number(6)})[0]->get<int32_t>(), p.run_executor({number(6)})[0]->get<int32_t>());
}

TEST(Planned, TheFirstImplementationThatMatchesIsTaken) {
  Registry registry = bytes_registry();
  int small = 0, any = 0;
  registry.add("twice", [](int32_t a, Constant<int32_t> by) { return a * by; });
  const auto is_small = [](const OperationUse& use) {
    return std::get<int64_t>(*use.attributes[0].value) < 3;
  };
  registry.add_out_variant(
      "spread",
      [&small](int32_t n, Constant<int32_t>, OutBytes out) {
        ++small, out.resize<int32_t>(static_cast<size_t>(n))[0] = 1;
      },
      is_small);
  registry.add_out_variant("spread", [&any](int32_t n, Constant<int32_t>, OutBytes out) {
    ++any, out.resize<int32_t>(static_cast<size_t>(n))[0] = 2;
  });
  const auto module = LoadedModule::load(parse(R"(
    func @main(%n: i32) -> (bytes, bytes) {
      %a = spread 1 (%n)
      %b = spread 5 (%n)
      return %a, %b
    })"),
                                         registry);
  const auto host = make_intrusive<Host>();
  const auto request = host->start_request();
  const auto plan = PlannedFunction::create(module->function("main"));
  const auto results = plan->instance()->run({number(1)}, *request);
  EXPECT_EQ(items_of(*results[0]), std::vector<int32_t>{1});
  EXPECT_EQ(items_of(*results[1]), std::vector<int32_t>{2});
  EXPECT_EQ(small, 1);
  EXPECT_EQ(any, 1);
}

// An exact plan of this would take minutes.
TEST(Planned, ALongFunctionIsPlannedSoon) {
  std::string text = "func @main(%n: i32) -> i32 {\n%v0 = iota (%n, %n)\n";
  for (int i = 0; i < 2000; ++i)
    text += fmt::format("%v{} = both (%v{}, %v{})\n", i + 1, i, std::max(0, i - 7 * (i % 5)));
  PlannedProgram p(text + "%s = sum (%v2000)\nreturn %s\n}");
  for (int run = 0; run < 2; ++run)
    EXPECT_EQ(p.run({number(6)})[0]->get<int32_t>(), p.run_executor({number(6)})[0]->get<int32_t>());
  EXPECT_EQ(p.plan->memory().num_values, 2001u);
}

TEST(Planned, CallsThatAreVeryDeepEndInTheExecutorsError) {
  std::string text = "func @f0(%n: i32) -> i32 { return %n }\n";
  for (int i = 1; i <= 5000; ++i)
    text += fmt::format("func @f{}(%n: i32) -> i32 {{ %m = call @f{} (%n) return %m }}\n", i, i - 1);
  PlannedProgram p(text +
                   "func @main(%n: i32) -> i32 { %m = call @f5000 (%n) %k = add.i32 (%m, %m) return %k }");
  const auto results = p.run({number(1)});
  ASSERT_TRUE(results[0]->is_error());
  EXPECT_NE(results[0]->error().message().find("more than 500 functions call each other"), std::string::npos);
  PlannedProgram shallow(text + "func @main(%n: i32) -> i32 { %m = call @f300 (%n) return %m }");
  EXPECT_EQ(shallow.run({number(7)})[0]->get<int32_t>(), 7) << "deeper than plans go";
}

TEST(Planned, AnOutVariantThatAsksForNoRoomLeavesAnEmptyResult) {
  Registry registry = bytes_registry();
  registry.add_out_variant("maybe", [](int32_t n, OutBytes out) {
    if (n > 3) std::ranges::fill(out.resize<int32_t>(static_cast<size_t>(n)), n);
  });
  const auto module = LoadedModule::load(
      parse("func @main(%n: i32) -> i32 {\n%a = maybe (%n)\n%s = sum (%a)\nreturn %s\n}"), registry);
  const auto request = make_intrusive<Host>()->start_request();
  const auto instance = PlannedFunction::create(module->function("main"))->instance();
  for (const int32_t n : {8, 8, 2, 5, 0}) {
    EXPECT_EQ(instance->run({number(n)}, *request)[0]->get<int32_t>(),
              execute(module->function("main"), {number(n)}, *request)[0]->get<int32_t>());
  }
}

// An empty type with a destructor: its count is beside it.
int tokens = 0;
struct EmptyToken {
  EmptyToken() { ++tokens; }
  EmptyToken(const EmptyToken&) { ++tokens; }
  ~EmptyToken() { --tokens; }
};

TEST(Planned, ValuesOfTypesWithDestructorsDieAtTheirLastUse) {
  Registry registry = bytes_registry();
  registry.add_type<EmptyToken>("token");
  registry.add("make_token", [](int32_t) { return EmptyToken(); });
  registry.add("look", [](const EmptyToken&) { return tokens; });
  const auto module = LoadedModule::load(
      parse("func @main(%n: i32) -> i32 {\n%t = make_token (%n)\n%u = look (%t)\nreturn %u\n}"), registry);
  const auto request = make_intrusive<Host>()->start_request();
  {
    const auto instance = PlannedFunction::create(module->function("main"))->instance();
    for (int run = 0; run < 3; ++run) {
      EXPECT_EQ(instance->run({number(1)}, *request)[0]->get<int32_t>(), 1);
      EXPECT_EQ(tokens, 0);
    }
  }
  EXPECT_EQ(tokens, 0);
}

TEST(Planned, ANamedThingMayKeepWhatANativeFunctionSees) {
  struct Store {
    HostBytes last;
  };
  Registry registry = bytes_registry();
  registry.add_type<Store>("store");
  registry.add("show", [](const HostBytes& a, Named<Store> store) {
    store->last = a.view(0, a.size_bytes());
    return static_cast<int32_t>(a.size_bytes());
  });
  registry.add("shown", [](int32_t, Named<Store> store) {
    return store->last.size_bytes() == 0 ? 0 : store->last.as<int32_t>()[0];
  });
  Bindings bindings;
  bindings.add("store", Store());
  const auto module = LoadedModule::load(parse(R"(
    func @main(%n: i32) -> i32 {
      %a = iota (%n, %n)
      %s = show $store (%a)
      %b = iota (%s, %s)
      %c = sum (%b)
      %d = shown $store (%c)
      return %d
    })"),
                                         registry, bindings);
  const auto request = make_intrusive<Host>()->start_request();
  const auto instance = PlannedFunction::create(module->function("main"))->instance();
  for (int run = 0; run < 3; ++run)
    EXPECT_EQ(instance->run({number(8)}, *request)[0]->get<int32_t>(), wrapping(0, 8));
}

TEST(Planned, UsesThatNoImplementationTakesAreErrorsOfLoading) {
  Registry registry = bytes_registry();
  registry.add_out_variant(
      "spread",
      [](int32_t n, Constant<int32_t>, OutBytes out) { out.resize<int32_t>(static_cast<size_t>(n))[0] = 1; },
      [](const OperationUse& use) { return std::get<int64_t>(*use.attributes[0].value) < 3; });
  const auto load = [&](const char* by) {
    return LoadedModule::load(
        parse(fmt::format("func @main(%n: i32) -> bytes {{\n%a = spread {} (%n)\nreturn %a\n}}", by),
              "m.graph"),
        registry);
  };
  const auto request = make_intrusive<Host>()->start_request();
  EXPECT_EQ(items_of(*execute(load("1")->function("main"), {number(1)}, *request)[0]),
            std::vector<int32_t>{1});
  try {
    (void)load("5");
    FAIL() << "loaded";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "m.graph:2:6: @main: no implementation of spread takes this use of it");
  }
}

// docs/plans.md shows this.
TEST(Planned, ExplainsPlacesOfArgumentsAndOutputs) {
  PlannedProgram p(R"(
    func @main(%n: i32) -> (bytes, i32) {
      %a = iota (%n, %n)
      %b = shift 7 (%a)
      %c = both (%b, %b)
      %s = sum (%b)
      return %c, %s
    })");
  (void)p.run({number(16)});
  EXPECT_EQ(p.plan->explain(),
            "@main: 2 values of 128 bytes together in 64; no plan needs less; outputs of 128 bytes\n"
            "  %a [0, 64) = iota: out variant\n"
            "  %b [0, 64) = shift: out variant, in an argument's place\n"
            "  %c [outputs 0, 128) = both: out variant\n"
            "  %s = sum: native\n");
}

TEST(Planned, ExplainsHowEachOperationIsRun) {
  PlannedProgram p(R"(
    func @main(%n: i32) -> (bytes, i32) {
      %a = iota (%n, %n)
      %b = shift 7 (%a)
      %k = keep (%b)
      %s = sum (%k)
      return %k, %s
    })");
  (void)p.run({number(16)});
  EXPECT_EQ(p.plan->explain(),
            "@main: 1 value of 64 bytes together in 64; no plan needs less\n"
            "  %a [0, 64) = iota: out variant\n"
            "  %b = shift: out variant\n"
            "  %k = keep: fallback\n"
            "  %s = sum: native\n");
  EXPECT_NE(p.plan->memory_picture().find("%a"), std::string::npos);
}

// The depth is that of the stack, whoever runs the functions on it.
TEST(Planned, FunctionsAreNestedAsDeepAsTheExecutorLetsThem) {
  PlannedProgram p(R"(
    func @zero(%x: i32) -> i32 { return %x }
    func @main(%x: i32) -> i32 {
      %one = constant.i32 1
      %y = sub.i32 (%x, %one)
      %none = constant.i32 0
      %more = less.i32 (%none, %y)
      %o = if @main, @zero (%more, %y)
      return %o
    })");
  for (const int depth : {200, 498, 499, 500, 501, 700}) {
    const auto planned = p.run({number(depth)})[0], executed = p.run_executor({number(depth)})[0];
    ASSERT_EQ(planned->is_error(), executed->is_error()) << depth;
    EXPECT_EQ(planned->is_error(), depth >= 500) << depth;
    if (planned->is_error()) {
      EXPECT_STREQ(planned->error().what(), executed->error().what());
    }
  }
}

TEST(Planned, AnOperationThatRunsInstancesWithoutEndIsAnError) {
  Registry registry;
  add_builtin_operations(registry);
  registry.add("run.instance",
               [](Constant<LoadedFunction> function, int32_t x, Result<int32_t> result, Request& request) {
                 const auto instance = PlannedFunction::create(function.get())->instance();
                 const auto value = instance->run({number(x)}, request)[0];
                 if (value->is_error())
                   result.set_error(value->error());
                 else
                   result.emplace(value->get<int32_t>());
               });
  const auto module = LoadedModule::load(
      parse("func @main(%x: i32) -> i32 { %y = run.instance @main (%x) return %y }"), registry);
  const auto host = make_intrusive<Host>();
  const auto request = host->start_request();
  const auto value = execute(module->function("main"), {number(1)}, *request)[0];
  ASSERT_TRUE(value->is_error());
  EXPECT_NE(std::string_view(value->error().what()).find("more than 500 functions call each other"),
            std::string_view::npos);
}

}  // namespace
}  // namespace coppice::executor
