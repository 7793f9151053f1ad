// parse(): a recursive-descent parser without recursion, since nothing in the text form nests.
//
// Registers may be used before they are set, so that uses are collected by name and resolved at the
// function's end, and references to functions at the module's. Linear in the size of the text.
#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "executor/lexer.h"
#include "executor/names.h"
#include "executor/text.h"

namespace coppice::executor {
namespace {

using Kind = Token::Kind;

// This name is used before its meaning is known.
struct Use {
  std::string_view name;
  Position position;
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : lexer_(text, file), token_(lexer_.next()) {}

  std::vector<Function> functions();

 private:
  struct SetRegister {
    uint32_t index;
    Position position;
  };

  Function function();
  void signature(Function& function);
  void argument(Function& function);
  std::string type();
  bool operation(Function& function);
  void results(Function& function, Operation& operation);
  std::optional<Attribute> attribute();
  std::optional<Attribute> scalar();
  Attribute list();
  template <class T>
  Attribute list_from(Attribute first);
  double nan_bits();
  Attribute number();
  template <class T>
  T number_as(const char* limit) const;
  void uses(std::vector<uint32_t>& registers);

  uint32_t set_register(Function& function);
  void resolve_uses(Function& function) const;

  // Returns the current token, which must be one of these; the next one becomes current.
  Token take() { return std::exchange(token_, lexer_.next()); }
  bool take_if(std::string_view punctuation) { return token_.is(punctuation) && (take(), true); }
  Token expect(Kind kind, const char* expected);
  void expect(std::string_view punctuation, const char* expected);
  [[noreturn]] void fail_here(std::string_view expected) const {
    lexer_.fail(token_.position, fmt::format("expected {}, found {}", expected, describe(token_)));
  }

