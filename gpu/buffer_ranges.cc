// The table of buffers (see buffer_ranges.h).
#include "gpu/buffer_ranges.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "gpu/device.h"

namespace coppice {

BufferRanges& BufferRanges::all() {
  static auto* const ranges = new BufferRanges;  // buffers may outlive every static object
  return *ranges;
}

void BufferRanges::set(const void* begin, size_t bytes, size_t most_bytes, const DeviceContext* owner) {
  const std::lock_guard lock(mutex_);
  const auto at = reinterpret_cast<uintptr_t>(begin);
  if (bytes == 0) {
    sizes_.erase(at);
  } else {
    const auto known = sizes_.find(at);
    const bool has_fields = known != sizes_.end() && known->second.has_fields;
    sizes_[at] = {bytes, std::max(bytes, most_bytes), owner, has_fields};
  }
  version_.fetch_add(1, std::memory_order_release);
}

void BufferRanges::note_fields(const void* begin) {
  const std::lock_guard lock(mutex_);
  const auto known = sizes_.find(reinterpret_cast<uintptr_t>(begin));
  if (known != sizes_.end()) known->second.has_fields = true;
}

bool is_of_another_device(const DeviceContext& device, const void* address) {
  if (address == nullptr || Device::count() < 2) return false;
  const auto at = reinterpret_cast<uintptr_t>(address);
  const BufferRange range = BufferRanges::all().find(at);
  return range.owner != nullptr && range.owner != &device && at < range.most;
}
uintptr_t BufferRanges::take_unplaced(size_t bytes) {
  // The sizes of one and of all that there ever are stay below these, so that nothing overflows.
  constexpr uintptr_t kMostBytes = uintptr_t{1} << 46, kMostTaken = uintptr_t{1} << 58;
  if (bytes <= kMostBytes) {
    const uintptr_t taken = (bytes + kUnplacedGap - 1) / kUnplacedGap * kUnplacedGap + kUnplacedGap;
    uintptr_t before = unplaced_.load(std::memory_order_relaxed);
    while (before + taken <= kMostTaken) {
      if (unplaced_.compare_exchange_weak(before, before + taken + (before == 0 ? kUnplacedGap : 0),
                                          std::memory_order_relaxed))
        return kFirstUnplaced + (before == 0 ? 0 : before - kUnplacedGap);
    }
  }
  throw Error(ErrorCode::kOutOfMemory, fmt::format("cannot make a temporary of {} bytes", bytes));
}

void check_owner(const DeviceContext& device, const void* address, std::string_view what) {
  if (BufferRanges::all().is_unplaced(reinterpret_cast<uintptr_t>(address)))
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("{} is in a temporary, which has memory in its function alone", what));
  if (!is_of_another_device(device, address)) return;
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{} is in memory of another device", what));
}

void check_array(const DeviceContext& device, const void* address, uint64_t items, uint64_t item_bytes,
                 std::string_view what) {
  check_owner(device, address, what);
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", what, why));
  };
  if (items == 0) return;
  if (address == nullptr) refuse(fmt::format("{} items at address 0", items));
  const auto at = reinterpret_cast<uintptr_t>(address);
  const BufferRange range = BufferRanges::all().find(at);
  if (range.owner != &device || at >= range.most) return;  // no buffer of this device: nobody knows its size
  const uint64_t room = (range.most - at) / item_bytes;
  if (items > room)
    refuse(fmt::format("{} items of {} bytes, and the buffer has room for {} from there on", items,
                       item_bytes, room));
}

std::string why_no_item(const void* address, uint64_t item_bytes) {
  const auto at = reinterpret_cast<uintptr_t>(address);
  if (at % item_bytes != 0) return fmt::format("is at an address that {} does not divide", item_bytes);
  const auto lies_in = [](const BufferRange& range, uintptr_t byte) {
    return range.begin != 0 && byte < range.most;
  };
  BufferRange range = BufferRanges::all().find(at);
  if (!lies_in(range, at)) range = BufferRanges::all().find(at - 1);  // it may be right behind one
  if (!lies_in(range, at) && !lies_in(range, at - 1)) return "";      // nobody knows what lies there
  if (at <= range.most && item_bytes <= range.most - at) return "";
  return fmt::format("is at byte {} of a buffer of {} bytes", at - range.begin, range.most - range.begin);
}

void check_bytes(const DeviceContext& device, const void* address, size_t bytes, std::string_view what) {
  check_owner(device, address, what);
  if (bytes == 0) return;
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", what, why));
  };
  if (address == nullptr) refuse(fmt::format("{} bytes at address 0", bytes));
  const auto at = reinterpret_cast<uintptr_t>(address);
  if (at > UINTPTR_MAX - bytes) refuse(fmt::format("{} bytes reach beyond all addresses", bytes));
  const BufferRange first = BufferRanges::all().find(at);
  if (first.begin != 0 && at < first.most) {
    if (bytes > first.most - at)
      refuse(fmt::format("{} bytes from byte {} on of a buffer of {} bytes", bytes, at - first.begin,
                         first.most - first.begin));
    return;
  }
  const BufferRange last = BufferRanges::all().find(at + bytes - 1);
  if (last.begin > at)
    refuse(fmt::format("{} bytes that begin {} bytes before a buffer", bytes, last.begin - at));
}

void check_copied(const DeviceContext& device, const void* to, const void* from, size_t bytes) {
  check_bytes(device, to, bytes, "what a copy goes to");
  check_bytes(device, from, bytes, "what is to be copied");
}

BufferRange BufferRanges::find(uintptr_t address) const {
  const std::lock_guard lock(mutex_);
  auto behind = sizes_.upper_bound(address);
  if (behind == sizes_.begin()) return {};
  --behind;
  return range(behind->first, behind->second);
}

std::vector<BufferRange> BufferRanges::list() const {
  const std::lock_guard lock(mutex_);
  std::vector<BufferRange> ranges;
  ranges.reserve(sizes_.size());
  for (const auto& [begin, size] : sizes_) ranges.push_back(range(begin, size));
  return ranges;
}

bool BufferCache::search(uintptr_t address, size_t bytes) {
  const uint64_t now = BufferRanges::all().version();
  if (version_ != now) ranges_.fill({});
  version_ = now;
  for (uint32_t i = 0; i < ranges_.size(); ++i) {
    if (!ranges_[i].holds(address, bytes)) continue;
    last_ = i;
    return true;
  }
  const BufferRange range = BufferRanges::all().find(address);
  if (!range.holds(address, bytes)) return false;
  last_ = (last_ + 1) % ranges_.size();
  ranges_[last_] = range;
  return true;
}

}  // namespace coppice
