// Recording of traces (see trace.h): rows, the threads' buffers, and how a recording ends.
#include "core/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/error.h"
#include "core/log.h"
#include "core/trace_json.h"

namespace coppice {
namespace {

// Each thread that has events holds a chunk. Live recordings have little room, which is to last for a
// thousand.
constexpr size_t kChunkBytes = size_t{64} << 10, kLiveChunkBytes = size_t{8} << 10;
constexpr size_t kLongestName = 1000;  // it fits into an EventHeader

// A chunk has this header, the name's bytes, then the next header at once.
struct EventHeader {
  int64_t begin_ns, end_ns;
  uint32_t row;
  uint16_t name_bytes;
  TraceArrow::End arrow;  // with one, its number stands before the name
  uint8_t unused = 0;
};
static_assert(sizeof(EventHeader) == 24);

struct Chunk {
  explicit Chunk(size_t size) : bytes(std::make_unique_for_overwrite<char[]>(size)) {}
  std::unique_ptr<char[]> bytes;
  size_t used = 0;
};

struct Buffer {
  std::mutex mutex;  // its thread's, but for a moment in take() and stop()
  std::vector<Chunk> chunks;
};

int64_t ns_between(Trace::Clock::time_point from, Trace::Clock::time_point to) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count();
}

}  // namespace

// The order of locks is mutex_, then a buffer's.
class TraceRecorder {
 public:
  // This is a global, since events come from everywhere. It is never destroyed: threads may outlive
  // main().
  static TraceRecorder& instance() {
    static TraceRecorder& it = *new TraceRecorder;
    return it;
  }

  void start(std::string path, bool is_live, size_t most_bytes);
  TraceRecord take();
  void stop();
  uint32_t add_row(std::string name);
  void rename_row(uint32_t id, std::string name);
  void remove_row(uint32_t id);
  void record(uint32_t row, std::string_view name, Trace::Clock::time_point begin,
              Trace::Clock::time_point end, const TraceArrow& arrow);
  void remove_buffer(std::unique_ptr<Buffer> buffer);

 private:
  struct Row {
    std::string name;
    bool is_gone = false;  // its owner is; kept for the events that it has
  };
  bool is_recording() const { return is_live_ || !path_.empty(); }
  // Empties all buffers, with mutex_ held.
  TraceRecord collect();
  Buffer* this_thread_buffer();
  char* space_for(Buffer& buffer, size_t bytes);

  std::mutex mutex_;
  uint32_t next_row_ = 1;
  std::map<uint32_t, Row> rows_;
  std::vector<Buffer*> buffers_;    // of living threads
  std::vector<Chunk> left_behind_;  // by threads that ended
  std::string path_;                // of the file; empty: none is to be written
  std::unique_ptr<AtomicFile>
      stream_;  // a pipe stays open, since its reader takes the first close for the end
  bool is_live_ = false;
  std::atomic<Trace::Clock::time_point> started_{};
  std::atomic<size_t> chunk_bytes_{kChunkBytes};
  std::atomic<size_t> chunks_left_{0};
  std::atomic<uint64_t> dropped_{0};
};

namespace {

struct ThreadState {
  Buffer* buffer = nullptr;
  uint32_t own_row = 0, borrowed_row = 0;
  bool has_ended = false;
};
// It is trivially destructible, so that an event in a thread-local's destructor finds `has_ended` and no
// destroyed buffer.
constinit thread_local ThreadState this_thread;

struct ThreadEnd {
  ~ThreadEnd() {
    const ThreadState state = std::exchange(this_thread, ThreadState{.has_ended = true});
    if (state.own_row != 0) TraceRecorder::instance().remove_row(state.own_row);
    if (state.buffer != nullptr)
      TraceRecorder::instance().remove_buffer(std::unique_ptr<Buffer>(state.buffer));
  }
  void arm() {}
};
thread_local ThreadEnd this_thread_end;

// Returns 0 where the thread is ending.
uint32_t own_row() {
  if (this_thread.own_row == 0 && !this_thread.has_ended) {
    this_thread_end.arm();
    this_thread.own_row = TraceRecorder::instance().add_row({});
  }
  return this_thread.own_row;
}

}  // namespace

