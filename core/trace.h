// A record of which thread or stream did what when, as a Chrome trace for
// ui.perfetto.dev and chrome://tracing.
//
//   Trace::start("run.json");
//   name_this_thread_row("main");
//   { const TraceScope scope("load the scene"); ... }    // an event in the calling thread's row
//   const TraceRow row("copy engine");                   // a row that is no thread
//   trace_event(row, "upload", begin, end);
//   Trace::stop();                                       // writes the file
//
// Or, for whoever looks at it while it goes on:
//
//   Trace::start_live();
//   const TraceRecord last = Trace::take();              // what ended since the last call
//   Trace::stop();
//
// Off, an event costs two loads. On, two clock reads and a copy of the name into a buffer of the thread's
// own, whose mutex nobody else takes but for moments in take() and stop(). All buffers together are bounded:
// when they are full, later events are dropped, counted, and reported in the file and the log. Thread-safe;
// threads may end, and rows be destroyed, at any time. Names are copied, any bytes: what is no UTF-8 is
// replaced, and what exceeds 1000 bytes cut.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace coppice {

// Hears of scopes, on the scope's own thread, whether or not a trace is recorded: for other profilers'
// ranges.
class TraceListener {
 public:
  virtual ~TraceListener() = default;
  virtual void begin(std::string_view name) noexcept = 0;
  virtual void end() noexcept = 0;
};

// An end of an arrow between two events, which viewers draw where both have the same number: of the event
// that causes the other, which may be in another process' recording, or of the one that is caused.
struct TraceArrow {
  enum class End : uint8_t { kNone, kTail, kHead };
  End end = End::kNone;
  uint64_t number = 0;
};

struct TraceEvent {
  int64_t begin_ns, end_ns;  // since the recording began
  uint32_t row;
  std::string_view name;
  TraceArrow arrow = {};
};

// Holds events of some time, thread by thread, each thread's in the order in which they ended.
struct TraceRecord {
  struct Row {
    uint32_t id;
    std::string name;
  };
  std::vector<Row> rows;  // those that have events
  std::vector<TraceEvent> events;
  uint64_t dropped = 0;                       // that did not fit
  std::vector<std::unique_ptr<char[]>> text;  // where names are
};

class Trace {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kMostBytes = size_t{256} << 20, kMostLiveBytes = size_t{8} << 20;

  // Starts a recording, one at a time in a process. Errors: kUsage when one is under way; kIo when `path`
  // cannot be written, which is tried here and not first after the run.
  static void start(std::string path, size_t most_bytes = kMostBytes);
  // Does the same without a file: events are kept until take(), as many as fit. Errors: kUsage.
  static void start_live(size_t most_bytes = kMostLiveBytes);
  // Returns what ended since the recording began or the last call; nothing without a live recording. Cost:
  // some ten ns per event.
  static TraceRecord take();
  // Ends a recording; does nothing when none is under way. One with a file writes it, whole or not at all.
  // Events that have not ended are not in it. Errors: kIo; the recording is over all the same, and lost.
  static void stop();
  // It is relaxed: whether an event at the very start is recorded does not matter.
  static bool is_on() { return is_on_.load(std::memory_order_relaxed); }

  // Sets the listener from now on, in place of the one before. `listener` outlives all scopes that begin
  // meanwhile; null: nobody listens.
  static void set_listener(TraceListener* listener) { listener_.store(listener, std::memory_order_release); }
  static TraceListener* listener() { return listener_.load(std::memory_order_acquire); }

 private:
  friend class TraceRecorder;
  static inline constinit std::atomic<TraceListener*> listener_{nullptr};
  static inline constinit std::atomic<bool> is_on_{false};
};

// This is a row of the picture. Names need not be distinct: rows are.
class TraceRow {
 public:
  explicit TraceRow(std::string name);
  TraceRow(TraceRow&& other) noexcept;
  TraceRow& operator=(TraceRow&&) = delete;
  ~TraceRow();

 private:
  friend class TraceRowScope;
  friend void trace_event(const TraceRow&, std::string_view, Trace::Clock::time_point,
                          Trace::Clock::time_point, const TraceArrow&);
  uint32_t id_;  // 0: moved from
};

// Names the calling thread's own row, which is "thread N" until then.
void name_this_thread_row(std::string name);

// Until the scope ends, the calling thread's events go to `row`: for workers that serve several masters.
class TraceRowScope {
 public:
  explicit TraceRowScope(const TraceRow& row);
  ~TraceRowScope();
  TraceRowScope(const TraceRowScope&) = delete;
  TraceRowScope& operator=(const TraceRowScope&) = delete;

 private:
  uint32_t outer_;
};

void trace_event(const TraceRow& row, std::string_view name, Trace::Clock::time_point begin,
                 Trace::Clock::time_point end, const TraceArrow& arrow = {});

namespace detail {
void record_trace_scope(std::string_view name, Trace::Clock::time_point begin) noexcept;
}

// Records an event from here to the end of the scope. `name` outlives it.
class TraceScope {
 public:
  explicit TraceScope(std::string_view name) : TraceScope(name, Trace::is_on(), Trace::listener()) {}
  // This is for places where another scope tells listeners of the same.
  TraceScope(std::string_view name, bool records) : TraceScope(name, records, nullptr) {}
  ~TraceScope() {
    if (begin_ != Trace::Clock::time_point()) detail::record_trace_scope(name_, begin_);
    if (listener_ != nullptr) listener_->end();
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  TraceScope(std::string_view name, bool records, TraceListener* listener)
      : name_(name), listener_(listener) {
    if (listener_ != nullptr) listener_->begin(name);
    if (records) begin_ = Trace::Clock::now();
  }
  std::string_view name_;
  TraceListener* const listener_;
  Trace::Clock::time_point begin_{};
};

}  // namespace coppice
