// Times of work on a device, through its stream and nothing else, so that one program serves every device.
//
// A stream has no timer: k repetitions are given without waiting between two waits of the host, and the time
// is divided by k. What the host and the driver take to give one is hidden behind the one that runs; the
// last wait is a k-th of a wait.
#pragma once
#include <cstddef>
#include <functional>

#include "gpu/device.h"

namespace coppice::bench {

// Blocks the host until it is done. Throws its error.
void wait_done(const AsyncValueRef<Chain>& done);

struct DeviceRuns {
  int runs, repetitions;  // of a run
};
// Median over the runs of the seconds that one repetition takes, after an untimed run. `give(r)`
// gives repetition r to the default stream; before each run `prepare` does what is not timed,
// and all of that is waited for.
double device_seconds(Device& device, const DeviceRuns& times, const std::function<void()>& prepare,
                      const std::function<AsyncValueRef<Chain>(int repetition)>& give);

// Bytes read plus bytes written per second by the device's own copy of so many bytes: the ceiling of work on
// them.
struct CopySpeed {
  double median = 0, best = 0;
};
CopySpeed device_copy_speed(Device& device, size_t bytes, const DeviceRuns& times);

}  // namespace coppice::bench
