// Reports a failed check on stderr and aborts.
#include "core/check.h"

#include <cstdio>
#include <cstdlib>

namespace coppice::detail {

void check_failed(const char* file, int line, const char* condition, const std::string* operands,
                  const std::string& message) {
  // The text goes straight to stderr, not through the log: the log's own code uses checks, and a user's
  // sink may be gone.
  std::string text = fmt::format("{}:{}: check failed: {}", file, line, condition);
  if (operands != nullptr) text += fmt::format(" ({})", *operands);
  if (!message.empty()) text += ": " + message;
  text += '\n';
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
  std::abort();
}

}  // namespace coppice::detail