  Lexer lexer_;
  Token token_;
  std::vector<Use> function_uses_;
  // These belong to the current function: registers that were set, and all uses in the order of the text.
  std::unordered_map<std::string_view, SetRegister> registers_;
  std::vector<Use> register_uses_;
};

Token Parser::expect(Kind kind, const char* expected) {
  if (token_.kind != kind) fail_here(expected);
  return take();
}

void Parser::expect(std::string_view punctuation, const char* expected) {
  if (!take_if(punctuation)) fail_here(expected);
}

std::vector<Function> Parser::functions() {
  std::vector<Function> functions;
  while (token_.kind != Kind::kEnd) functions.push_back(function());
  std::unordered_set<std::string_view> names;
  for (const Function& f : functions) names.insert(f.name);
  for (const Use& use : function_uses_)
    if (!names.contains(use.name))
      lexer_.fail(use.position, fmt::format("there is no function @{}", use.name));
  return functions;
}

Function Parser::function() {
  if (!token_.is_word("func")) fail_here("'func'");
  take();
  Function function;
  function.position = token_.position;
  function.name = expect(Kind::kFunction, "the function's name, as @name").name();
  // The table is a new one: clear(), which `= {}` means, would take time for all buckets of the largest
  // function, every time.
  registers_ = decltype(registers_)();
  register_uses_.clear();
  signature(function);
  while (operation(function)) {
  }
  function.return_position = take().position;
  if (token_.kind == Kind::kRegister) uses(function.returns);
  expect("}", function.returns.empty() ? "a register or '}' behind 'return'"
                                       : "',' or '}' behind a returned register");
  resolve_uses(function);
  count_uses(function);
  return function;
}

void Parser::signature(Function& function) {
  expect("(", "'(' behind the function's name");
  if (!take_if(")")) {
    do argument(function);
    while (take_if(","));
    expect(")", "')' or ',' behind an argument");
  }
  if (take_if("->")) {
    if (!take_if("(")) {
      function.result_types.push_back(type());
    } else if (!take_if(")")) {
      do function.result_types.push_back(type());
      while (take_if(","));
      expect(")", "')' or ',' behind a result's type");
    }
    expect("{", "'{' behind the signature");
  } else {
    expect("{", "'->' or '{' behind the arguments");
  }
}

void Parser::argument(Function& function) {
  if (token_.kind != Kind::kRegister) fail_here("an argument, as %name: type");
  set_register(function);
  expect(":", "':' and the argument's type");
  function.argument_types.push_back(type());
}

std::string Parser::type() {
  // A type's name may start with a digit.
  if ((token_.kind != Kind::kWord && token_.kind != Kind::kNumber) || !is_name(token_.text))
    fail_here("a type");
  return std::string(take().text);
}

uint32_t Parser::set_register(Function& function) {
  const Token token = take();
  const auto index = static_cast<uint32_t>(function.registers.size());
  const auto [entry, is_new] = registers_.try_emplace(token.name(), SetRegister{index, token.position});
  if (!is_new) {
    const Position first = entry->second.position;
    lexer_.fail(token.position, fmt::format("register {} is set twice; first at line {}, column {}",
                                            token.text, first.line, first.column));
  }
  function.registers.push_back({.name = std::string(token.name())});
  return index;
}

// Returns false, with `return` as the current token, at the function's end.
bool Parser::operation(Function& function) {
  if (token_.is_word("return")) return false;
  Operation operation;
  if (token_.kind == Kind::kRegister) {
    results(function, operation);
    if (token_.kind != Kind::kWord || !is_operation_name(token_.text)) fail_here("the name of an operation");
  }
  if (token_.kind != Kind::kWord || !is_operation_name(token_.text)) fail_here("an operation or 'return'");
  operation.position = token_.position;
  operation.name = take().text;
  if (auto first = attribute()) {
    operation.attributes.push_back(std::move(*first));
    while (take_if(",")) {
      auto next = attribute();
      if (!next) fail_here("an attribute behind ','");
      operation.attributes.push_back(std::move(*next));
    }
  }
  if (take_if("(") && !take_if(")")) {
    if (token_.kind != Kind::kRegister) fail_here("an argument, as %name, or ')'");
    uses(operation.arguments);
    expect(")", "')' or ',' behind an argument");
  }
  function.operations.push_back(std::move(operation));
  return true;
}

void Parser::results(Function& function, Operation& operation) {
  do {
    if (token_.kind != Kind::kRegister) fail_here("a register behind ','");
    operation.results.push_back(set_register(function));
  } while (take_if(","));
  expect("=", "'=' or ',' behind a result");
}

// Reads registers with commas between; the current token is the first. resolve_uses() fills in which ones
// they are.
void Parser::uses(std::vector<uint32_t>& registers) {
  do {
    if (token_.kind != Kind::kRegister) fail_here("a register behind ','");
    const Token token = take();
    register_uses_.push_back({token.name(), token.position});
    registers.push_back(0);
  } while (take_if(","));
}

void Parser::resolve_uses(Function& function) const {
  auto use = register_uses_.begin();
  const auto resolve = [&](std::vector<uint32_t>& registers) {
    for (uint32_t& r : registers) {
      const auto found = registers_.find(use->name);
      if (found == registers_.end())
        lexer_.fail(use->position,
                    fmt::format("register %{} is never set in function @{}", use->name, function.name));
      r = found->second.index;
      ++use;
    }
  };
  for (Operation& operation : function.operations) resolve(operation.arguments);
  resolve(function.returns);
}

std::optional<Attribute> Parser::attribute() {
  if (take_if("[")) return list();
  return scalar();
}

// The current token is behind the '['.
Attribute Parser::list() {
  if (take_if("]")) return std::vector<int64_t>();
  const Token token = token_;
  if (auto first = scalar()) {
    if (std::holds_alternative<int64_t>(*first)) return list_from<int64_t>(std::move(*first));
    if (std::holds_alternative<double>(*first)) return list_from<double>(std::move(*first));
    if (std::holds_alternative<std::string>(*first)) return list_from<std::string>(std::move(*first));
  }
  lexer_.fail(token.position,
              fmt::format("expected an integer, a real, a string or ']', found {}", describe(token)));
}

template <class T>
Attribute Parser::list_from(Attribute first) {
  std::vector<T> items{std::get<T>(std::move(first))};
  while (take_if(",")) {
    const Token token = token_;
    auto next = scalar();
    if (!next || !std::holds_alternative<T>(*next))
      lexer_.fail(
          token.position,
          fmt::format("expected an item of the same kind as the list's first, found {}", describe(token)));
    items.push_back(std::get<T>(std::move(*next)));
  }
  expect("]", "',' or ']' behind an item of a list");
  return items;
}

std::optional<Attribute> Parser::scalar() {
  switch (token_.kind) {
    case Kind::kNumber:
      return number();
    case Kind::kString:
      return Attribute(lexer_.unescape(take()));
    case Kind::kFunction: {
      const Token token = take();
      function_uses_.push_back({token.name(), token.position});
      return Attribute(FunctionRef{std::string(token.name())});
    }
    case Kind::kBinding:
      return Attribute(BindingRef{std::string(take().name())});
    case Kind::kWord:
      break;
    default:
      return std::nullopt;
  }
  if (token_.text == "true" || token_.text == "false") return Attribute(take().text == "true");
  if (token_.text == "inf") return take(), Attribute(std::numeric_limits<double>::infinity());
  if (token_.text == "nan") return take(), Attribute(nan_bits());
  return std::nullopt;
}

// Reads what follows `nan`: nothing, or ':' and the bits of another NaN.
double Parser::nan_bits() {
  if (!take_if(":")) return std::bit_cast<double>(kPlainNan);
  const std::string_view text = token_.text;
  uint64_t bits = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits, 16);
  const bool is_number = text.size() == 16 && error == std::errc() && end == text.data() + text.size();
  if (!is_number || !std::isnan(std::bit_cast<double>(bits)))
    fail_here("the 16 hexadecimal digits of a NaN behind 'nan:'");
  take();
  return std::bit_cast<double>(bits);
}

template <class T>
T Parser::number_as(const char* limit) const {
  const std::string_view text = token_.text;
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range)
    lexer_.fail(token_.position, fmt::format("{} {}", describe(token_), limit));
  if (error != std::errc() || end != text.data() + text.size()) fail_here("an integer or a real");
  return value;
}

Attribute Parser::number() {
  const std::string_view text = token_.text;
  Attribute value;
  if (text == "-inf") {
    value = -std::numeric_limits<double>::infinity();
  } else if (text[0] == '-' && !is_digit(text[1])) {
    fail_here("an integer or a real");
  } else if (text.find_first_of(".eE") == text.npos) {
    value = number_as<int64_t>("does not fit into a signed integer of 64 bits");
  } else {
    value = number_as<double>("is too large or too small for a real of 64 bits");
  }
  take();
  return value;
}

}  // namespace

Module parse(std::string_view text, std::string file) {
  // Lines and columns are ints in an error's location.
  if (text.size() > std::numeric_limits<int>::max())
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("the text has {} bytes, and at most {} can be read", text.size(),
                            std::numeric_limits<int>::max()),
                {std::move(file)});
  Module module{.file = std::move(file)};
  module.functions = Parser(text, module.file).functions();
  check(module);
  return module;
}

}  // namespace coppice::executor
