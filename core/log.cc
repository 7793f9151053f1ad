// The process's log: one level, one sink, one lock.
#include "core/log.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "core/printable.h"

namespace coppice {
namespace {

void write_to_stderr(LogLevel level, std::string_view line) {
  const char* prefix = level == LogLevel::kError ? "error: " : level == LogLevel::kWarning ? "warning: " : "";
  const std::string text = fmt::format("{}{}\n", prefix, line);
  std::fwrite(text.data(), 1, text.size(), stderr);  // one call, so that lines of other processes stay apart
}

LogLevel level_of_environment() {
  const char* name = std::getenv("COPPICE_LOG");
  return parse_log_level(name != nullptr ? name : "").value_or(LogLevel::kInfo);
}

struct Log {
  std::atomic<LogLevel> level{level_of_environment()};
  std::atomic<bool> has_copy{false};
  std::mutex mutex;
  LogSink sink, copy;
};

// This is the one deliberate process-wide object: a log is where the user sends it, whichever part speaks.
// It is never destroyed, so that destructors of statics may still log.
Log& the_log() {
  static Log& log = *new Log;
  return log;
}

}  // namespace

const char* name_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
    case LogLevel::kOff:
      return "off";
  }
  return "unknown";
}

std::optional<LogLevel> parse_log_level(std::string_view name) {
  for (LogLevel level :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError, LogLevel::kOff}) {
    if (name == name_of(level)) return level;
  }
  return std::nullopt;
}

// This is relaxed: a line logged while the level changes may follow either.
void set_log_level(LogLevel level) { the_log().level.store(level, std::memory_order_relaxed); }
LogLevel log_level() { return the_log().level.load(std::memory_order_relaxed); }

void set_log_sink(LogSink sink) {
  Log& log = the_log();
  const std::lock_guard lock(log.mutex);
  log.sink.swap(sink);
}

void set_log_copy(LogSink copy) {
  Log& log = the_log();
  const std::lock_guard lock(log.mutex);
  log.copy.swap(copy);
  log.has_copy.store(static_cast<bool>(log.copy), std::memory_order_relaxed);
}

bool detail::log_enabled(LogLevel level) {
  if (level == LogLevel::kOff) return false;
  return level >= log_level() || the_log().has_copy.load(std::memory_order_relaxed);
}

void detail::log_line(LogLevel level, fmt::string_view format, fmt::format_args args) {
  const std::string line = printable_lines(fmt::vformat(format, args));
  Log& log = the_log();
  const std::lock_guard lock(log.mutex);
  if (log.copy) log.copy(level, line);
  if (level < log_level()) return;
  if (log.sink) {
    log.sink(level, line);
  } else {
    write_to_stderr(level, line);
  }
}

}  // namespace coppice
