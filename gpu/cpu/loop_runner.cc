// Operations in the host's memory (see loop_runner.h).
#include "gpu/cpu/loop_runner.h"

#include <cstring>

#include "core/check.h"
#include "gpu/jit/code_loader.h"
#include "gpu/messages.h"

namespace coppice {

void LoopRunner::run_loop(const Launch& launch, const LaunchBlock& block) {
  const uint64_t count =
      block.count != nullptr ? *static_cast<const uint64_t*>(host_address(block.count)) : block.item_count;
  if (count > 0) run(launch, block, jit::host_entry(*launch.code.get()), count);
}

void LoopRunner::fill(void* to, int byte, size_t bytes) { std::memset(host_address(to), byte, bytes); }
void LoopRunner::wait_copy(void* to, const void* from, size_t bytes) {
  std::memcpy(host_address(to), host_address(from), bytes);
}

bool LoopRunner::has_status(const DeviceContext& context) {
  const auto& here = *static_cast<const DeviceContext*>(host_address(&context));
  return __atomic_load_n(&here.status, __ATOMIC_ACQUIRE) != 0;
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
