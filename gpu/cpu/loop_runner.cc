// Operations in the host's memory (see loop_runner.h).
#include "gpu/cpu/loop_runner.h"

#include <cstring>

#include "core/check.h"
#include "gpu/jit/code_loader.h"
#include "gpu/messages.h"
#include "gpu/primitive_call.h"
#include "gpu/primitives.h"

namespace coppice {
namespace {

// What is needed to run it again; its callbacks have done their part.
Launch without_functions(const Launch& launch) {
  Launch copy = launch;
  copy.prepare = nullptr, copy.make_room = nullptr, copy.finish = nullptr;
  return copy;
}

}  // namespace

void LoopRunner::run_now(const Launch& launch, const LaunchBlock& block) {
  if ((block.flags & kRecorded) != 0) {
    const auto& here = *static_cast<const DeviceContext*>(host_address(block.context));
    if (is_skipped(block, __atomic_load_n(&here.status, __ATOMIC_ACQUIRE), here.replayed_from)) return;
  }
  const uint64_t count = block.count != nullptr
                             ? loop_items(block, *static_cast<const uint64_t*>(host_address(block.count)))
                             : block.item_count;
  if (count > 0) run(launch, block, jit::host_entry(*launch.code.get()), count);
}

void LoopRunner::run_loop(const Launch& launch, const LaunchBlock& block) {
  if (!recording_) return run_now(launch, block);
  auto kept = make_intrusive<SharedLaunch>(without_functions(launch));
  recording_->operations.emplace_back([this, kept, block] { run_now(kept->launch, block); });
}

void LoopRunner::fill(void* to, int byte, size_t bytes) {
  const auto now = [this, to, byte, bytes] { std::memset(host_address(to), byte, bytes); };
  if (!recording_) return now();
  recording_->operations.emplace_back(now);
}

void LoopRunner::run_primitive(const PrimitiveCall& call) {
  const auto now = [this, call] {
    run_function([&] {
      primitives::run_on_host(call, [this](const void* address) { return host_address(address); });
    });
  };
  if (!recording_) return now();
  recording_->operations.emplace_back(now);
}

void LoopRunner::replay(Recording& recording) {
  for (const auto& operation : static_cast<HostRecording&>(recording).operations) operation();
}

void LoopRunner::wait_copy(void* to, const void* from, size_t bytes) {
  std::memcpy(host_address(to), host_address(from), bytes);
}

bool LoopRunner::has_status(const DeviceContext& context) {
  const auto& here = *static_cast<const DeviceContext*>(host_address(&context));
  const uint32_t status = __atomic_load_n(&here.status, __ATOMIC_ACQUIRE);
  return is_final_status(status);
}

bool LoopRunner::mark_end(std::string_view, DeviceContext&, Kept&) {
  read_messages(log_);
  return false;
}
bool LoopRunner::reach_oldest_mark(bool, Kept&) {
  COPPICE_CHECK(false, "no operation is ever under way here");
  return true;
}

}  // namespace coppice
