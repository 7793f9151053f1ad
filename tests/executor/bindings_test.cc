// A thing that a module names as $name is found once, when it is loaded, and is of the type that its
// operation takes.
#include "executor/bindings.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/error.h"
#include "executor/binary.h"
#include "executor/builtin_operations.h"
#include "executor/executor.h"
#include "executor/text.h"

namespace coppice::executor {
namespace {

struct Counter {
  std::shared_ptr<int> value = std::make_shared<int>(0);
};

Registry make_registry() {
  Registry registry;
  add_builtin_operations(registry);
  registry.add_type<Counter>("counter");
  registry.add("count", [](Named<Counter> counter, Constant<int32_t> by, const Chain&) {
    *counter->value += by;
    return Chain();
  });
  return registry;
}

std::string refusal(const std::string& text, Bindings bindings) {
  try {
    LoadedModule::load(parse(text, "m.graph"), make_registry(), std::move(bindings));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "accepted";
}

constexpr const char* kTwice = R"(func @f(%c: chain) -> chain {
  %a = count $steps, 2 (%c)
  %b = count $steps, 3 (%a)
  return %b
}
)";

TEST(Bindings, AreWhatOperationsGet) {
  Counter counter;
  Bindings bindings;
  bindings.add("steps", counter);
  const auto module = LoadedModule::load(parse(kTwice), make_registry(), bindings);
  const auto host = make_intrusive<Host>();
  const auto request = host->start_request();
  for (int i = 0; i < 2; ++i) execute(module->function("f"), {make_available_async_value<Chain>()}, *request);
  EXPECT_EQ(*counter.value, 10);
}

TEST(Bindings, LiveAsLongAsTheModule) {
  Counter counter;
  IntrusivePtr<LoadedModule> module;
  {
    Bindings bindings;
    bindings.add("steps", counter);
    module = LoadedModule::load(parse(kTwice), make_registry(), bindings);
  }
  EXPECT_EQ(counter.value.use_count(), 2);
  module.reset();
  EXPECT_EQ(counter.value.use_count(), 1);
}

TEST(Bindings, OfAWrongNameOrTypeAreRefusedWithTheNearest) {
  Bindings bindings;
  bindings.add("steps", Counter());
  bindings.add("name", std::string("seven"));
  const auto text = [](const char* attribute) {
    return std::string("func @f(%c: chain) -> chain { %a = count ") + attribute + " (%c) return %a }";
  };
  EXPECT_EQ(refusal(text("$stesp, 1"), bindings),
            "m.graph:1:36: @f: count: nothing is bound to $stesp; did you mean $steps?");
  EXPECT_EQ(refusal(text("$quite_another, 1"), bindings),
            "m.graph:1:36: @f: count: nothing is bound to $quite_another");
  EXPECT_EQ(refusal(text("$name, 1"), bindings),
            "m.graph:1:36: @f: attribute 1 of count must be a counter, and $name is a string");
  EXPECT_EQ(refusal(text("7, 1"), bindings), "m.graph:1:36: @f: attribute 1 of count must be a $name");
  EXPECT_EQ(refusal(text("$steps, $steps"), bindings),
            "m.graph:1:36: @f: attribute 2 of count must be a 32-bit integer");
}

TEST(Bindings, HaveNamesOfTheirOwn) {
  Bindings bindings;
  bindings.add("steps", 1);
  const auto refused = [&](const char* name) -> std::string {
    try {
      bindings.add(name, 2);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refused("steps"), "$steps is bound twice");
  EXPECT_EQ(refused("two words"), "\"two words\" is no name to bind: expected letters, digits, '_' and '.'");
  EXPECT_EQ(refused(""), "\"\" is no name to bind: expected letters, digits, '_' and '.'");
  EXPECT_EQ(bindings.size(), 1u);
}

TEST(Bindings, StandInTheTextAndInTheBinaryForm) {
  const Module module = parse(kTwice, "m.graph");
  EXPECT_EQ(print(module), kTwice);
  EXPECT_EQ(decode(encode(module), "m"), module);
  EXPECT_THROW(parse("func @f() { count $ () return }"), Error);
  Module odd = module;
  odd.functions[0].operations[0].attributes[0] = BindingRef{"a b"};
  EXPECT_THROW(check(odd), Error);
}

TEST(MoreEvents, AreTakenAsTheyComeAndCheckedToBeEvents) {
  const std::string text =
      "func @f(%c: chain) -> event { %e = stream.start (%c) %g = stream.join (%e, %e, %e, %e) return %g }";
  EXPECT_EQ(refusal(text, {}), "accepted");
  const std::string wrong =
      "func @f(%c: chain) -> event { %e = stream.start (%c) %g = stream.join (%e, %e, %c) return %g }";
  EXPECT_EQ(refusal(wrong, {}), "m.graph:1:59: @f: argument 3 of stream.join must be event, and %c is chain");
}

}  // namespace
}  // namespace coppice::executor
