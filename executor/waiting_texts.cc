// This says in words what functions under way wait for (see waiting_texts.h).
#include "executor/waiting_texts.h"

#include <fmt/format.h>

#include <algorithm>

namespace coppice::executor {

void describe_operation(std::string& text, const LoadedFunction& function, const LoadedOperation& operation,
                        const std::atomic<AsyncValue*>* registers, bool have_started) {
  text += function.describe(operation);
  if (operation.position().line > 0) text += fmt::format(" (line {})", operation.position().line);
  const char* separator = " waits for ";
  const char* end = " is about to run\n";
  const std::span<const uint32_t> arguments = operation.arguments;
  for (auto at = arguments.begin(); at != arguments.end(); ++at) {
    const uint32_t r = *at;
    // Acquire: another thread may have made the value.
    const AsyncValue* const value = registers[r].load(std::memory_order_acquire);
    if (value != nullptr && value->is_available()) continue;
    if (std::find(arguments.begin(), at, r) != at) continue;  // named already
    const uint32_t producer = function.registers[r].producer;
    const bool has_started = have_started || (value != nullptr && !value->is_indirect());
    text += fmt::format("{}%{} ({}{})", separator, function.register_names[r],
                        producer == kNoOperation ? "an argument" : function.operations[producer].info->name,
                        producer != kNoOperation && has_started ? ", which has started" : "");
    separator = ", ", end = "\n";
  }
  text += end;
}

void describe_loop(std::string& text, bool is_while, const LoadedFunction& body, bool has_decider,
                   int64_t iterations) {
  const char* const what =
      has_decider ? "the values that it carries" : (is_while ? "its condition" : "its count");
  text += fmt::format("{} @{} waits for {} after {} iterations\n", is_while ? "while" : "repeat", body.name,
                      what, iterations);
}

void describe_choice(std::string& text, const LoadedFunction& first, size_t num_functions) {
  text += fmt::format("a choice between @{} and {} more waits for its condition\n", first.name,
                      num_functions - 1);
}

}  // namespace coppice::executor
