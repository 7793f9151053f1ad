// The file of a trace: the JSON array of Chrome's trace event format. Internal to core/trace.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::detail {

struct TraceFileRow {
  uint32_t id;
  std::string name;
};
struct TraceFileEvent {
  int64_t begin_ns, end_ns;  // since the recording began
  uint32_t row;
  std::string_view name;
};

// `text` as a JSON string with its quotes; bytes that are no UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

// Sorts the events: by time, of those that begin together the longest first, as the viewers nest them.
void write_trace_file(const std::string& path, const std::vector<TraceFileRow>& rows,
                      std::vector<TraceFileEvent> events, uint64_t dropped);

}  // namespace coppice::detail
