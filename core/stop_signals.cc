// Signal handlers that touch lock-free atomics, write(), and remove what is unfinished, and nothing else (see
// stop_signals.h).
#include "core/stop_signals.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/aside_files.h"
#include "core/check.h"
#include "core/log.h"
#include "core/unfinished_file.h"

namespace coppice {
namespace {

constexpr int kExitInterrupted = 130;
constexpr int kPatienceMs = 100;  // with who reads standard error, and with a handler on another thread

// These are globals, since a handler has no other way to know.
std::atomic<bool> is_requested{false}, is_installed{false}, is_terminal{false};
std::atomic<bool> is_said{false};  // what is finished; then the second signal may say that it ends
std::atomic<bool> is_ending{false};
std::atomic<const char*> unit{nullptr};  // what is finished; null: nothing is
std::atomic<int64_t> unit_number{-1};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<const char*>::is_always_lock_free &&
              std::atomic<int64_t>::is_always_lock_free);

// This is a line of at most 160 bytes, put together without the heap.
class Line {
 public:
  void add(const char* text) {
    const size_t size = std::min(std::strlen(text), text_.size() - size_);
    std::memcpy(text_.data() + size_, text, size);
    size_ += size;
  }
  void add(int64_t number) {
    std::array<char, 21> digits{};
    size_t first = digits.size() - 1;
    do {
      digits[--first] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0);
    add(&digits[first]);
  }
  // A reader that stands still (a pipe that is full, a terminal that is held) does not keep the program, and
  // one that is gone does not end it.
  void write() const {
    pollfd standard_error{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    while (poll(&standard_error, 1, kPatienceMs) < 0 && errno == EINTR) {
    }
    if (standard_error.revents != POLLOUT)
      return;  // POLLERR: whoever read it is gone, and SIGPIPE would come
    // There is nobody to tell of a failure.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text_.data(), size_);
  }

 private:
  std::array<char, 160> text_;
  size_t size_ = 0;
};

extern "C" void on_stop_signal(int signal) {
  // Who says that the time is over may say so again and again, until it is heard.
  if (signal == SIGUSR1 && is_requested.load(std::memory_order_relaxed)) return;
  const int saved_errno = errno;
  const char* const what = unit.load(std::memory_order_acquire);
  const bool ends_now = what == nullptr || is_requested.exchange(true, std::memory_order_relaxed);
  if (ends_now && is_ending.exchange(true)) return;  // another thread's handler is about to end it
  // Two signals may come to two threads in one instant, and their lines in order nevertheless.
  for (int i = 0; what != nullptr && ends_now && !is_said.load() && i < kPatienceMs; ++i) poll(nullptr, 0, 1);
  if (log_level() <= LogLevel::kInfo) {
    Line line;
    // The terminal has "^C" in the line of the progress.
    if (is_terminal.load(std::memory_order_relaxed)) line.add("\n");
    if (ends_now) {
      line.add("stopped");
    } else {
      line.add(*what == '\0' ? "ending" : "finishing ");
      line.add(what);
      if (const int64_t number = unit_number.load(std::memory_order_relaxed); number >= 0) {
        line.add(" ");
        line.add(number);
      }
      line.add("; again to stop now");
    }
    line.add("\n");
    line.write();
  }
  if (ends_now) {
    UnfinishedFile::remove_all();
    AsideFiles::settle_all();
    _exit(kExitInterrupted);
  }
  is_said.store(true);
  errno = saved_errno;
}

}  // namespace

StopSignals::StopSignals() {
  COPPICE_CHECK(!is_installed.exchange(true), "the signals are taken already");
  is_requested = is_said = is_ending = false;
  unit = nullptr;
  is_terminal = isatty(STDERR_FILENO) == 1;
  log_level();  // reads the environment at its first call, which a handler must not
  struct sigaction action {};
  action.sa_handler = on_stop_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : kSignals) sigaddset(&action.sa_mask, signal);  // no second line within the first
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (kSignals[i] == SIGHUP && before_[i].sa_handler == SIG_IGN) continue;
    sigaction(kSignals[i], &action, nullptr);
  }
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  is_installed = false;
}

const std::atomic<bool>& StopSignals::requested() const { return is_requested; }

void StopSignals::let_finish(const char* what, int64_t number) {
  unit_number.store(number, std::memory_order_relaxed);
  unit.store(what, std::memory_order_release);
}

}  // namespace coppice
