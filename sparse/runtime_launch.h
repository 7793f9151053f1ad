// Runs the runtime's own kernels over a number of items, for the parts of a tree.
#pragma once
#include <algorithm>
#include <string_view>
#include <utility>

#include "gpu/device.h"
#include "sparse/program.h"

namespace coppice {

// Says how many items a runtime kernel runs over: a number from the host, or one in device memory at its
// turn.
struct Items {
  Items(uint64_t n) : loop(range(static_cast<int64_t>(n))) {}
  Items(const uint64_t* on_device) : loop(range_on_device(on_device)) {}
  Items(const Count& count)
      : loop(count.is_known() ? range(static_cast<int64_t>(count.value()))
                              : range_on_device(count.address())) {}
  Loop loop;
};

template <class... Args, class... Given>
void run_now_by(InStream& s, uint32_t grain, Program& program, const Kernel<void(Args...)>& kernel,
                const Items& items, const Given&... args) {
  Launch launch = program.make_launch(kernel, items.loop, args...);
  launch.grain = grain;
  launch.skip_on_status = false;
  s.run(launch);
}

template <class... Args, class... Given>
void run_now(InStream& s, Program& program, const Kernel<void(Args...)>& kernel, const Items& items,
             const Given&... args) {
  run_now_by(s, 256, program, kernel, items, args...);
}

// Returns Node::deactivate_all() as a launch. It takes a launch's number wherever it is given, so that those
// behind it draw the same random numbers alone and in a function (sparse/function.h).
BoundLaunch bind_deactivate_all(const Node& node);

// Runs a function when its turn in the stream comes, and blocks the host until it has. Throws its
// error, or that of what was before.
template <class F>
void wait_in_order(Stream& stream, std::string_view name, F&& function) {
  const AsyncValueRef<Chain> done = stream.enqueue(name, std::forward<F>(function));
  wait(done);
  if (done.is_error()) throw done.error();
}

}  // namespace coppice
