// Log lines with levels, to stderr or to a sink of the user's own; never to stdout.
//
//   log_warning("{} open edges in {}", count, path);
//
// Thread-safe: a sink is called for one line at a time, and set_log_sink returns only when no call of the old
// sink is under way. A sink must not log. A line below the level is not even formatted.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <optional>
#include <string_view>
#include <utility>

namespace coppice {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

// Returns "debug", "info", "warning", "error", "off".
const char* name_of(LogLevel level);
std::optional<LogLevel> parse_log_level(std::string_view name);

void set_log_level(LogLevel level);  // COPPICE_LOG's at first, else kInfo; kOff silences everything
LogLevel log_level();

using LogSink = std::function<void(LogLevel level, std::string_view line)>;
// An empty sink restores the default: one line on stderr, "warning: " and "error: " in front where it
// applies.
void set_log_sink(LogSink sink);
// Sets a sink that gets a copy of every line, those below the level too, for whoever shows a log; the sink
// of set_log_sink() gets what it got before. The same rules hold for both. An empty one: nobody gets
// copies.
void set_log_copy(LogSink copy);

namespace detail {
bool log_enabled(LogLevel level);
void log_line(LogLevel level, fmt::string_view format, fmt::format_args args);
}  // namespace detail

template <class... Args>
void log_at(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (detail::log_enabled(level)) detail::log_line(level, format, fmt::make_format_args(args...));
}
template <class... Args>
void log_debug(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kDebug, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kInfo, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kWarning, format, std::forward<Args>(args)...);
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_at(LogLevel::kError, format, std::forward<Args>(args)...);
}

}  // namespace coppice
