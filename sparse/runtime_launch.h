// How TreeStorage's own files run the runtime's kernels: now, in stream order, over a number of items.
#pragma once
#include <algorithm>
#include <string_view>
#include <utility>

#include "gpu/device.h"
#include "sparse/program.h"

namespace coppice {

template <class... Args, class... Given>
void run_now_by(uint32_t grain, Program& program, const Kernel<void(Args...)>& kernel, uint64_t count,
                const Given&... args) {
  Launch launch = program.make_launch(kernel, range(static_cast<int64_t>(count)), args...);
  launch.grain = grain;
  launch.skip_on_status = false;
  program.device().default_stream().run_inline(launch);
}

template <class... Args, class... Given>
void run_now(Program& program, const Kernel<void(Args...)>& kernel, uint64_t count, const Given&... args) {
  run_now_by(256, program, kernel, count, args...);
}

// Runs a function in a stream's own order and blocks the host until it has. Throws its error, or that of what was before.
template <class F>
void wait_in_order(Stream& stream, std::string_view name, F&& function) {
  const AsyncValueRef<Chain> done = stream.enqueue(name, std::forward<F>(function));
  wait(done);
  if (done.is_error()) throw done.error();
}

// A buffer of at least so many items; grows in place where it can.
template <class T>
void ensure_items(Device& device, IntrusivePtr<Buffer>& buffer, uint64_t items) {
  const uint64_t bytes = std::max<uint64_t>(items * sizeof(T), 64);
  if (!buffer || buffer->reserved_bytes() < bytes) {
    buffer = device.reserve(std::max<uint64_t>(bytes * 2, 4096), bytes);
  } else if (buffer->size_bytes() < bytes) {
    buffer->grow(bytes);
  }
}

}  // namespace coppice
