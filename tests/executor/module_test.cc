// executor/module.h: use counts, and each thing that check() refuses, from a module that is right but for it.
#include "executor/module.h"

#include <gtest/gtest.h>

#include <functional>

#include "core/error.h"
#include "executor/names.h"
#include "executor/text.h"

namespace coppice::executor {
namespace {

Module valid() {
  return parse(R"(func @f(%x: i32) -> i32 {
  %y, %z = op 1, @g (%x, %x)
  use(%y)
  return %z
}
func @g() {
  return
}
)",
               "f.cpx");
}

struct Broken {
  std::function<void(Module&)> change;
  const char* error;
};

const Broken kBroken[] = {
    {[](Module& m) { m.functions[1].name = "f"; },
     "f.cpx:6:6: function @f is defined twice; first at line 1, column 6"},
    {[](Module& m) { m.functions[1].name = ""; },
     "f.cpx:6:6: \"\" is no name of a function: expected letters, digits, '_' and '.'"},
    {[](Module& m) { m.functions[0].argument_types[0] = "i\n32"; },
     "f.cpx:1:6: \"i\\n32\" is no name of a type: expected letters, digits, '_' and '.'"},
    {[](Module& m) { m.functions[0].result_types[0] = "i-32"; },
     "f.cpx:1:6: \"i-32\" is no name of a type: expected letters, digits, '_' and '.'"},
    {[](Module& m) {
       m.functions[1].argument_types = {"i32", "i32"};
     },
     "f.cpx:6:6: function @g has 2 arguments and only 0 registers"},
    {[](Module& m) { m.functions[0].returns.push_back(0); },
     "f.cpx:4:3: function @f has 1 results and returns 2"},
    {[](Module& m) { m.functions[0].result_types.clear(); },
     "f.cpx:4:3: function @f has 0 results and returns 1"},
    {[](Module& m) { m.functions[0].returns[0] = 3; },
     "f.cpx:4:3: `return` names register number 3, and function @f has 3"},
    {[](Module& m) { m.functions[0].registers[1].name = "%y"; },
     "f.cpx:1:6: \"%y\" is no name of a register: expected letters, digits, '_' and '.'"},
    {[](Module& m) { m.functions[0].registers[1].name = "x"; },
     "f.cpx:1:6: two registers of function @f have the name %x"},
    {[](Module& m) { m.functions[0].registers.push_back({"w"}); },
     "f.cpx:1:6: register %w is never set in function @f"},
    {[](Module& m) { m.functions[0].operations[0].name = "2d"; },
     "f.cpx:2:12: \"2d\" is no name of an operation: expected letters, digits, '_' and '.', the first a "
     "letter or '_', "
     "and no word of the text form"},
    {[](Module& m) { m.functions[0].operations[0].name = "nan"; },
     "f.cpx:2:12: \"nan\" is no name of an operation: expected letters, digits, '_' and '.', the first a "
     "letter or '_', "
     "and no word of the text form"},
    {[](Module& m) { m.functions[0].operations[0].attributes[1] = FunctionRef{"h"}; },
     "f.cpx:2:12: op refers to \"h\", and there is no such function"},
    {[](Module& m) { m.functions[0].operations[0].attributes[1] = std::vector<double>(); },
     "f.cpx:2:12: op has an empty list that is not one of integers"},
    {[](Module& m) { m.functions[0].operations[1].arguments[0] = 3; },
     "f.cpx:3:3: use names register number 3, and function @f has 3"},
    {[](Module& m) { m.functions[0].operations[0].results[0] = 4; },
     "f.cpx:2:12: op names register number 4, and function @f has 3"},
    {[](Module& m) { m.functions[0].operations[0].results[0] = 0; },
     "f.cpx:2:12: op sets register %x, which is set already"},
    {[](Module& m) { m.functions[0].operations[0].results[1] = 1; },
     "f.cpx:2:12: op sets register %y, which is set already"},
    {[](Module& m) {
       m.functions[0].operations[0].results = {2, 1};
     },
     "f.cpx:2:12: op sets register %z, and the next in order is %y"},
    {[](Module& m) { m.functions[0].operations[0].results.pop_back(); },
     "f.cpx:1:6: register %z is never set in function @f"},
    {[](Module& m) { ++m.functions[0].registers[0].use_count; },
     "f.cpx:1:6: register %x has use count 4, and its uses in function @f make 3"},
    {[](Module& m) { m.functions[0].registers[0].used_by.clear(); },
     "f.cpx:2:12: the used-by record of %x lacks the use by op, or is not ascending"},
    {[](Module& m) {
       m.functions[0].registers[1].used_by = {0, 1};
     },
     "f.cpx:3:3: the used-by record of %y lacks the use by use, or is not ascending"},
    {[](Module& m) { m.functions[0].registers[2].used_by = {1}; },
     "f.cpx:1:6: the used-by record of %z names an operation that does not use it"},
};

TEST(Module, CheckAcceptsWhatIsRight) { EXPECT_NO_THROW(check(valid())); }

TEST(Module, CheckRefusesEachThingThatIsWrong) {
  for (const Broken& broken : kBroken) {
    Module m = valid();
    broken.change(m);
    try {
      check(m);
      ADD_FAILURE() << "accepted, expected: " << broken.error;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
      EXPECT_STREQ(e.what(), broken.error);
    }
  }
}

TEST(Module, UsesAreCountedAnew) {
  Module m = valid();
  for (Register& r : m.functions[0].registers) r.use_count = 77, r.used_by = {9, 9};
  count_uses(m.functions[0]);
  EXPECT_EQ(m, valid());
  EXPECT_EQ(m.functions[0].registers[0], (Register{"x", 3, {0}}));
  EXPECT_EQ(m.functions[0].registers[1], (Register{"y", 2, {1}}));
  EXPECT_EQ(m.functions[0].registers[2], (Register{"z", 2, {}}));
}

TEST(Names, AreLettersDigitsUnderscoresAndPoints) {
  EXPECT_TRUE(is_name("a.B_9"));
  EXPECT_TRUE(is_name("0"));
  for (const char* name : {"", "a b", "a-b", "%a", "\xc3\xa4"}) EXPECT_FALSE(is_name(name)) << name;
}

TEST(Names, OfOperationsCannotBeMistaken) {
  EXPECT_TRUE(is_operation_name("_0"));
  EXPECT_TRUE(is_operation_name("returns"));
  for (const char* name : {"", "2d", ".a", "func", "return", "true", "false", "inf", "nan"})
    EXPECT_FALSE(is_operation_name(name)) << name;
}

}  // namespace
}  // namespace coppice::executor
