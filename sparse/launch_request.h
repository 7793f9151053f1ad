// Describes a launch without the types of its kernel: what a call to a Program is turned into
// (launch_arguments.h), and what it is prepared from.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/launch_block.h"
#include "sparse/device/handles.h"
#include "sparse/device/sum_types.h"
#include "sparse/kernel.h"
#include "sparse/loop.h"
#include "sparse/slot.h"

namespace coppice {

namespace detail {

struct HandleUse {
  FieldId id;
  Role role;
  int radius;
  uint32_t value_bytes;
  bool star;   // of a reach
  bool exact;  // of an Accumulate: sums of its values do not depend on their order
  device::SumKind sum = device::SumKind::kNone;  // of an Accumulate
};

// Describes an argument that leads to memory.
struct PointerUse {
  uint32_t argument, offset;  // which one, from 1 on; where the packed arguments have its address
  bool is_const;
};
inline constexpr uint32_t kMostPointers = kLaunchArgumentBytes / sizeof(void*);

// Describes an argument whose value a slot has.
struct SlotUse {
  uint32_t argument;  // which one, from 1 on
  IntrusivePtr<SlotStorage> slot;
};
inline constexpr uint32_t kMostSlotted = 32;  // plain arguments: later ones are no slot's

// Describes a launch with its types gone.
struct LaunchRequest {
  const KernelBitcode* file;
  std::string_view name;
  bool active_only;
  enum class LoopItem { kCell, kBlock, kBlockTeam, kEntry, kItem, kTeam } item;
  int place_dims;
  uint32_t fast_bytes = 0;  // that a BlockTeam has
  Loop loop;
  uint32_t effects = ~0u;  // of the kernel (gpu/jit/kernel_effects.h)
  uint32_t num_handles = 0;
  HandleUse handles[device::kMaxBindings];
  uint32_t num_arguments = 0;  // that the caller gave
  uint32_t num_pointers = 0;   // pointers and Views among them
  PointerUse pointers[kMostPointers];
  bool has_hidden_pointers = false;  // some argument is, or leads to, a struct, which may have pointers
  uint32_t num_plain = 0;            // arguments that are no handles
  std::vector<SlotUse> slots;
  uint32_t slot_mask = 0;  // bit i: plain argument i is a slot's
  uint32_t slots_at = 0;   // where the addresses of the slots begin among the arguments
  uint32_t argument_bytes = 0;
  std::vector<TemporaryArgument> temporaries;
  std::vector<IntrusivePtr<RefCounted>> keep_alive;  // that the arguments point to
  uint32_t box_at = 0;  // the loop's box among the arguments, plus 1; 0: there is none
  // This launch runs in place of that one, as one that makes room; it has the other's name.
  const LaunchRequest* makes_room_for = nullptr;
  // The bytes between two arguments are zero: words of them are looked at (sparse/temporary_buffer.h).
  alignas(16) unsigned char arguments[kLaunchArgumentBytes] = {};
};

// Puts the slots' addresses behind the arguments. Errors: kInvalidArgument where they leave no room for them.
void add_slots(LaunchRequest& request, size_t& at);

// Puts the box of the loop, or of its range, behind the arguments. Errors: kInvalidArgument where they leave
// no room for it.
void add_box(LaunchRequest& request, size_t& at);

}  // namespace detail

// Returns "heat.diffuse".
std::string kernel_id(const detail::LaunchRequest& request);
bool is_over_blocks(const detail::LaunchRequest& request);
// Throws the Error kInvalidArgument "kernel heat.diffuse: <why>".
[[noreturn]] void refuse_launch(const detail::LaunchRequest& request, const std::string& why);

}  // namespace coppice
