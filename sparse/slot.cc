// Slots' values in device memory (see slot.h).
#include "sparse/slot.h"

#include <cstring>

#include "core/error.h"

namespace coppice {

SlotStorage::SlotStorage(IntrusivePtr<Device> device, std::span<const std::byte> value)
    : device_(std::move(device)), value_(value.begin(), value.end()) {
  if (!device_) throw Error(ErrorCode::kInvalidArgument, "a slot without a device");
  buffer_ = device_->reserve(value.size(), value.size());
  device_->wait_copy(buffer_->data(), value.data(), value.size());
}

AsyncValueRef<Chain> SlotStorage::set(std::span<const std::byte> value) {
  return device_->default_stream().issue(
      "slot.set",
      [self = share(this), next = std::vector<std::byte>(value.begin(), value.end())](InStream& s) {
        self->value_ = next;
        s.wait_copy(self->buffer_->data(), next.data(), next.size());
      });
}

SlotStorage& detail::check_slot(SlotStorage* storage) {
  if (storage != nullptr) return *storage;
  throw Error(ErrorCode::kInvalidArgument, "a Slot is used that was moved from");
}

}  // namespace coppice
