#include "gpu/simt/scheduler.h"

#include <algorithm>
#include <bit>

#include "core/check.h"

namespace coppice::simt {

void Scheduler::begin(uint64_t seed, uint32_t threads) {
  random_ = Random(seed);
  mode_ = static_cast<Mode>(random_.below(4));
  rarity_ = 8u << (3 * random_.below(3));
  ready_.clear();
  position_.assign(threads, kNobody);
  warps_.assign(threads / 32, 0);
  priority_.assign(threads, 0);
  heap_.clear();
  lowest_ = 0;
}

void Scheduler::add_new(uint32_t thread) {
  priority_[thread] = static_cast<int64_t>(random_.next() >> 2);
  add(thread);
}

void Scheduler::add(uint32_t thread) {
  COPPICE_DCHECK(!is_ready(thread));
  position_[thread] = ready_count();
  ready_.push_back(thread);
  warps_[thread / 32] |= 1u << thread % 32;
  if (mode_ == Mode::kPriorities) give_priority(thread, priority_[thread]);
}

void Scheduler::remove(uint32_t thread) {
  COPPICE_DCHECK(is_ready(thread));
  const uint32_t hole = position_[thread];
  ready_[hole] = ready_.back();
  position_[ready_[hole]] = hole;
  ready_.pop_back();
  position_[thread] = kNobody;
  warps_[thread / 32] &= ~(1u << thread % 32);
}

uint32_t Scheduler::next(uint32_t current) {
  if (ready_.empty()) return kNobody;
  switch (mode_) {
    case Mode::kUniform:
      return any();
    case Mode::kRunOn:
      return current == kNobody || !is_ready(current) || random_.one_in(rarity_) ? any() : current;
    case Mode::kPriorities:
      return by_priority(current);
    case Mode::kTurns:
      return in_turn(current);
  }
  return kNobody;
}

uint32_t Scheduler::next_after_pause(uint32_t current) {
  switch (mode_) {
    case Mode::kRunOn:
      return any();
    case Mode::kPriorities:  // else it would wait for those below it for ever
      give_priority(current, --lowest_);
      break;
    default:
      break;
  }
  return next(current);
}

uint32_t Scheduler::by_priority(uint32_t current) {
  if (random_.one_in(rarity_ * 4)) change_priorities(current);
  for (;;) {
    const auto [priority, thread] = heap_.front();
    if (is_ready(thread) && priority_[thread] == priority) return thread;
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
  }
}

void Scheduler::change_priorities(uint32_t current) {
  if (current != kNobody && is_ready(current) && random_.one_in(2)) {
    give_priority(current, --lowest_);
  } else {
    give_priority(any(), static_cast<int64_t>(random_.next() >> 2));
  }
}

void Scheduler::give_priority(uint32_t thread, int64_t priority) {
  priority_[thread] = priority;
  heap_.emplace_back(priority, thread);
  std::push_heap(heap_.begin(), heap_.end());
}

// Returns the next lane of the same warp; after the last one, mostly the next warp.
uint32_t Scheduler::in_turn(uint32_t current) {
  if (current == kNobody) return any();
  uint32_t warp = current / 32;
  const uint32_t later = warps_[warp] & ~((2u << current % 32) - 1u);
  if (later != 0) return warp * 32 + static_cast<uint32_t>(std::countr_zero(later));
  if (random_.one_in(4)) {
    warp = any() / 32;
  } else {
    do warp = (warp + 1) % static_cast<uint32_t>(warps_.size());
    while (warps_[warp] == 0);
  }
  return warp * 32 + static_cast<uint32_t>(std::countr_zero(warps_[warp]));
}

}  // namespace coppice::simt
