// Draws progress bars and progress lines.
#include "apps/output/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "core/check.h"

namespace coppice {
namespace {

// Weight of the newest frame in the average: the rate follows the last ten frames or so, since a scene that
// spreads gets slower and an average over the whole run would promise too much.
constexpr double kNewestWeight = 0.1;
constexpr int kMaxBarColumns = 30;

}  // namespace

ProgressOutput stderr_progress_output() {
  const char* terminal = std::getenv("TERM");
  const bool is_dumb = terminal == nullptr || std::strcmp(terminal, "dumb") == 0;
  return {&std::cerr, !is_dumb && ::isatty(STDERR_FILENO) == 1,
          [] {
            winsize size{};
            return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? int{size.ws_col} : 80;
          },
          [] {
            return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
          }};
}

std::string duration_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "?";
  const int64_t s = std::llround(seconds);
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

Progress::Progress(int64_t n_frames, ProgressOutput output)
    : n_frames_(n_frames), output_(std::move(output)), last_frame_s_(output_.now_s()) {
  COPPICE_CHECK(n_frames_ >= 0);
  COPPICE_CHECK(output_.stream != nullptr);
}

Progress::~Progress() { finish(); }

void Progress::update(int64_t done, std::string_view detail) {
  const double now_s = output_.now_s();
  if (done > done_) {
    const double newest = (now_s - last_frame_s_) / static_cast<double>(done - done_);
    const double weight = s_per_frame_ == 0 ? 1.0 : 1.0 - std::pow(1.0 - kNewestWeight, done - done_);
    s_per_frame_ += weight * (newest - s_per_frame_);
    last_frame_s_ = now_s;
    done_ = done;
  }
  detail_ = detail;
  const double interval_s = output_.is_terminal ? kTerminalInterval_s : kPlainInterval_s;
  const bool is_last = done_ >= n_frames_;
  const bool is_repeated = done_ == drawn_ && !output_.is_terminal;  // a log gets one line per frame at most
  if (is_repeated || (now_s - last_draw_s_ < interval_s && !is_last)) return;
  last_draw_s_ = now_s;
  draw();
}

void Progress::finish() {
  if (done_ != drawn_ && done_ > 0) draw();
  if (is_line_open_) *output_.stream << '\n' << std::flush;
  is_line_open_ = false;
}

void Progress::clear_line() {
  if (is_line_open_) *output_.stream << "\r\x1b[K" << std::flush;
  is_line_open_ = false;
  last_draw_s_ = -1e300;
}

void Progress::draw() {
  drawn_ = done_;
  if (output_.is_terminal) {
    // The line is written in one piece, since a signal handler may write between two.
    *output_.stream << fmt::format("\r{}\x1b[K", terminal_line()) << std::flush;
    is_line_open_ = true;
  } else {
    *output_.stream << plain_line() + '\n' << std::flush;
  }
}

// The line has one column less than the terminal is wide: a full line makes some terminals wrap.
std::string Progress::terminal_line() const {
  const int columns = std::max(output_.width() - 1, 1);
  const double fraction = n_frames_ > 0 ? std::clamp(static_cast<double>(done_) / n_frames_, 0.0, 1.0) : 1.0;
  const int digits = static_cast<int>(fmt::formatted_size("{}", n_frames_));
  const std::string head = fmt::format("frame {:{}}/{} ", done_, digits, n_frames_);
  std::string tail = fmt::format("{:3.0f}%  {}  ETA {}", std::floor(100 * fraction), rate_text(), eta_text());
  if (!detail_.empty()) tail += "  " + detail_;
  const int room = columns - static_cast<int>(head.size() + tail.size()) - 3;
  const int bar = std::min(room, kMaxBarColumns);
  std::string line = head;
  if (bar >= 5) {
    const int full = static_cast<int>(fraction * bar);
    line += fmt::format("[{}{}] ", std::string(full, '#'), std::string(bar - full, '-'));
  }
  line += tail;
  return line.substr(0, columns);
}

std::string Progress::plain_line() const {
  const int64_t percent = n_frames_ > 0 ? 100 * done_ / n_frames_ : 100;
  std::string line = fmt::format("frame {}/{} ({}%), {}", done_, n_frames_, percent, rate_text());
  if (done_ < n_frames_) line += ", ETA " + eta_text();
  return detail_.empty() ? line : line + ", " + detail_;
}

std::string Progress::rate_text() const {
  if (s_per_frame_ <= 0) return "? frames/s";
  return s_per_frame_ < 1 ? fmt::format("{:.1f} frames/s", 1 / s_per_frame_)
                          : fmt::format("{:.1f} s/frame", s_per_frame_);
}

std::string Progress::eta_text() const {
  return s_per_frame_ > 0 ? duration_text(s_per_frame_ * static_cast<double>(n_frames_ - done_)) : "?";
}

}  // namespace coppice
