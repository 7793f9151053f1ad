// Chooses which thread of the emulated GPU runs next, from a seed and nothing else.
//
// Each launch draws one of four ways, since each finds other faults: any ready thread at any point; one
// thread for long, with a few switches; random priorities that change at a few points (probabilistic
// concurrency testing, Burckhardt et al. 2010); a step per lane in turn, as if warps ran in lockstep. Threads
// are numbers, 32 of a warp in a row.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "gpu/simt/random.h"

namespace coppice::simt {

class Scheduler {
 public:
  static constexpr uint32_t kNobody = UINT32_MAX;
  enum class Mode { kUniform, kRunOn, kPriorities, kTurns };

  // `threads` is a multiple of 32; none is ready.
  void begin(uint64_t seed, uint32_t threads);
  Mode mode() const { return mode_; }

  void add_new(uint32_t thread);  // a thread's start
  void add(uint32_t thread);
  void remove(uint32_t thread);
  uint32_t ready_count() const { return static_cast<uint32_t>(ready_.size()); }

  // Returns who runs after `current` (kNobody at first), ready or not; kNobody when nobody is ready.
  uint32_t next(uint32_t current);
  // Returns the same where `current` waits for others to do something.
  uint32_t next_after_pause(uint32_t current);

 private:
  bool is_ready(uint32_t thread) const { return position_[thread] != kNobody; }
  uint32_t any() { return ready_[random_.below(ready_count())]; }
  uint32_t by_priority(uint32_t current);
  uint32_t in_turn(uint32_t current);
  void change_priorities(uint32_t current);
  void give_priority(uint32_t thread, int64_t priority);

  Random random_;
  Mode mode_ = Mode::kUniform;
  uint32_t rarity_ = 1;             // a switch, or a change of priorities, comes once in so many points
  std::vector<uint32_t> ready_;     // in no order
  std::vector<uint32_t> position_;  // in ready_, of each thread
  std::vector<uint32_t> warps_;     // ready lanes of each
  // These are used where priorities count: each thread's, and a heap of (priority, thread) that has every
  // ready one's, besides some that no longer hold.
  std::vector<int64_t> priority_;
  std::vector<std::pair<int64_t, uint32_t>> heap_;
  int64_t lowest_ = 0;
};

}  // namespace coppice::simt
