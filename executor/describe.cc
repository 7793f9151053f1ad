// Tables and graphs of loaded functions (see describe.h).
#include "executor/describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "executor/lexer.h"

namespace coppice::executor {
namespace {

// ---- parts that tables and pictures share

// A longer list is cut, so that a table's lines can be read.
constexpr size_t kMostItems = 8;

struct AttributeText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(double value) const { return fmt::format("{}", value); }
  std::string operator()(const std::string& value) const {
    std::string text;
    append_literal(text, value);
    return text;
  }
  std::string operator()(const FunctionRef& value) const { return '@' + value.name; }
  std::string operator()(const BindingRef& value) const { return '$' + value.name; }
  template <class T>
  std::string operator()(const std::vector<T>& items) const {
    const size_t n = std::min(items.size(), kMostItems);
    std::vector<std::string> texts;
    for (size_t i = 0; i < n; ++i) texts.push_back((*this)(items[i]));
    if (n < items.size()) texts.push_back(fmt::format("… {} more", items.size() - n));
    return fmt::format("[{}]", fmt::join(texts, ", "));
  }
};

// Returns the operation as the text has it, without its arguments: "repeat @body, 32".
std::string text_of(const LoadedOperation& op) {
  std::vector<std::string> attributes;
  for (const BoundAttribute& a : op.attributes) attributes.push_back(std::visit(AttributeText(), *a.value));
  return attributes.empty() ? op.info->name
                            : fmt::format("{} {}", op.info->name, fmt::join(attributes, ", "));
}

std::string typed(const LoadedFunction& f, uint32_t r) {
  return fmt::format("%{}: {}", f.register_names[r], f.register_types[r]);
}

std::string signature(const LoadedFunction& f) {
  std::vector<std::string> arguments;
  for (uint32_t r = 0; r < f.argument_types.size(); ++r) arguments.push_back(typed(f, r));
  std::string text = fmt::format("@{}({})", f.name, fmt::join(arguments, ", "));
  if (f.result_types.size() == 1) return text + " -> " + f.result_types[0];
  if (f.result_types.empty()) return text;
  return fmt::format("{} -> ({})", text, fmt::join(f.result_types, ", "));
}

// ---- tables

using Row = std::vector<std::string>;

// Makes columns as wide as their widest cell; the last one runs on.
std::string table(const std::vector<Row>& rows) {
  std::vector<size_t> widths(rows[0].size(), 0);
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i)
      line += fmt::format(" {:<{}} ", row[i], i + 1 < row.size() ? widths[i] : 0);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  }
  return text;
}

std::string number_and_name(const LoadedFunction& f, uint32_t op) {
  return fmt::format("{} {}", op + 1, f.operations[op].info->name);
}

Row register_row(const LoadedFunction& f, uint32_t r) {
  const LoadedRegister& at = f.registers[r];
  std::vector<uint32_t> operations;
  for (const RegisterUser& user : at.users) operations.push_back(user.operation);
  std::sort(operations.begin(), operations.end());
  std::vector<std::string> users;
  for (const uint32_t op : operations) users.push_back(number_and_name(f, op));
  if (std::find(f.returns.begin(), f.returns.end(), r) != f.returns.end()) users.emplace_back("return");
  return {'%' + f.register_names[r], f.register_types[r],
          at.producer == kNoOperation ? "the caller" : number_and_name(f, at.producer),
          fmt::format("{}", at.use_count),
          users.empty() ? "nobody" : fmt::format("{}", fmt::join(users, ", "))};
}

const char* place(Run where) {
  switch (where) {
    case Run::kInline:
      return "inline";
    case Run::kCompute:
      return "compute";
    case Run::kBlocking:
      return "blocking";
  }
  return "?";
}

// Names what the operation waits for: each register once, as the executor counts them.
std::string waits_of(const LoadedFunction& f, uint32_t index) {
  const LoadedOperation& op = f.operations[index];
  std::vector<std::string> waits;
  std::vector<uint32_t> seen;
  for (const uint32_t r : op.arguments) {
    if (std::find(seen.begin(), seen.end(), r) != seen.end()) continue;
    seen.push_back(r);
    const auto users = f.registers[r].users;
    const auto user =
        std::find_if(users.begin(), users.end(), [&](const RegisterUser& u) { return u.operation == index; });
    const char* how = user->needs == Needs::kEnqueued ? " on the stream" : "";
    waits.push_back(fmt::format("%{}{}", f.register_names[r], how));
  }
  if (waits.empty()) return "nothing";
  return fmt::format(fmt::runtime(op.non_strict ? "nothing; takes {} as they come" : "{}"),
                     fmt::join(waits, ", "));
}

// Returns "%a, %b = name attributes".
std::string with_results(const LoadedFunction& f, const LoadedOperation& op) {
  std::vector<std::string> results;
  for (const uint32_t r : op.results) results.push_back('%' + f.register_names[r]);
  return results.empty() ? text_of(op) : fmt::format("{} = {}", fmt::join(results, ", "), text_of(op));
}

