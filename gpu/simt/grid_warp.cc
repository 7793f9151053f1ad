// Where threads of the emulated GPU meet: active_mask(), warp operations and the block barrier.
#include <fmt/format.h>

#include <bit>
#include <string>
#include <utility>

#include "gpu/simt/grid.h"
#include "gpu/simt/report.h"

namespace coppice::simt {

Thread& Grid::lane_of_warp(uint32_t warp_lane) const {
  return *running_->block.threads[running_->lane / 32 * 32 + warp_lane];
}

Warp& Grid::warp() const { return running_->block.warps[running_->lane / 32]; }

template <class IsSo>
uint32_t Grid::lanes_that(IsSo&& is_so) const {
  uint32_t lanes = 0;
  for (uint32_t i = 0; i < 32; ++i) lanes |= uint32_t{is_so(lane_of_warp(i))} << i;
  return lanes;
}

uint32_t Grid::active_mask(const void* site) {
  note_progress();
  Warp& its = warp();
  if (its.at_active_mask == 0) its.patience = 1 + random_.below(2 * patience_);
  its.at_active_mask |= 1u << running_->lane % 32;
  leave_ready(Wait::kActiveMask, site);
  hand_over(scheduler_.next(running_->number));
  return running_->result;
}

// Hardware says no more than that a mask holds its caller and lanes that run together with it: most times all that
// came to one place, sometimes a part of them.
void Grid::release_active_lanes() {
  Warp& its = warp();
  uint32_t nth = random_.below(static_cast<uint32_t>(std::popcount(its.at_active_mask)));
  uint32_t chosen = its.at_active_mask;
  while (nth-- > 0) chosen &= chosen - 1;
  const Thread& one = lane_of_warp(static_cast<uint32_t>(std::countr_zero(chosen)));
  uint32_t group =
      lanes_that([&](const Thread& t) { return t.wait == Wait::kActiveMask && t.site == one.site; });
  if (split_one_in_ != 0 && random_.one_in(split_one_in_)) {
    const uint32_t others = random_.one_in(2) ? 0 : static_cast<uint32_t>(random_.next());
    group &= others | 1u << one.lane % 32;
  }
  its.at_active_mask &= ~group;
  its.patience = 1 + random_.below(2 * patience_);
  for (uint32_t i = 0; i < 32; ++i) {
    if ((group >> i & 1) == 0) continue;
    lane_of_warp(i).result = group;
    wake(lane_of_warp(i));
  }
}

uint32_t Grid::meet(Wait operation, const WarpCall& call, const void* site) {
  note_progress();
  give_up_if(operation, site, find_misuse(operation, call));
  running_->call = call;
  leave_ready(operation, site);
  const uint32_t here =
      lanes_that([&](const Thread& t) { return t.wait == operation && t.call.mask == call.mask; });
  if ((call.mask & ~here) == 0) finish(operation, call.mask);
  hand_over(scheduler_.next(running_->number));
  return running_->result;
}

// Lanes that wait for each other in different calls would do so for ever.
std::string Grid::find_misuse(Wait operation, const WarpCall& call) const {
  const uint32_t self = running_->lane % 32;
  if ((call.mask >> self & 1) == 0) return fmt::format("its mask {:#010x} lacks its caller", call.mask);
  if (operation == Wait::kShuffle && (call.source_lane > 31 || (call.mask >> call.source_lane & 1) == 0)) {
    return fmt::format("it reads from lane {}, which its mask {:#010x} lacks", call.source_lane, call.mask);
  }
  const uint32_t ended = call.mask & lanes_that([](const Thread& t) { return t.wait == Wait::kEnded; });
  if (ended != 0)
    return fmt::format("its mask {:#010x} names {}, ended before", call.mask, lanes_text(ended));
  for (uint32_t i = 0; i < 32; ++i) {
    const Thread& other = lane_of_warp(i);
    if ((call.mask >> i & 1) == 0 || !is_warp_call(other.wait) || (other.call.mask >> self & 1) == 0)
      continue;
    if (other.wait == operation && other.call.mask == call.mask) continue;
    return fmt::format("with mask {:#010x} it waits for lane {}, which waits for it at {}", call.mask, i,
                       place_text(*this, other));
  }
  return {};
}

void Grid::finish(Wait operation, uint32_t mask) {
  for (uint32_t i = 0; i < 32; ++i) {
    if ((mask >> i & 1) == 0) continue;
    Thread& t = lane_of_warp(i);
    switch (operation) {
      case Wait::kMatchAny:
        t.result = mask & lanes_that([&](const Thread& other) { return other.call.value == t.call.value; });
        break;
      case Wait::kBallot:
        t.result = mask & lanes_that([](const Thread& other) { return other.call.value != 0; });
        break;
      case Wait::kShuffle:
        t.result = static_cast<uint32_t>(lane_of_warp(t.call.source_lane).call.value);
        break;
      default:
        break;
    }
  }
  for (uint32_t i = 0; i < 32; ++i) {
    if ((mask >> i & 1) != 0) wake(lane_of_warp(i));
  }
}

std::string Grid::find_barrier_misuse(const void* site) const {
  const Block& block = running_->block;
  if (block.alive != block.threads.size()) {
    return fmt::format("{} of the block's {} threads ended before", block.threads.size() - block.alive,
                       block.threads.size());
  }
  for (const auto& t : block.threads) {
    if (t->wait != Wait::kBlockBarrier || t->site == site) continue;
    return fmt::format("other threads of the block wait at {}", place_text(*this, *t));
  }
  return {};
}

void Grid::block_barrier(const void* site) {
  note_progress();
  Block& block = running_->block;
  give_up_if(Wait::kBlockBarrier, site, find_barrier_misuse(site));
  leave_ready(Wait::kBlockBarrier, site);
  if (++block.at_barrier == block.threads.size()) {
    block.at_barrier = 0;
    for (auto& t : block.threads) wake(*t);
  }
  hand_over(scheduler_.next(running_->number));
}

const Thread* Grid::who_waits_for_it() const {
  const Thread& self = *running_;
  for (const auto& t : self.block.threads) {
    if (t->wait == Wait::kBlockBarrier) return t.get();
    const bool same_warp = t->lane / 32 == self.lane / 32;
    if (same_warp && is_warp_call(t->wait) && (t->call.mask >> self.lane % 32 & 1) != 0) return t.get();
  }
  return nullptr;
}

// Nothing that owns memory may be on the stack when it is left for good.
void Grid::give_up_if(Wait operation, const void* site, std::string misuse) {
  if (misuse.empty()) return;
  misuse = describe_call(*this, operation, site, misuse);
  give_up(std::move(misuse));
}

}  // namespace coppice::simt
