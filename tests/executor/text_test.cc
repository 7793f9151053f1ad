// executor/text.h: what parses to what, every error of the parser with its place, and round trips.
#include "executor/text.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <bit>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace coppice::executor {
namespace {

constexpr const char* kAddFive = R"(// Adds five, twice.
func @add_five(%x: i32) -> i32 {
  %five = constant.i32 5
  %sum = add.i32(%x, %five)
  return %sum
}
func @main() -> (i32, i32) {
  %a = constant.i32 1
  %b = call @add_five (%a)
  %c = call @add_five (%b)
  return %b, %c
}
)";

// Returns what parse() says of a text, or "no error".
std::string error_of(std::string_view text) {
  try {
    parse(text, "f.cpx");
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kInvalidArgument);
    return e.what();
  }
  return "no error";
}

// The attributes of the one operation `op` with these.
std::vector<Attribute> attributes_of(std::string_view attributes) {
  const Module m = parse("func @f() { op " + std::string(attributes) + " return }");
  return m.functions.at(0).operations.at(0).attributes;
}

TEST(Text, HasWhatTheFunctionSays) {
  const Module m = parse(kAddFive, "add.cpx");
  EXPECT_EQ(m.file, "add.cpx");
  ASSERT_EQ(m.functions.size(), 2u);
  const Function& f = m.functions[0];
  EXPECT_EQ(f.name, "add_five");
  EXPECT_EQ(f.argument_types, std::vector<std::string>{"i32"});
  EXPECT_EQ(f.result_types, std::vector<std::string>{"i32"});
  ASSERT_EQ(f.registers.size(), 3u);
  EXPECT_EQ(f.registers[0], (Register{"x", 2, {1}}));
  EXPECT_EQ(f.registers[1], (Register{"five", 2, {1}}));
  EXPECT_EQ(f.registers[2], (Register{"sum", 2, {}}));
  ASSERT_EQ(f.operations.size(), 2u);
  EXPECT_EQ(f.operations[0], (Operation{"constant.i32", {int64_t{5}}, {}, {1}, {3, 11}}));
  EXPECT_EQ(f.operations[1], (Operation{"add.i32", {}, {0, 1}, {2}, {4, 10}}));
  EXPECT_EQ(f.returns, std::vector<uint32_t>{2});
  EXPECT_EQ(f.position, (Position{2, 6}));
  EXPECT_EQ(f.return_position, (Position{5, 3}));
  EXPECT_EQ(m.functions[1].operations[1].attributes, std::vector<Attribute>{FunctionRef{"add_five"}});
  EXPECT_EQ(m.functions[1].registers[1], (Register{"b", 3, {2}}));
}

TEST(Text, CountsEveryPlaceOfAUse) {
  const Function f =
      parse("func @f(%x: t) -> (t, t) { %y = op(%x, %x) op(%y, %x) return %x, %x }").functions[0];
  EXPECT_EQ(f.registers[0], (Register{"x", 6, {0, 1}}));
  EXPECT_EQ(f.registers[1], (Register{"y", 2, {1}}));
}

TEST(Text, LetsARegisterBeUsedBeforeItIsSet) {
  const Function f = parse("func @f() -> t { %y = op(%x) %x = op return %y }").functions[0];
  EXPECT_EQ(f.operations[0].arguments, std::vector<uint32_t>{1});
  EXPECT_EQ(f.registers[1], (Register{"x", 2, {0}}));
}

TEST(Text, TakesLineEndsAndCommentsAsBlanks) {
  const std::string spread =
      "func\n@f(\r\n%x:i32 // the only one\n)->\n(i32){%y\n=op // none\n5,//\n6\n(%x)return\t%y}//end";
  const std::string expected = "func @f(%x: i32) -> i32 {\n  %y = op 5, 6 (%x)\n  return %y\n}\n";
  EXPECT_EQ(print(parse(spread)), expected);
  EXPECT_EQ(print(parse(expected)), expected);
}

TEST(Text, OfNoFunctionsIsAModuleToo) {
  EXPECT_TRUE(parse("").functions.empty());
  EXPECT_TRUE(parse(" // nothing").functions.empty());
  EXPECT_EQ(print(Module{}), "");
}

TEST(Text, TakesEmptyListsAndPrintsNone) {
  EXPECT_EQ(print(parse("func @f() -> () { op() return }")), "func @f() {\n  op\n  return\n}\n");
}

TEST(Text, NamesMayBeDigitsButForOperations) {
  const std::string text = "func @1(%0: 2d, %.: 3) -> 4e {\n  %true, %return = _.2d(%0)\n  return %true\n}\n";
  EXPECT_EQ(print(parse(text)), text);
}

