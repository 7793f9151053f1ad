// print(): modules as text. The layout is fixed, so that equal modules print equal bytes.
#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>

#include "core/check.h"
#include "executor/lexer.h"
#include "executor/text.h"

namespace coppice::executor {
namespace {

void append_real(std::string& out, double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  if (std::isnan(value) && bits != kPlainNan) {
    fmt::format_to(std::back_inserter(out), "nan:{:016x}", bits);
    return;
  }
  char digits[32];
  const std::string_view text(digits, std::to_chars(digits, std::end(digits), value).ptr - digits);
  out += text;
  if (std::isfinite(value) && text.find_first_of(".e") == text.npos) out += ".0";
}

// Appends each item by print(item), with commas between.
template <class Items, class Print>
void append_list(std::string& out, const Items& items, Print print) {
  bool is_first = true;
  for (const auto& item : items) {
    if (!is_first) out += ", ";
    is_first = false;
    print(item);
  }
}

struct AttributePrinter {
  std::string& out;
  void operator()(bool value) const { out += value ? "true" : "false"; }
  void operator()(int64_t value) const { out += std::to_string(value); }
  void operator()(double value) const { append_real(out, value); }
  void operator()(const std::string& value) const { append_literal(out, value); }
  void operator()(const FunctionRef& value) const { out += '@' + value.name; }
  void operator()(const BindingRef& value) const { out += '$' + value.name; }
  template <class T>
  void operator()(const std::vector<T>& items) const {
    out += '[';
    append_list(out, items, [this](const T& item) { (*this)(item); });
    out += ']';
  }
};

void append_registers(std::string& out, const Function& function, const std::vector<uint32_t>& registers) {
  append_list(out, registers, [&](uint32_t r) {
    COPPICE_CHECK(r < function.registers.size(), "function @{}", function.name);
    out += '%', out += function.registers[r].name;
  });
}

void append_signature(std::string& out, const Function& function) {
  const size_t n_arguments = function.argument_types.size();
  COPPICE_CHECK(n_arguments <= function.registers.size(), "function @{}", function.name);
  out += "func @" + function.name + '(';
  uint32_t next = 0;
  append_list(out, function.argument_types,
              [&](const std::string& type) { out += '%' + function.registers[next++].name + ": " + type; });
  out += ')';
  const auto& types = function.result_types;
  if (types.empty()) return;
  out += types.size() == 1 ? " -> " : " -> (";
  append_list(out, types, [&](const std::string& type) { out += type; });
  if (types.size() > 1) out += ')';
}

void append_operation(std::string& out, const Function& function, const Operation& operation) {
  out += "  ";
  append_registers(out, function, operation.results);
  if (!operation.results.empty()) out += " = ";
  out += operation.name;
  if (!operation.attributes.empty()) out += ' ';
  append_list(out, operation.attributes, [&](const Attribute& a) { std::visit(AttributePrinter{out}, a); });
  if (!operation.arguments.empty()) {
    out += operation.attributes.empty() ? "(" : " (";
    append_registers(out, function, operation.arguments);
    out += ')';
  }
  out += '\n';
}

void append_function(std::string& out, const Function& function) {
  append_signature(out, function);
  out += " {\n";
  for (const Operation& operation : function.operations) append_operation(out, function, operation);
  out += function.returns.empty() ? "  return" : "  return ";
  append_registers(out, function, function.returns);
  out += "\n}\n";
}

}  // namespace

std::string print(const Function& function) {
  std::string out;
  append_function(out, function);
  return out;
}

std::string print(const Module& module) {
  std::string out;
  for (const Function& function : module.functions) {
    if (!out.empty()) out += '\n';
    append_function(out, function);
  }
  return out;
}

}  // namespace coppice::executor
