// Events that know their stream (see stream_event.h).
#include "gpu/stream_event.h"

#include <cstring>

namespace coppice {
namespace {

// The number lies beside the payload, which is an empty struct, and is there before and after it.
struct EventPlace {
  Chain payload;
  uint32_t stream;
};
constexpr size_t kNumberOffset = AsyncValue::kPayloadOffset + offsetof(EventPlace, stream);
constexpr AsyncValueType kType = {&typeid(Chain), nullptr, &detail::HeapAsyncValue<EventPlace>::deallocate,
                                  /*is_indirect=*/false, kKeepPayloadOnError<Chain>};

}  // namespace

AsyncValueRef<Chain> make_stream_event(uint32_t stream) {
  static_assert(std::is_trivially_destructible_v<Chain> && sizeof(Chain) <= offsetof(EventPlace, stream));
  AsyncValue* const value = detail::HeapAsyncValue<EventPlace>::allocate(&kType);
  std::memcpy(reinterpret_cast<std::byte*>(value) + kNumberOffset, &stream, sizeof stream);
  return AsyncValueRef<Chain>(detail::own_new(value));
}

bool is_stream_event(const AsyncValue& value, uint32_t stream) {
  if (value.type() != &kType) return false;
  uint32_t number = 0;
  std::memcpy(&number, reinterpret_cast<const std::byte*>(&value) + kNumberOffset, sizeof number);
  return number == stream;
}

}  // namespace coppice
