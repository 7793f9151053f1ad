// Operations in the host's memory (see host_stream_backend.h).
#include "gpu/cpu/host_stream_backend.h"

#include <cstring>

#include "core/check.h"
#include "gpu/jit/code_loader.h"
#include "gpu/messages.h"
#include "gpu/primitive_call.h"

namespace coppice {
namespace {

// Returns what is needed to run a launch again; its callbacks have done their part.
Launch without_functions(const Launch& launch) {
  Launch copy = launch;
  copy.before_loop = nullptr, copy.make_room = nullptr, copy.needs_repeat = nullptr;
  copy.throw_error = nullptr;
  return copy;
}

}  // namespace

void HostStreamBackend::run_now(const Launch& launch, const LaunchBlock& block) {
  if ((block.flags & kRecorded) != 0) {
    const auto& here = *static_cast<const DeviceContext*>(host_address(block.context));
    if (is_skipped(block, __atomic_load_n(&here.status, __ATOMIC_ACQUIRE), here.replayed_from)) return;
    launches_begun_ = block.number + 1;
  }
  const uint64_t count = block.count != nullptr
                             ? loop_items(block, *static_cast<const uint64_t*>(host_address(block.count)))
                             : block.item_count;
  if (count > 0) run(launch, block, jit::host_entry(*launch.code.get()), count);
}

void HostStreamBackend::run_loop(const Launch& launch, const LaunchBlock& block) {
  if (!recording_) return run_now(launch, block);
  auto kept = make_intrusive<SharedLaunch>(without_functions(launch));
  recording_->operations.emplace_back([this, kept, block] { run_now(kept->launch, block); });
}

void HostStreamBackend::fill(void* to, int byte, size_t bytes) {
  const auto now = [this, to, byte, bytes] {
    if (bytes > 0) std::memset(host_address(to), byte, bytes);
  };
  if (!recording_) return now();
  recording_->operations.emplace_back(now);
}

void HostStreamBackend::copy(void* to, const void* from, size_t bytes) {
  if (!recording_) return wait_copy(to, from, bytes);
  recording_->operations.emplace_back([this, to, from, bytes] { wait_copy(to, from, bytes); });
}

void HostStreamBackend::run_primitive(const PrimitiveCall& call) {
  const auto now = [this, call] {
    run_function([&] {
      primitives::run_on_host(
          call, [this](const void* address) { return host_address(address); },
          scratch_.reserve(primitives::scratch_bytes(call)));
    });
  };
  if (!recording_) return now();
  recording_->operations.emplace_back(now);
}

void HostStreamBackend::replay(Recording& recording) {
  launches_begun_ = 0;
  for (const auto& operation : static_cast<HostRecording&>(recording).operations) operation();
}

void HostStreamBackend::wait_copy(void* to, const void* from, size_t bytes) {
  if (bytes > 0) std::memcpy(host_address(to), host_address(from), bytes);
}

bool HostStreamBackend::has_status(const DeviceContext& context) {
  const auto& here = *static_cast<const DeviceContext*>(host_address(&context));
  const uint32_t status = __atomic_load_n(&here.status, __ATOMIC_ACQUIRE);
  return is_final_status(status);
}

void HostStreamBackend::hand_over_messages() { read_messages(log_); }

bool HostStreamBackend::mark_end(std::string_view, DeviceContext&, KeepAlive&) {
  read_messages(log_);
  return false;
}
bool HostStreamBackend::reach_oldest_mark(bool, KeepAlive&) {
  COPPICE_CHECK(false, "no operation is ever under way here");
  return true;
}

}  // namespace coppice