Row operation_row(const LoadedFunction& f, uint32_t index) {
  const LoadedOperation& op = f.operations[index];
  return {fmt::format("{}", index + 1),
          with_results(f, op),
          op.position().line > 0 ? fmt::format("{}", op.position().line) : "-",
          place(op.where),
          fmt::format("{}", op.priority),
          waits_of(f, index)};
}

// ---- pictures

std::string dot_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + '"';
}

// These are the identifiers of one function's nodes. They are numbers, so that no name can be taken for a
// keyword.
struct Ids {
  size_t function;
  std::string cluster() const { return fmt::format("cluster_{}", function); }
  std::string entry() const { return fmt::format("f{}_entry", function); }
  std::string exit() const { return fmt::format("f{}_return", function); }
  std::string operation(uint32_t op) const { return fmt::format("f{}_op{}", function, op + 1); }
  std::string producer(const LoadedRegister& r) const {
    return r.producer == kNoOperation ? entry() : operation(r.producer);
  }
};

const char* style(const LoadedOperation& op) {
  if (op.non_strict) return ", style=\"rounded,filled\", fillcolor=\"#fff3d6\"";
  return op.where == Run::kInline ? "" : ", style=filled, fillcolor=\"#e3eefb\"";
}

void append_function(std::string& out, const LoadedFunction& f, const Ids& ids) {
  const auto line = [&](const auto&... part) {
    out += "    ";
    (out.append(part), ...);
    out += ";\n";
  };
  out += fmt::format("  subgraph {} {{\n    label={};\n", ids.cluster(), dot_string('@' + f.name));
  line(ids.entry(), " [label=\"arguments\", shape=ellipse]");
  for (uint32_t op = 0; op < f.operations.size(); ++op)
    line(ids.operation(op), " [label=", dot_string(text_of(f.operations[op])), style(f.operations[op]), "]");
  line(ids.exit(), " [label=\"return\", shape=ellipse]");
  const auto edge = [&](uint32_t r, const std::string& to) {
    line(ids.producer(f.registers[r]), " -> ", to, " [label=", dot_string(typed(f, r)), "]");
  };
  for (uint32_t op = 0; op < f.operations.size(); ++op) {
    for (const uint32_t r : f.operations[op].arguments) edge(r, ids.operation(op));
  }
  for (const uint32_t r : f.returns) edge(r, ids.exit());
  out += "  }\n";
}

// Adds edges to those functions that an operation runs and that are in the picture.
void append_calls(std::string& out, const LoadedFunction& f, const Ids& ids,
                  const std::vector<const LoadedFunction*>& drawn) {
  for (uint32_t op = 0; op < f.operations.size(); ++op) {
    for (const BoundAttribute& a : f.operations[op].attributes) {
      const auto called = std::find(drawn.begin(), drawn.end(), a.function);
      if (a.function == nullptr || called == drawn.end()) continue;
      const Ids to{static_cast<size_t>(called - drawn.begin())};
      out +=
          fmt::format("  {} -> {} [style=dashed, lhead={}];\n", ids.operation(op), to.entry(), to.cluster());
    }
  }
}

std::string draw(const std::vector<const LoadedFunction*>& functions) {
  std::string out =
      "digraph coppice {\n  compound=true;\n  node [shape=box, fontname=\"sans-serif\"];\n"
      "  edge [fontname=\"sans-serif\", fontsize=10];\n";
  for (size_t i = 0; i < functions.size(); ++i) append_function(out, *functions[i], Ids{i});
  for (size_t i = 0; i < functions.size(); ++i) append_calls(out, *functions[i], Ids{i}, functions);
  return out + "}\n";
}

}  // namespace

std::string explain(const LoadedFunction& f) {
  std::vector<Row> registers{{"register", "type", "set by", "uses", "used by"}};
  for (uint32_t r = 0; r < f.registers.size(); ++r) registers.push_back(register_row(f, r));
  std::vector<Row> operations{{"", "operation", "line", "runs", "priority", "waits for"}};
  for (uint32_t op = 0; op < f.operations.size(); ++op) operations.push_back(operation_row(f, op));
  std::string text = signature(f) + '\n';
  if (registers.size() > 1) text += '\n' + table(registers);
  if (operations.size() > 1) text += '\n' + table(operations);
  return text;
}

std::string explain(const LoadedModule& module) {
  std::string text;
  for (const auto& function : module.functions()) {
    if (!text.empty()) text += "\n\n";
    text += explain(*function);
  }
  return text;
}

std::string dot(const LoadedFunction& function) { return draw({&function}); }
std::string dot(const LoadedModule& module) {
  std::vector<const LoadedFunction*> functions;
  for (const auto& function : module.functions()) functions.push_back(function.get());
  return draw(functions);
}

}  // namespace coppice::executor
