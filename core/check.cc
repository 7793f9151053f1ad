// Reports a failed check on stderr and aborts.
#include "core/check.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace coppice::detail {
namespace {

// Returns a file's path as it is in the source folder, where the compiler was given an absolute one: where
// that lies is nobody's concern.
std::string_view path_in_sources(std::string_view path) {
  constexpr std::string_view kOwn = __FILE__, kOwnInSources = "core/check.cc";
  static_assert(kOwn.ends_with(kOwnInSources));
  constexpr std::string_view kSources = kOwn.substr(0, kOwn.size() - kOwnInSources.size());
  return path.starts_with(kSources) ? path.substr(kSources.size()) : path;
}

}  // namespace

void check_failed(const char* file, int line, const char* condition, const std::string* operands,
                  const std::string& message) {
  // The text goes straight to stderr, not through the log: the log's own code uses checks, and a user's
  // sink may be gone.
  std::string text = fmt::format("{}:{}: check failed: {}", path_in_sources(file), line, condition);
  if (operands != nullptr) text += fmt::format(" ({})", *operands);
  if (!message.empty()) text += ": " + message;
  text += '\n';
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
  std::abort();
}

}  // namespace coppice::detail
