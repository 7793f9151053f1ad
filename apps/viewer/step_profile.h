// Computes times per step over the last steps, from what a live trace has recorded (core/trace.h).
//
// A row of the trace is a stream's where its name begins with "coppice." (the devices name their streams so),
// a worker's where it is "worker N" (gpu/cpu/tbb_stream_backend.cc), else the host's. Used by one thread.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/viewer/reports.h"
#include "core/trace.h"

namespace coppice::viewer {

TracePlace place_of_row(std::string_view name);

// This is the host's time of the steps that a record is about.
struct ProfiledTime {
  uint64_t steps = 0;
  double elapsed_s = 0;  // pauses apart
  double simulated_s = 0;
};

class StepProfile {
 public:
  // Adds the events that ended since the last call. It costs some 100 ns per event.
  void add(const TraceRecord& record, const ProfiledTime& time);
  void clear();
  TimeReport report() const;

 private:
  // This is one name within another: there is a tree of them for each place.
  struct Series {
    std::string name;
    TracePlace place = TracePlace::kStream;
    std::vector<uint32_t> children;
    std::array<float, kHistory> ms{}, longest_ms{}, calls{};  // by entry: all together, the longest, how many
  };
  uint32_t child(uint32_t parent, std::string_view name);
  void add_timings(std::vector<Timing>& to, uint32_t parent, int depth, size_t from, uint64_t steps) const;
  size_t entry_of_age(size_t age) const { return (entries_ - 1 - age) % kHistory; }
  void find_last_step(const TraceRecord& record, uint64_t steps);

  std::array<ProfiledTime, kHistory> times_{};  // of one call of add() each
  uint64_t entries_ = 0;                        // ever made; the last one stands at (entries_ - 1) % kHistory
  std::vector<Series> series_;                  // the first ones: the roots of the two places
  uint64_t dropped_ = 0;
  Timeline last_step_;
};

}  // namespace coppice::viewer
