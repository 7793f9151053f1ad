// Loops on oneTBB (see tbb_stream_backend.h).
#include "gpu/cpu/tbb_stream_backend.h"

#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <mutex>
#include <thread>
#include <utility>

#include "core/trace.h"
#include "gpu/cpu/worker_number.h"

namespace coppice {
namespace {

thread_local uint32_t own_number = 0;  // in the loop that the thread has a part in

// Returns whether a worker's part in a loop is an event in its row; the stream's own row has the whole
// launch.
bool records_worker(std::thread::id stream) {
  if (!Trace::is_on() || std::this_thread::get_id() == stream) return false;
  thread_local bool has_row_name = false;  // oneTBB gives its threads none
  if (!std::exchange(has_row_name, true))
    name_this_thread_row(fmt::format("worker {}", tbb::this_task_arena::current_thread_index()));
  return true;
}

}  // namespace

uint32_t worker_number() { return own_number; }

void TbbStreamBackend::run(const Launch& launch, const LaunchBlock& block, KernelEntry entry,
                           uint64_t count) {
  if (one_loop_ != nullptr || count <= launch.grain || (deterministic_ && launch.is_ordered())) {
    std::unique_lock<std::mutex> lock;
    if (one_loop_ != nullptr) lock = std::unique_lock(*one_loop_);
    own_number = 0;
    return entry(&block, 0, count);
  }
  const std::thread::id stream = std::this_thread::get_id();
  fibers_.begin_loop();
  arena_.execute([&] {
    tbb::parallel_for(tbb::blocked_range<uint64_t>(0, count, launch.grain),
                      [&](const tbb::blocked_range<uint64_t>& r) {
                        const TraceScope trace(launch.name, records_worker(stream));
                        own_number = static_cast<uint32_t>(tbb::this_task_arena::current_thread_index());
                        fibers_.run_items([&] { entry(&block, r.begin(), r.end()); });
                      });
  });
  fibers_.end_loop();
}

// It runs inside the arena, so that parallel algorithms called from there use the device's threads.
void TbbStreamBackend::run_function(const std::function<void()>& function) { arena_.execute(function); }

}  // namespace coppice
