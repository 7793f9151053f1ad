// The file of a trace: the JSON array of Chrome's trace event format. Internal to core/trace.cc.
#pragma once

#include <string>
#include <string_view>

#include "core/atomic_file.h"
#include "core/trace.h"

namespace coppice::detail {

// Returns `text` as a JSON string with its quotes; bytes that are no UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

// Sorts the events: by time, of those that begin together the longest first, as the viewers nest them.
void write_trace_file(AtomicFile file, TraceRecord record);

}  // namespace coppice::detail