TEST(Text, ReadsEveryKindOfAttribute) {
  const auto read = attributes_of(R"(true, false, 42, -7, 1.5, -2e3, inf, -inf, nan, "a b", @f)");
  ASSERT_EQ(read.size(), 11u);
  EXPECT_EQ(read[0], Attribute(true));
  EXPECT_EQ(read[1], Attribute(false));
  EXPECT_EQ(read[2], Attribute(int64_t{42}));
  EXPECT_EQ(read[3], Attribute(int64_t{-7}));
  EXPECT_EQ(read[4], Attribute(1.5));
  EXPECT_EQ(read[5], Attribute(-2000.0));
  EXPECT_EQ(read[6], Attribute(std::numeric_limits<double>::infinity()));
  EXPECT_EQ(read[7], Attribute(-std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(std::isnan(std::get<double>(read[8])));
  EXPECT_EQ(read[9], Attribute(std::string("a b")));
  EXPECT_EQ(read[10], Attribute(FunctionRef{"f"}));
  const auto lists = attributes_of(R"([], [1, -2], [1.5, inf, nan:7ff8000000000001], ["a, b", ""])");
  ASSERT_EQ(lists.size(), 4u);
  EXPECT_EQ(lists[0], Attribute(std::vector<int64_t>()));
  EXPECT_EQ(lists[1], Attribute(std::vector<int64_t>{1, -2}));
  EXPECT_EQ(std::get<std::vector<double>>(lists[2]).size(), 3u);
  EXPECT_EQ(lists[3], Attribute(std::vector<std::string>{"a, b", ""}));
  const std::string text =
      "func @f() {\n  op [], [1, -2], [1.5, inf, nan:7ff8000000000001], [\"a, b\", \"\"]\n  return\n}\n";
  EXPECT_EQ(print(parse(text)), text);
}

TEST(Text, ReadsCsEscapes) {
  const auto read = attributes_of(R"("\"\\\'\?\a\b\f\n\r\t\v\0\7z\1234\xfz\x41" )");
  EXPECT_EQ(std::get<std::string>(read[0]), std::string("\"\\'?\a\b\f\n\r\t\v\0\7zS4\xfzA", 19));
}

TEST(Text, PrintsEveryByteOfAString) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte), all += '7';
  Module m = parse("func @f() { op \"\" return }");
  m.functions[0].operations[0].attributes[0] = all;
  const std::string text = print(m);
  EXPECT_NE(text.find("\\0007\\0017"), text.npos) << text;
  EXPECT_EQ(parse(text).functions[0].operations[0].attributes[0], Attribute(all));
  EXPECT_EQ(print(parse(text)), text);
}

TEST(Text, RealsKeepTheirBits) {
  Module m = parse("func @f() { op 0.0 return }");
  const auto printed = [&](double value) {
    m.functions[0].operations[0].attributes[0] = value;
    const std::string text = print(m);
    const double back = std::get<double>(parse(text).functions[0].operations[0].attributes[0]);
    EXPECT_EQ(std::bit_cast<uint64_t>(back), std::bit_cast<uint64_t>(value)) << text;
    const size_t start = text.find("op ") + 3;
    return text.substr(start, text.find('\n', start) - start);
  };
  EXPECT_EQ(printed(0.0), "0.0");
  EXPECT_EQ(printed(-0.0), "-0.0");
  EXPECT_EQ(printed(5), "5.0");
  EXPECT_EQ(printed(0.1), "0.1");
  EXPECT_EQ(printed(1e300), "1e+300");
  EXPECT_EQ(printed(std::numeric_limits<double>::denorm_min()), "5e-324");
  EXPECT_EQ(printed(-std::numeric_limits<double>::infinity()), "-inf");
  EXPECT_EQ(printed(std::bit_cast<double>(kPlainNan)), "nan");
  EXPECT_EQ(printed(std::bit_cast<double>(uint64_t{0xfff8000000000000})), "nan:fff8000000000000");
  uint64_t bits = 20;
  for (int i = 0; i < 20000; ++i) {
    bits = bits * 6364136223846793005u + 1442695040888963407u;
    printed(std::bit_cast<double>(bits ^ bits >> 32));
  }
}

TEST(Text, IntegersKeepTheirValue) {
  const auto read = attributes_of("9223372036854775807, -9223372036854775808, 007, -0");
  EXPECT_EQ(read[0], Attribute(std::numeric_limits<int64_t>::max()));
  EXPECT_EQ(read[1], Attribute(std::numeric_limits<int64_t>::min()));
  EXPECT_EQ(read[2], Attribute(int64_t{7}));
  EXPECT_EQ(read[3], Attribute(int64_t{0}));
}

