// Arguments of a function whose type is known only when they come.
#include <gtest/gtest.h>

#include "tests/executor/test_operations.h"

namespace coppice::executor {
namespace {

RCReference<AsyncValue> text(const char* value) { return make_available_async_value<std::string>(value); }

// Returns the error of `function` when it is called with an untyped indirect value that turns out to be a
// string.
std::string error_of_string(std::string_view program,
                            std::initializer_list<RCReference<AsyncValue>> more = {}) {
  Program p(program);
  const auto open = make_indirect_async_value();
  std::vector<RCReference<AsyncValue>> arguments{open};
  arguments.insert(arguments.end(), more);
  const auto results = execute(p.module->function("f"), arguments, *p.request);
  EXPECT_FALSE(results[0]->is_available());
  open->forward_to(text("forty-two"));
  return results[0]->is_error() ? results[0]->error().what() : "no error";
}

TEST(CheckedArguments, AnUntypedIndirectValueIsCheckedWhenItResolves) {
  EXPECT_EQ(error_of_string("func @f(%x: i32) -> i32 { %y = add.i32 (%x, %x) return %y }"),
            "argument 1 of @f must be i32, and is string [@f add.i32]");
  EXPECT_EQ(error_of_string("func @f(%x: i32) -> i32 { return %x }"),
            "argument 1 of @f must be i32, and is string");
}

TEST(CheckedArguments, SoAreCountsAndConditions) {
  EXPECT_EQ(error_of_string("func @g(%x: i32) -> i32 { return %x }\n"
                            "func @f(%n: i32, %x: i32) -> i32 { %y = repeat @g (%n, %x) return %y }",
                            {i32(1)}),
            "argument 1 of @f must be i32, and is string");
  EXPECT_EQ(error_of_string("func @g(%x: i32) -> i32 { return %x }\n"
                            "func @f(%c: bool, %x: i32) -> i32 { %y = if @g, @g (%c, %x) return %y }",
                            {i32(1)}),
            "argument 1 of @f must be bool, and is string");
}

TEST(CheckedArguments, SoAreThoseThatAThreadOfTheQueueResolves) {
  Program p("func @f(%x: i32) -> i32 { %y = add.i32 (%x, %x) return %y }", WorkQueue::create({.threads = 1}));
  const auto good = make_indirect_async_value(), bad = make_indirect_async_value();
  const auto sum = p.run("f", {good})[0], failed = p.run("f", {bad})[0];
  p.host->queue()->add(0, 0, Task([&] {
                         bad->forward_to(text("forty-two"));
                         good->forward_to(i32(21));
                       }));
  wait(*sum);
  wait(*failed);
  EXPECT_EQ(sum->get<int32_t>(), 42);
  EXPECT_STREQ(failed->error().what(), "argument 1 of @f must be i32, and is string [@f add.i32]");
  p.host->queue()->wait_idle();
}

TEST(CheckedArguments, AnIndirectValueOfTheRightTypeOrAnErrorPasses) {
  Program p("func @f(%x: i32) -> i32 { %y = add.i32 (%x, %x) return %y }");
  const auto good = make_indirect_async_value(), bad = make_indirect_async_value();
  const auto sum = p.run("f", {good})[0], failed = p.run("f", {bad})[0];
  good->forward_to(i32(21));
  bad->forward_to(make_error_async_value(Error(ErrorCode::kIo, "lost")));
  EXPECT_EQ(sum->get<int32_t>(), 42);
  EXPECT_STREQ(failed->error().what(), "lost [@f add.i32]");
}

TEST(CheckedArguments, ATypedIndirectValueIsCheckedAtTheCall) {
  Program p("func @f(%x: i32) -> i32 { return %x }");
  const auto open = make_indirect_async_value<std::string>();
  try {
    p.run("f", {open});
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "argument 1 of @f must be i32, and is string");
  }
  const auto right = make_indirect_async_value<int32_t>();
  EXPECT_EQ(p.run("f", {right})[0], RCReference<AsyncValue>(right));
}

TEST(CheckedArguments, ATypeWithoutANameIsShownAsInCpp) {
  struct Nameless {};
  Program p("func @f(%x: i32) -> i32 { return %x }");
  const auto open = make_indirect_async_value();
  const auto result = p.run("f", {open})[0];
  open->forward_to(make_available_async_value<Nameless>());
  EXPECT_NE(std::string(result->error().what()).find("must be i32, and is "), std::string::npos);
  EXPECT_NE(std::string(result->error().what()).find("Nameless"), std::string::npos);
}

}  // namespace
}  // namespace coppice::executor
