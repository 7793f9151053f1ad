// This keeps the last lines of the program's log, for a panel.
//
// Thread-safe. A reader copies pointers under the mutex, so that a thread that logs waits for no more
// than that.
#pragma once
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "apps/viewer/reports.h"

namespace coppice::viewer {

class LogRing {
 public:
  static constexpr size_t kMostLines = 1000, kLongestLine = 2000;

  void add(LogLevel level, std::string_view text);  // what exceeds the longest line is cut
  // Returns the lines with numbers above `after`, the oldest first.
  std::vector<std::shared_ptr<const LogLine>> lines(uint64_t after) const;

 private:
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  mutable std::mutex mutex_;
  std::deque<std::shared_ptr<const LogLine>> lines_;
  uint64_t last_ = 0;  // number
};

// While it lives, the ring gets a copy of the process's log (core/log.h), lines below the level too.
// There is one at a time.
class LogCopy {
 public:
  explicit LogCopy(LogRing& ring) {
    set_log_copy([&ring](LogLevel level, std::string_view line) { ring.add(level, line); });
  }
  ~LogCopy() { set_log_copy({}); }
  LogCopy(const LogCopy&) = delete;
  LogCopy& operator=(const LogCopy&) = delete;
};

}  // namespace coppice::viewer
