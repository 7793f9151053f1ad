// Launches without the types of their kernels (see launch_request.h).
#include "sparse/launch_request.h"

#include <fmt/format.h>

#include <cstring>

#include "core/error.h"

namespace coppice {

using detail::LaunchRequest;

std::string kernel_id(const LaunchRequest& r) { return fmt::format("{}.{}", r.file->name, r.name); }

bool is_over_blocks(const LaunchRequest& r) {
  return r.item == LaunchRequest::LoopItem::kBlock || r.item == LaunchRequest::LoopItem::kBlockTeam;
}

void refuse_launch(const LaunchRequest& r, const std::string& why) {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("kernel {}: {}", kernel_id(r), why));
}

void detail::add_slots(LaunchRequest& r, size_t& at) {
  at = device::align_up(at, alignof(void*));
  const size_t end = at + r.slots.size() * sizeof(void*);
  if (end > kLaunchArgumentBytes)
    refuse_launch(r,
                  fmt::format("its plain arguments take {} bytes, with 8 more for each slot, and at most {} "
                              "are possible",
                              end, kLaunchArgumentBytes));
  if (r.num_plain > kMostSlotted && static_cast<size_t>(__builtin_popcount(r.slot_mask)) != r.slots.size())
    refuse_launch(r, fmt::format("a slot is given behind its first {} plain arguments", kMostSlotted));
  r.slots_at = static_cast<uint32_t>(at);
  for (const SlotUse& use : r.slots) {
    const void* const address = use.slot->buffer()->data();
    std::memcpy(r.arguments + at, &address, sizeof address);
    at += sizeof address;
  }
}

}  // namespace coppice
