// Times of work on a device (see device_speed.h).
#include "benchmarks/device_speed.h"

#include <algorithm>
#include <vector>

#include "benchmarks/measure.h"

namespace coppice::bench {
namespace {

// Seconds per repetition of each run but the first.
std::vector<double> run_seconds(Device& device, const DeviceRuns& times, const std::function<void()>& prepare,
                                const std::function<AsyncValueRef<Chain>(int)>& give) {
  std::vector<double> seconds;
  for (int run = 0; run <= times.runs; ++run) {
    prepare();
    wait_done(device.default_stream().barrier());
    const Clock::time_point start = Clock::now();
    AsyncValueRef<Chain> last;
    for (int r = 0; r < times.repetitions; ++r) last = give(r);
    wait_done(last);
    if (run > 0) seconds.push_back(seconds_since(start) / times.repetitions);
  }
  return seconds;
}

}  // namespace

void wait_done(const AsyncValueRef<Chain>& done) {
  wait(done);
  if (done.is_error()) throw done.error();
}

double device_seconds(Device& device, const DeviceRuns& times, const std::function<void()>& prepare,
                      const std::function<AsyncValueRef<Chain>(int)>& give) {
  return median(run_seconds(device, times, prepare, give));
}

CopySpeed device_copy_speed(Device& device, size_t bytes, const DeviceRuns& times) {
  const IntrusivePtr<Buffer> from = device.reserve(bytes, bytes), to = device.reserve(bytes, bytes);
  Stream& stream = device.default_stream();
  stream.fill(from->data(), 1, bytes);
  const std::vector<double> seconds = run_seconds(
      device, times, [&] { stream.fill(to->data(), 0xFF, bytes); },
      [&](int) { return stream.copy(to->data(), from->data(), bytes); });
  const double moved = 2.0 * static_cast<double>(bytes);
  return {moved / median(seconds), moved / *std::min_element(seconds.begin(), seconds.end())};
}

}  // namespace coppice::bench