void TraceRecorder::start(std::string path, bool is_live, size_t most_bytes) {
  const std::lock_guard lock(mutex_);
  const std::string who = is_live ? "a live trace" : path;
  if (is_live_)
    throw Error(ErrorCode::kUsage, fmt::format("{}: a live trace is being recorded already", who));
  if (!path_.empty())
    throw Error(ErrorCode::kUsage, fmt::format("{}: a trace is being recorded already, for {}", who, path_));
  if (!is_live) {
    AtomicFile attempt(path);  // throws when there is no such folder, or no permission
    if (attempt.is_stream()) stream_ = std::make_unique<AtomicFile>(std::move(attempt));
  }
  path_ = std::move(path);
  is_live_ = is_live;
  started_ = Trace::Clock::now();
  chunk_bytes_ = is_live ? kLiveChunkBytes : kChunkBytes;
  chunks_left_ = std::max<size_t>(most_bytes / chunk_bytes_, 1);
  dropped_ = 0;
  Trace::is_on_.store(true, std::memory_order_release);
}

TraceRecord TraceRecorder::take() {
  const std::lock_guard lock(mutex_);
  return is_live_ ? collect() : TraceRecord();
}

void TraceRecorder::stop() {
  const std::lock_guard lock(mutex_);
  if (!is_recording()) return;
  Trace::is_on_ = false;  // before the buffers are emptied: record() looks again under their locks
  TraceRecord record = collect();
  if (std::exchange(is_live_, false)) return;
  const std::string path = std::exchange(path_, {});
  if (record.dropped > 0) log_warning("{}: {} events did not fit and are missing", path, record.dropped);
  const std::unique_ptr<AtomicFile> stream = std::move(stream_);
  detail::write_trace_file(stream ? std::move(*stream) : AtomicFile(path), std::move(record));
}

TraceRecord TraceRecorder::collect() {
  std::vector<Chunk> chunks = std::exchange(left_behind_, {});
  for (Buffer* buffer : buffers_) {
    const std::lock_guard buffer_lock(buffer->mutex);
    std::move(buffer->chunks.begin(), buffer->chunks.end(), std::back_inserter(chunks));
    buffer->chunks.clear();
  }
  chunks_left_ += chunks.size();
  TraceRecord record;
  record.dropped = dropped_.exchange(0);
  std::set<uint32_t> used;
  for (Chunk& chunk : chunks) {
    for (size_t at = 0; at < chunk.used;) {
      EventHeader header;
      std::memcpy(&header, &chunk.bytes[at], sizeof(header));
      at += sizeof(header);
      TraceArrow arrow{header.arrow};
      if (arrow.end != TraceArrow::End::kNone) {
        std::memcpy(&arrow.number, &chunk.bytes[at], sizeof(arrow.number));
        at += sizeof(arrow.number);
      }
      record.events.push_back(
          {header.begin_ns, header.end_ns, header.row, {&chunk.bytes[at], header.name_bytes}, arrow});
      at += header.name_bytes;
      if (used.empty() || record.events.size() < 2 || record.events.end()[-2].row != header.row)
        used.insert(header.row);
    }
    record.text.push_back(std::move(chunk.bytes));
  }
  for (const uint32_t id : used) {
    const auto row = rows_.find(id);
    if (row == rows_.end()) continue;
    const std::string& name = row->second.name;
    record.rows.push_back({id, name.empty() ? fmt::format("thread {}", id) : name});
  }
  std::erase_if(rows_, [](const auto& row) { return row.second.is_gone; });
  return record;
}

uint32_t TraceRecorder::add_row(std::string name) {
  const std::lock_guard lock(mutex_);
  rows_[next_row_].name = std::move(name);
  return next_row_++;
}
void TraceRecorder::rename_row(uint32_t id, std::string name) {
  const std::lock_guard lock(mutex_);
  rows_[id].name = std::move(name);
}
void TraceRecorder::remove_row(uint32_t id) {
  const std::lock_guard lock(mutex_);
  if (!is_recording()) {
    rows_.erase(id);
  } else {
    rows_[id].is_gone = true;
  }
}

