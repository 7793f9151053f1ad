// Lets threads of the emulated GPU meet: in active_mask(), warp operations and the block barrier.
#include <fmt/format.h>

#include <bit>
#include <string>
#include <utility>

#include "gpu/simt/grid.h"
#include "gpu/simt/report.h"

namespace coppice::simt {
namespace {

constexpr auto kAtActiveMask = static_cast<size_t>(Wait::kActiveMask);

uint32_t first_of(uint32_t lanes) { return static_cast<uint32_t>(std::countr_zero(lanes)); }

}  // namespace

Thread& Grid::lane_of_warp(uint32_t warp_lane) const {
  return *running_->block.threads[running_->lane / 32 * 32 + warp_lane];
}

uint32_t Warp::lanes_with(uint64_t value, uint32_t among) const {
  uint32_t lanes = 0;
  for (uint32_t i = 0; i < 32; ++i) lanes |= uint32_t{calls[i].value == value} << i;
  return lanes & among;
}

Warp& Grid::warp() const { return running_->block.warps[running_->lane / 32]; }

uint32_t Grid::active_mask(const void* site) {
  note_progress();
  Warp& its = warp();
  if (its.at[kAtActiveMask] == 0) its.patience = 1 + random_.below(2 * patience_);
  leave_ready(Wait::kActiveMask, site);
  hand_over(scheduler_.next(running_->number));
  return warp().results[warp_lane()];
}

// Hardware says no more than that a mask holds its caller and lanes that run together with it: most times all
// that came to one place, sometimes a part of them.
void Grid::release_active_lanes() {
  Warp& its = warp();
  uint32_t rest = its.at[kAtActiveMask];
  for (uint32_t skip = random_.below(static_cast<uint32_t>(std::popcount(rest))); skip > 0; --skip)
    rest &= rest - 1;
  const uint32_t one = first_of(rest);
  uint32_t group = 0;
  for (uint32_t lanes = its.at[kAtActiveMask]; lanes != 0; lanes &= lanes - 1) {
    if (lane_of_warp(first_of(lanes)).site == lane_of_warp(one).site) group |= lanes & -lanes;
  }
  if (split_one_in_ != 0 && random_.one_in(split_one_in_)) {
    const uint32_t others = random_.one_in(2) ? 0 : static_cast<uint32_t>(random_.next());
    group &= others | 1u << one;
  }
  for (uint32_t lanes = group; lanes != 0; lanes &= lanes - 1) its.results[first_of(lanes)] = group;
  its.patience = 1 + random_.below(2 * patience_);
  wake_lanes(group);
}

void Grid::wake_lanes(uint32_t lanes) {
  for (; lanes != 0; lanes &= lanes - 1) wake(lane_of_warp(first_of(lanes)));
}

uint32_t Grid::meet(Wait operation, const WarpCall& call, const void* site) {
  note_progress();
  give_up_if(operation, site, find_misuse(operation, call));
  warp().calls[warp_lane()] = call;
  leave_ready(operation, site);
  if (is_complete(operation, call.mask)) finish(operation, call.mask);
  hand_over(scheduler_.next(running_->number));
  return warp().results[warp_lane()];
}

// Lanes that wait for each other in different calls would do so for ever.
std::string Grid::find_misuse(Wait operation, const WarpCall& call) const {
  const Warp& its = warp();
  if ((call.mask >> warp_lane() & 1) == 0)
    return fmt::format("its mask {:#010x} lacks its caller", call.mask);
  if (operation == Wait::kShuffle && (call.source_lane > 31 || (call.mask >> call.source_lane & 1) == 0)) {
    return fmt::format("it reads from lane {}, which its mask {:#010x} lacks", call.source_lane, call.mask);
  }
  const uint32_t ended = call.mask & its.at[static_cast<size_t>(Wait::kEnded)];
  if (ended != 0)
    return fmt::format("its mask {:#010x} names {}, ended before", call.mask, lanes_text(ended));
  for (size_t wait = 0; wait < kWaits; ++wait) {
    if (!is_warp_call(static_cast<Wait>(wait))) continue;
    for (uint32_t lanes = its.at[wait] & call.mask; lanes != 0; lanes &= lanes - 1) {
      const uint32_t other = first_of(lanes);
      const uint32_t mask = its.calls[other].mask;
      if ((mask >> warp_lane() & 1) == 0) continue;
      if (wait == static_cast<size_t>(operation) && mask == call.mask) continue;
      return fmt::format("with mask {:#010x} it waits for lane {}, which waits for it at {}", call.mask,
                         other, place_text(*this, lane_of_warp(other)));
    }
  }
  return {};
}

bool Grid::is_complete(Wait operation, uint32_t mask) const {
  const Warp& its = warp();
  if ((mask & ~its.at[static_cast<size_t>(operation)]) != 0) return false;
  for (uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    if (its.calls[first_of(lanes)].mask != mask) return false;
  }
  return true;
}

// Among these operations only the barrier orders memory.
void Grid::meet_in_memory(uint32_t mask) {
  Clock meeting;
  for (uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1)
    memory_.arrive(lane_of_warp(first_of(lanes)).number, meeting);
  for (uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1)
    memory_.leave(lane_of_warp(first_of(lanes)).number, meeting);
}

void Grid::finish(Wait operation, uint32_t mask) {
  Warp& its = warp();
  if (operation == Wait::kWarpBarrier) meet_in_memory(mask);
  uint32_t yes = 0;
  for (uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    if (its.calls[first_of(lanes)].value != 0) yes |= lanes & -lanes;
  }
  for (uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    const uint32_t lane = first_of(lanes);
    const WarpCall& call = its.calls[lane];
    switch (operation) {
      case Wait::kMatchAny:
        its.results[lane] = its.lanes_with(call.value, mask);
        break;
      case Wait::kBallot:
        its.results[lane] = yes;
        break;
      case Wait::kShuffle:
        its.results[lane] = static_cast<uint32_t>(its.calls[call.source_lane].value);
        break;
      default:
        break;
    }
  }
  wake_lanes(mask);
}

std::string Grid::find_barrier_misuse(uint64_t barrier) const {
  const Block& block = running_->block;
  if (block.alive != block.threads.size()) {
    return fmt::format("{} of the block's {} threads ended before", block.threads.size() - block.alive,
                       block.threads.size());
  }
  for (const auto& t : block.threads) {
    if (t->wait != Wait::kBlockBarrier || t->barrier == barrier) continue;
    return fmt::format("other threads of the block wait at {}", place_text(*this, *t));
  }
  return {};
}

void Grid::block_barrier(const void* site, uint64_t barrier) {
  note_progress();
  Block& block = running_->block;
  give_up_if(Wait::kBlockBarrier, site, find_barrier_misuse(barrier));
  running_->barrier = barrier;
  memory_.arrive(running_->number, block.meeting);
  leave_ready(Wait::kBlockBarrier, site);
  if (++block.at_barrier == block.threads.size()) {
    block.at_barrier = 0;
    block.shared.pass_barrier();
    for (auto& t : block.threads) {
      memory_.leave(t->number, block.meeting);
      wake(*t);
    }
    block.meeting.clear();
  }
  hand_over(scheduler_.next(running_->number));
}

const Thread* Grid::who_waits_for_it() const {
  const Thread& self = *running_;
  for (const auto& t : self.block.threads) {
    if (t->wait == Wait::kBlockBarrier) return t.get();
    if (t->lane / 32 != self.lane / 32 || !is_warp_call(t->wait)) continue;
    if ((warp().calls[t->lane % 32].mask >> warp_lane() & 1) != 0) return t.get();
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
