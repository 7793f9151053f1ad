// Reads the launcher's words line by line (see launcher_text.h).
#include "core/launcher_text.h"

#include <utility>

namespace coppice {
namespace {

bool is_rule(std::string_view line) {
  constexpr size_t kShortest = 40;
  return line.size() > kShortest && line.find_first_not_of("-\r\n") == std::string_view::npos;
}
bool is_said_by_ranks(std::string_view block) {
  return block.find("Primary job ") != std::string_view::npos ||
         block.find("exited with non-zero status") != std::string_view::npos;
}

}  // namespace

std::string LauncherText::take(std::string_view bytes) {
  std::string shown;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    if (end == std::string_view::npos) {
      unfinished_ += bytes;
      break;
    }
    add_line(std::exchange(unfinished_, {}) + std::string(bytes.substr(0, end + 1)), shown);
    bytes.remove_prefix(end + 1);
  }
  return shown;
}

void LauncherText::add_line(std::string line, std::string& shown) {
  if (is_rule(line)) {
    if (is_in_block_ && !is_said_by_ranks(block_)) shown += block_;
    block_.clear();
    is_in_block_ = !is_in_block_;
  } else if (is_in_block_) {
    block_ += line;
  } else if (line.find(": Forwarding signal ") == std::string::npos) {
    shown += line;
  }
}

std::string LauncherText::rest() {
  std::string left = is_said_by_ranks(block_) ? "" : block_;
  left += unfinished_;
  *this = {};
  return left;
}

}  // namespace coppice
