// Writing traces (see trace_json.h).
#include "core/trace_json.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "core/utf8.h"

namespace coppice::detail {
namespace {

// Writes microseconds with the nanoseconds behind the point: doubles would round a long run's.
std::string microseconds(int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

std::string metadata(int process, uint32_t row, std::string_view what, std::string_view arguments) {
  return fmt::format(R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{{}}}}})", process, row, what,
                     arguments);
}

// Viewers hang an arrow's end on the event that is around it.
std::string arrow_end(int process, const TraceEvent& event) {
  const bool is_tail = event.arrow.end == TraceArrow::End::kTail;
  return fmt::format(
      R"({{"ph":"{}",{}"cat":"message","name":"message","id":"{:#x}","pid":{},"tid":{},"ts":{}}})",
      is_tail ? "s" : "f", is_tail ? "" : R"("bp":"e",)", event.arrow.number, process, event.row,
      microseconds(event.begin_ns));
}

}  // namespace

std::string json_string(std::string_view text) {
  std::string json = "\"";
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const char first = text.front();
    if (length == 0) {
      json += "\\ufffd";
    } else if (first == '"' || first == '\\') {
      json += {'\\', first};
    } else if (static_cast<uint8_t>(first) < 0x20) {
      json += fmt::format("\\u{:04x}", static_cast<unsigned>(first));
    } else {
      json += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return json += '"';
}

void write_trace_file(AtomicFile file, TraceRecord record) {
  std::stable_sort(record.events.begin(), record.events.end(), [](const TraceEvent& a, const TraceEvent& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  });
  const int process = getpid();
  file.write("[\n" + metadata(process, 0, "process_name", R"("name":"coppice")"));
  for (const TraceRecord::Row& row : record.rows) {
    file.write(",\n" + metadata(process, row.id, "thread_name", R"("name":)" + json_string(row.name)));
    file.write(",\n" +
               metadata(process, row.id, "thread_sort_index", fmt::format(R"("sort_index":{})", row.id)));
  }
  for (const TraceEvent& event : record.events) {
    file.write(
        fmt::format(",\n"
                    R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{}}})",
                    process, event.row, microseconds(event.begin_ns),
                    microseconds(event.end_ns - event.begin_ns), json_string(event.name)));
    if (event.arrow.end != TraceArrow::End::kNone) file.write(",\n" + arrow_end(process, event));
  }
  if (record.dropped > 0)
    file.write(",\n" + metadata(process, 0, "dropped_events", fmt::format(R"("count":{})", record.dropped)));
  file.write("\n]\n");
  file.commit();
}

}  // namespace coppice::detail