void TraceRecorder::record(uint32_t row, std::string_view name, Trace::Clock::time_point begin,
                           Trace::Clock::time_point end, const TraceArrow& arrow) {
  Buffer* const buffer = row == 0 ? nullptr : this_thread_buffer();
  if (buffer == nullptr) return;
  name = name.substr(0, kLongestName);
  const std::lock_guard lock(buffer->mutex);
  // It acquires: with "on" comes what start() set before.
  if (!Trace::is_on_.load(std::memory_order_acquire)) return;
  const auto started = started_.load(std::memory_order_relaxed);
  if (begin < started) return;  // of an earlier recording
  const size_t arrow_bytes = arrow.end == TraceArrow::End::kNone ? 0 : sizeof(arrow.number);
  char* to = space_for(*buffer, sizeof(EventHeader) + arrow_bytes + name.size());
  if (to == nullptr) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const EventHeader header{ns_between(started, begin), ns_between(started, std::max(begin, end)), row,
                           static_cast<uint16_t>(name.size()), arrow.end};
  std::memcpy(to, &header, sizeof(header));
  to += sizeof(header);
  std::memcpy(to, &arrow.number, arrow_bytes);
  std::memcpy(to + arrow_bytes, name.data(), name.size());
}

char* TraceRecorder::space_for(Buffer& buffer, size_t bytes) {
  // It is the same for all chunks of a recording: the one before left none behind.
  const size_t chunk_bytes = chunk_bytes_.load(std::memory_order_relaxed);
  if (buffer.chunks.empty() || buffer.chunks.back().used + bytes > chunk_bytes) {
    size_t left = chunks_left_.load(std::memory_order_relaxed);
    while (left > 0 && !chunks_left_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {
    }
    if (left == 0) return nullptr;
    buffer.chunks.emplace_back(chunk_bytes);
  }
  Chunk& chunk = buffer.chunks.back();
  char* const to = &chunk.bytes[chunk.used];
  chunk.used += bytes;
  return to;
}

Buffer* TraceRecorder::this_thread_buffer() {
  if (this_thread.buffer == nullptr && !this_thread.has_ended) {
    this_thread_end.arm();
    auto buffer = std::make_unique<Buffer>();
    const std::lock_guard lock(mutex_);
    buffers_.push_back(buffer.get());
    this_thread.buffer = buffer.release();
  }
  return this_thread.buffer;
}

void TraceRecorder::remove_buffer(std::unique_ptr<Buffer> buffer) {
  const std::lock_guard lock(mutex_);
  std::erase(buffers_, buffer.get());
  std::move(buffer->chunks.begin(), buffer->chunks.end(), std::back_inserter(left_behind_));
}

void Trace::start(std::string path, size_t most_bytes) {
  TraceRecorder::instance().start(std::move(path), false, most_bytes);
}
void Trace::start_live(size_t most_bytes) { TraceRecorder::instance().start({}, true, most_bytes); }
TraceRecord Trace::take() { return TraceRecorder::instance().take(); }
void Trace::stop() { TraceRecorder::instance().stop(); }

TraceRow::TraceRow(std::string name) : id_(TraceRecorder::instance().add_row(std::move(name))) {}
TraceRow::TraceRow(TraceRow&& other) noexcept : id_(std::exchange(other.id_, 0)) {}
TraceRow::~TraceRow() {
  if (id_ != 0) TraceRecorder::instance().remove_row(id_);
}

TraceRowScope::TraceRowScope(const TraceRow& row) : outer_(this_thread.borrowed_row) {
  this_thread.borrowed_row = row.id_;
}
TraceRowScope::~TraceRowScope() { this_thread.borrowed_row = outer_; }

void name_this_thread_row(std::string name) {
  if (const uint32_t row = own_row(); row != 0) TraceRecorder::instance().rename_row(row, std::move(name));
}

void trace_event(const TraceRow& row, std::string_view name, Trace::Clock::time_point begin,
                 Trace::Clock::time_point end, const TraceArrow& arrow) {
  if (Trace::is_on()) TraceRecorder::instance().record(row.id_, name, begin, end, arrow);
}

void detail::record_trace_scope(std::string_view name, Trace::Clock::time_point begin) noexcept {
  const auto end = Trace::Clock::now();
  const uint32_t row = this_thread.borrowed_row != 0 ? this_thread.borrowed_row : own_row();
  TraceRecorder::instance().record(row, name, begin, end, {});
}

}  // namespace coppice
