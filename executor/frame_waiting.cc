// Frames that wait, as their request knows them: what they say, and how they are cancelled.
#include <fmt/format.h>

#include <algorithm>

#include "executor/frame.h"

namespace coppice::executor {

using coppice::detail::RefAccess;

constinit const Suspended::Type Frame::kType = {
    [](const Suspended& self, std::string& text) { static_cast<const Frame&>(self).describe_waiting(text); },
    [](Suspended& self) { return RefAccess::count(&static_cast<Frame&>(self)).try_add_strong(); },
    [](Suspended& self) { IntrusivePtr<Frame>::reclaim(&static_cast<Frame&>(self))->cancel_waiting(); }};

void Frame::describe_waiting(std::string& text) const {
  for (uint32_t op = 0; op < function_.operations.size(); ++op) {
    // This is an exchange and no load, as frame.h explains.
    if (waits_[op].fetch_add(0, std::memory_order_acq_rel) == 0) continue;
    const LoadedOperation& o = function_.operations[op];
    text += fmt::format("{}{} waits for", function_.describe(o),
                        o.position.line > 0 ? fmt::format(" (line {})", o.position.line) : "");
    const char* separator = " ";
    const std::span<const uint32_t> arguments = o.arguments;
    for (auto at = arguments.begin(); at != arguments.end(); ++at) {
      const uint32_t r = *at;
      const AsyncValue* value = registers_[r].load(std::memory_order_acquire);
      if (value != nullptr && value->is_available()) continue;
      if (std::find(arguments.begin(), at, r) != at) continue;  // named already
      const uint32_t producer = function_.registers[r].producer;
      text += fmt::format(
          "{}%{} ({}{})", separator, function_.register_names[r],
          producer == kNoOperation ? "an argument" : function_.operations[producer].info->name,
          producer != kNoOperation && value != nullptr && !value->is_indirect() ? ", which has started" : "");
      separator = ", ";
    }
    text += '\n';
  }
}

}  // namespace coppice::executor