TEST(Text, PrintsOneFunctionAlone) {
  const Module m = parse(kAddFive);
  EXPECT_EQ(print(m), print(m.functions[0]) + "\n" + print(m.functions[1]));
  EXPECT_EQ(print(m.functions[0]),
            "func @add_five(%x: i32) -> i32 {\n  %five = constant.i32 5\n  %sum = add.i32(%x, %five)\n  "
            "return %sum\n}\n");
}

struct Refused {
  const char* text;
  const char* error;
};

constexpr Refused kRefused[] = {
    {"fun @f", "f.cpx:1:1: expected 'func', found 'fun'"},
    {"func f", "f.cpx:1:6: expected the function's name, as @name, found 'f'"},
    {"func @", "f.cpx:1:6: expected a name behind '@': letters, digits, '_' and '.'"},
    {"func @f", "f.cpx:1:8: expected '(' behind the function's name, found the end of the text"},
    {"func @f(x", "f.cpx:1:9: expected an argument, as %name: type, found 'x'"},
    {"func @f(%x)", "f.cpx:1:11: expected ':' and the argument's type, found ')'"},
    {"func @f(%x:)", "f.cpx:1:12: expected a type, found ')'"},
    {"func @f(%x: -1)", "f.cpx:1:13: expected a type, found '-1'"},
    {"func @f(%x: i %y", "f.cpx:1:15: expected ')' or ',' behind an argument, found '%y'"},
    {"func @f() i32", "f.cpx:1:11: expected '->' or '{' behind the arguments, found 'i32'"},
    {"func @f() -> {", "f.cpx:1:14: expected a type, found '{'"},
    {"func @f() -> i32 i32", "f.cpx:1:18: expected '{' behind the signature, found 'i32'"},
    {"func @f() -> (i32 {", "f.cpx:1:19: expected ')' or ',' behind a result's type, found '{'"},
    {"func @f() {\n}", "f.cpx:2:1: expected an operation or 'return', found '}'"},
    {"func @f() {\n 5", "f.cpx:2:2: expected an operation or 'return', found '5'"},
    {"func @f() { %a op", "f.cpx:1:16: expected '=' or ',' behind a result, found 'op'"},
    {"func @f() { %a, = op", "f.cpx:1:17: expected a register behind ',', found '='"},
    {"func @f() { %a = 5", "f.cpx:1:18: expected the name of an operation, found '5'"},
    {"func @f() { %a = return", "f.cpx:1:18: expected the name of an operation, found 'return'"},
    {"func @f() { op 1, (", "f.cpx:1:19: expected an attribute behind ',', found '('"},
    {"func @f() { op [1, 2.0] return }",
     "f.cpx:1:20: expected an item of the same kind as the list's first, found '2.0'"},
    {"func @f() { op [true] return }",
     "f.cpx:1:17: expected an integer, a real, a string or ']', found 'true'"},
    {"func @f() { op [[1]] return }", "f.cpx:1:17: expected an integer, a real, a string or ']', found '['"},
    {"func @f() { op [1 return }",
     "f.cpx:1:19: expected ',' or ']' behind an item of a list, found 'return'"},
    {"func @f() { op [1, ] return }",
     "f.cpx:1:20: expected an item of the same kind as the list's first, found ']'"},
    {"func @f() { op (5)", "f.cpx:1:17: expected an argument, as %name, or ')', found '5'"},
    {"func @f() { op (%a %b)", "f.cpx:1:20: expected ')' or ',' behind an argument, found '%b'"},
    {"func @f() { op (%a, 5)", "f.cpx:1:21: expected a register behind ',', found '5'"},
    {"func @f() { return 5", "f.cpx:1:20: expected a register or '}' behind 'return', found '5'"},
    {"func @f() -> i { return %a %b",
     "f.cpx:1:28: expected ',' or '}' behind a returned register, found '%b'"},
    {"func @f() { op(%a) return }", "f.cpx:1:16: register %a is never set in function @f"},
    {"func @f() -> i { return %a }", "f.cpx:1:25: register %a is never set in function @f"},
    {"func @f() {\n %a = op\n %a = op\n return }",
     "f.cpx:3:2: register %a is set twice; first at line 2, column 2"},
    {"func @f(%a: i, %a: i)", "f.cpx:1:16: register %a is set twice; first at line 1, column 9"},
    {"func @f() { op @g return }", "f.cpx:1:16: there is no function @g"},
    {"func @f() { return }\nfunc @f() { return }",
     "f.cpx:2:6: function @f is defined twice; first at line 1, column 6"},
    {"func @f() -> (i, i) { %a = op return %a }", "f.cpx:1:31: function @f has 2 results and returns 1"},
    {"func @f() { op \"ab\n\" }", "f.cpx:1:16: unterminated string: expected '\"' in the same line"},
    {"func @f() { op \"ab\\\n\" }", "f.cpx:1:16: unterminated string: expected '\"' in the same line"},
    {"func @f() { op \"ab", "f.cpx:1:16: unterminated string: expected '\"' in the same line"},
    {"func @f() { op \"ab\\", "f.cpx:1:16: unterminated string: expected '\"' in the same line"},
    {"func @f() { op \"ab\\q\" }",
     "f.cpx:1:19: unknown escape: expected one of \\\" \\\\ \\' \\? \\a \\b \\f \\n \\r \\t \\v, \\ooo or "
     "\\xhh"},
    {"func @f() { op \"\\x\" }",
     "f.cpx:1:17: unknown escape: expected one of \\\" \\\\ \\' \\? \\a \\b \\f \\n \\r \\t \\v, \\ooo or "
     "\\xhh"},
    {"func @f() { op \"\\x1ff\" }", "f.cpx:1:17: this escape is no byte: expected at most \\377 or \\xff"},
    {"func @f() { op \"\\x100000041\" }",
     "f.cpx:1:17: this escape is no byte: expected at most \\377 or \\xff"},
    {"func @f() { op \"\\400\" }", "f.cpx:1:17: this escape is no byte: expected at most \\377 or \\xff"},
    {"func @f() { op 9223372036854775808",
     "f.cpx:1:16: '9223372036854775808' does not fit into a signed integer of 64 bits"},
    {"func @f() { op 1e999", "f.cpx:1:16: '1e999' is too large or too small for a real of 64 bits"},
    {"func @f() { op 1e-999", "f.cpx:1:16: '1e-999' is too large or too small for a real of 64 bits"},
    {"func @f() { op 12abc", "f.cpx:1:16: expected an integer or a real, found '12abc'"},
    {"func @f() { op 1.2.3", "f.cpx:1:16: expected an integer or a real, found '1.2.3'"},
    {"func @f() { op -infinity", "f.cpx:1:16: expected an integer or a real, found '-infinity'"},
    {"func @f() { op nan:7ff0000000000000",
     "f.cpx:1:20: expected the 16 hexadecimal digits of a NaN behind 'nan:', found '7ff0000000000000'"},
    {"func @f() { op nan:7ff8",
     "f.cpx:1:20: expected the 16 hexadecimal digits of a NaN behind 'nan:', found '7ff8'"},
    {"func #", "f.cpx:1:6: unexpected character '#'"},
    {"func / comment", "f.cpx:1:6: unexpected character '/'"},
    {"func - @f", "f.cpx:1:6: unexpected character '-'"},
    {"func \x01", "f.cpx:1:6: unexpected byte 0x01"},
    {"func \xc3\xa4", "f.cpx:1:6: unexpected byte 0xc3"},
};

