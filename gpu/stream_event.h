// The events that streams give: async values of Chain that know which stream they are of, also while they
// are not there yet.
#pragma once
#include <cstdint>

#include "core/async_value.h"

namespace coppice {

// Returns a value to be completed by the stream with this number.
AsyncValueRef<Chain> make_stream_event(uint32_t stream);
// Returns whether it was made for the stream with this number. A value that was forwarded to such a one is
// none.
bool is_stream_event(const AsyncValue& value, uint32_t stream);

}  // namespace coppice
