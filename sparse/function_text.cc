// Text and pictures of functions (see function_text.h).
#include "sparse/function_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "executor/text.h"
#include "sparse/device_operations.h"
#include "sparse/function_events.h"
#include "sparse/function_memory.h"
#include "sparse/uses.h"

namespace coppice {
namespace {

using executor::LoadedFunction;
using executor::LoadedOperation;

// Returns the operation as the text has it, without its events: "sparse.launch $heat.diffuse".
std::string call_of(const executor::Function& f, size_t i) {
  executor::Function one = event_function("f");
  executor::Operation op = f.operations[i];
  op.arguments.clear();
  op.results.clear();
  one.operations.push_back(std::move(op));
  const std::string text = executor::print(one);
  const size_t begin = text.find('\n') + 3;
  return text.substr(begin, text.find('\n', begin) - begin);
}

// Returns what an operation and the one that gives its event both use; empty where nothing says it, as of a
// join.
std::string reason(const std::vector<ResourceUses>& uses, uint32_t producer, size_t i) {
  const ResourceUse* const what = conflict(uses[producer], uses[i]);
  return what == nullptr ? "" : what->name;
}

std::string events_of(const LoadedFunction& f, const std::vector<ResourceUses>& uses, size_t i) {
  std::vector<std::string> texts;
  for (const uint32_t r : f.operations[i].arguments) {
    const uint32_t producer = f.registers[r].producer;
    if (producer == executor::kNoOperation) continue;
    const std::string why = reason(uses, producer, i);
    texts.push_back(fmt::format("%{}{}{}", f.register_names[r], why.empty() ? "" : ", for ", why));
  }
  return texts.empty() ? "nothing" : fmt::format("{}", fmt::join(texts, "; "));
}

std::string indented(const std::string& lines) {
  std::string text;
  for (size_t at = 0; at < lines.size();) {
    const size_t end = lines.find('\n', at) + 1;
    text += "    " + lines.substr(at, end - at);
    at = end;
  }
  return text;
}

std::string explain_function(const LoadedFunction& f, const executor::Function& source) {
  const std::vector<ResourceUses> uses = uses_of_operations(f);
  const std::vector<Segment::Range> runs = replayed_as_one(f);
  std::string text = fmt::format("@{}\n", f.name);
  const std::vector<uint32_t> order = run_order(f);
  for (size_t place = 0; place < order.size(); ++place) {
    const uint32_t i = order[place];
    const LoadedOperation& op = f.operations[i];
    for (const auto& [begin, end] : runs) {
      if (place == begin && end > begin + 1)
        text += fmt::format("\n  The next {} are recorded, and replayed as one.\n", end - begin);
    }
    text += fmt::format("\n  %{} = {}\n    comes behind {}\n", f.register_names[op.results[0]],
                        call_of(source, i), events_of(f, uses, i));
    if (op.info->name == "sparse.launch")
      text += indented(text_of(*op.attributes[0].binding->get<BoundLaunch>().uses()));
  }
  return text;
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// Numbers name the nodes of a picture, so that no name can be taken for a keyword.
std::string node_of(size_t function, size_t operation) {
  return fmt::format("f{}_op{}", function, operation);
}

void draw(std::string& out, size_t number, const LoadedFunction& f, const executor::Function& source) {
  const std::vector<ResourceUses> uses = uses_of_operations(f);
  out += fmt::format("  subgraph cluster_{} {{\n    label={};\n", number, in_quotes('@' + f.name));
  const std::vector<uint32_t> order = run_order(f);
  for (const auto& [begin, end] : replayed_as_one(f)) {
    if (end == begin + 1) continue;
    out +=
        fmt::format("    subgraph cluster_{}_{} {{ label=\"replayed as one\"; style=dashed;", number, begin);
    for (size_t place = begin; place < end; ++place) out += ' ' + node_of(number, order[place]) + ';';
    out += " }\n";
  }
  for (size_t i = 0; i < f.operations.size(); ++i) {
    out += fmt::format("    {} [label={}];\n", node_of(number, i), in_quotes(call_of(source, i)));
    for (const uint32_t r : f.operations[i].arguments) {
      const uint32_t producer = f.registers[r].producer;
      if (producer == executor::kNoOperation) continue;
      out += fmt::format("    {} -> {} [label={}];\n", node_of(number, producer), node_of(number, i),
                         in_quotes(reason(uses, producer, i)));
    }
  }
  out += "  }\n";
}

}  // namespace

std::string print(const Function& function) { return executor::print(function.module()); }

std::string explain(const Function& function) {
  std::string text;
  const executor::LoadedModule& loaded = function.loaded();
  if (const std::string memory = text_of(memory_of(loaded)); !memory.empty())
    text = fmt::format("@{}: {}\n", function.name(), memory);
  for (const size_t i : reachable_functions(loaded.source())) {
    if (!text.empty()) text += '\n';
    text += explain_function(*loaded.functions()[i], loaded.source().functions[i]);
  }
  return text;
}

std::string dot(std::span<const Function> functions) {
  std::string out =
      "digraph coppice {\n  node [shape=box, fontname=\"sans-serif\"];\n"
      "  edge [fontname=\"sans-serif\", fontsize=10];\n";
  size_t number = 0;
  for (const Function& function : functions) {
    const executor::LoadedModule& loaded = function.loaded();
    for (const size_t i : reachable_functions(loaded.source()))
      draw(out, number++, *loaded.functions()[i], loaded.source().functions[i]);
  }
  return out + "}\n";
}

}  // namespace coppice
