// The ring of lines (see log_ring.h).
#include "apps/viewer/log_ring.h"

#include <algorithm>

namespace coppice::viewer {

void LogRing::add(LogLevel level, std::string_view text) {
  auto line = std::make_shared<LogLine>();
  line->level = level, line->text = text.substr(0, kLongestLine);
  line->time_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  std::shared_ptr<const LogLine> oldest;  // let go of without the mutex
  const std::lock_guard lock(mutex_);
  line->number = ++last_;
  if (lines_.size() >= kMostLines) {
    oldest = std::move(lines_.front());
    lines_.pop_front();
  }
  lines_.push_back(std::move(line));
}

std::vector<std::shared_ptr<const LogLine>> LogRing::lines(uint64_t after) const {
  const std::lock_guard lock(mutex_);
  const uint64_t newer = std::min<uint64_t>(last_ - std::min(after, last_), lines_.size());
  return {lines_.end() - static_cast<std::ptrdiff_t>(newer), lines_.end()};
}

}  // namespace coppice::viewer
