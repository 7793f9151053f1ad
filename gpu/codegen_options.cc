// COPPICE_DEBUG (see codegen_options.h).
#include "gpu/codegen_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/error.h"

namespace coppice {

CodegenOptions parse_codegen_options(std::string_view words) {
  if (words.empty() || words == "0") return {};
  if (words == "1") return {.step = true, .checks = true};
  CodegenOptions options;
  for (size_t at = 0; at <= words.size();) {
    const size_t end = std::min(words.find(',', at), words.size());
    const std::string_view word = words.substr(at, end - at);
    if (word == "step")
      options.step = true;
    else if (word == "checks")
      options.checks = true;
    else
      throw Error(ErrorCode::kUsage,
                  fmt::format("COPPICE_DEBUG: '{}' is not known; expected a comma list of step and checks, "
                              "or 1 for both, or 0 for none",
                              word));
    at = end + 1;
  }
  return options;
}

const CodegenOptions& codegen_options() {
  static const CodegenOptions options = [] {
    const char* words = std::getenv("COPPICE_DEBUG");
    return parse_codegen_options(words == nullptr ? "" : words);
  }();
  return options;
}

}  // namespace coppice
