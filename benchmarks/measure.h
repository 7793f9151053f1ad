// Clocks, medians, interleaved repetitions, and what the machine can do at most.
#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace coppice::bench {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Errors: none; of no values, 0.
double median(std::vector<double> values);

// Several single-threaded programs for the same work, timed in turns so that a machine that slows down
// slows all of them: each once to warm up, then `repetitions` rounds. Returns each one's median of
// seconds per call; a contestant makes `calls` calls each time it runs. Seconds are the process's CPU
// time: with one thread computing it is the wall clock's on an idle machine, and on a busy one it leaves
// out the time that others had the core.
struct Contestant {
  std::function<void()> run;
  int calls = 1;
};
std::vector<double> interleaved_medians(const std::vector<Contestant>& contestants, int repetitions);

// Bytes read plus bytes written per second by a copy of `bytes` on `threads` threads, the
// best of several. Remembered per argument. A copy that fits the caches is faster than
// memory: the ceiling of work of that size.
double copy_bytes_per_s(int threads, size_t bytes);
constexpr size_t kBeyondCaches = size_t{1} << 28;

// Floating-point operations per second, multiply-adds of floats on `threads` threads, the best of several.
double peak_flops(int threads);

// CPU, threads, load, date, commit.
std::string machine_text();

// Resident memory of this process. Errors: kIo without /proc.
size_t resident_bytes();
// Returns how much memory the machine has left, as /proc/meminfo tells.
size_t available_bytes();

}  // namespace coppice::bench