TEST(Text, RefusesWithTheFoundTheExpectedAndThePlace) {
  for (const Refused& r : kRefused) EXPECT_EQ(error_of(r.text), r.error) << r.text;
}

TEST(Text, ShowsOfLongTokensTheStart) {
  EXPECT_EQ(error_of(std::string(100, 'x')),
            "f.cpx:1:1: expected 'func', found '" + std::string(40, 'x') + "...'");
  EXPECT_EQ(error_of("func \"a\tb\""),
            "f.cpx:1:6: expected the function's name, as @name, found the string \"a?b\"");
}

TEST(Text, RefusesWhatLinesAndColumnsCannotCount) {
  // Reserved, never touched: the size alone is refused.
  const size_t size = size_t{1} << 31;
  void* const range = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(range, MAP_FAILED);
  EXPECT_EQ(error_of({static_cast<const char*>(range), size}),
            "f.cpx: the text has 2147483648 bytes, and at most 2147483647 can be read");
  munmap(range, size);
}

TEST(Text, ParsesWhatItPrints) {
  Module m = parse(kAddFive, "add.cpx");
  const std::string text = print(m);
  Module back = parse(text, "add.cpx");
  EXPECT_EQ(print(back), text);
  for (Module* module : {&m, &back}) {
    for (Function& f : module->functions) {
      f.position = f.return_position = {};
      for (Operation& operation : f.operations) operation.position = {};
    }
  }
  EXPECT_EQ(back, m);
}

}  // namespace
}  // namespace coppice::executor
