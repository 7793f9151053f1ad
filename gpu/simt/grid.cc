#include "gpu/simt/grid.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "gpu/simt/report.h"
#include "gpu/simt/symbols.h"

namespace coppice::simt {
namespace {

constexpr uint32_t kAccessesPerPoint = 64;  // plain loads and stores, on average
constexpr uint32_t kWarpLanes = 32;
// A loop that waits without a pause looks like work; it is given up later.
constexpr uint64_t kStepsPerIdleStep = 64;

thread_local Grid* current_grid = nullptr;

}  // namespace

Thread::Thread(Grid& its_grid, Block& its_block, uint32_t its_number, uint32_t its_lane)
    : grid(its_grid),
      block(its_block),
      number(its_number),
      lane(its_lane),
      fiber([](void* self) -> Fiber& { return static_cast<Thread*>(self)->grid.run_thread(); }, this) {}

Grid::Grid(const Options& options) : options_(options) {
  const auto multiprocessors = static_cast<uint32_t>(options.multiprocessors);
  places_.resize(size_t{multiprocessors} * static_cast<uint32_t>(options.blocks_per_multiprocessor));
  for (uint32_t i = 0; i < places_.size(); ++i) places_[i].multiprocessor = i % multiprocessors;
}

Grid& Grid::current() {
  COPPICE_DCHECK(current_grid != nullptr);
  return *current_grid;
}

std::string Grid::run(const Launch& launch, uint32_t shared_bytes) {
  prepare(launch, shared_bytes);
  if (launch.blocks == 0) return {};
  Grid* const outer = std::exchange(current_grid, this);
  Fiber host;
  host_ = &host;
  running_ = &thread(scheduler_.next(Scheduler::kNobody));
  host.switch_to(running_->fiber);
  current_grid = outer;
  memory_.end();
  if (!error_.empty()) {
    for (Block& place : places_) {
      for (auto& t : place.threads) t->fiber.reset();
    }
  }
  return std::exchange(error_, {});
}

void Grid::prepare(const Launch& launch, uint32_t shared_bytes) {
  launch_ = launch;
  shared_bytes_ = shared_bytes;
  random_ = Random(options_.seed ^ Random(launch.number).next());
  scheduler_.begin(random_.next(),
                   static_cast<uint32_t>(places_.size()) * static_cast<uint32_t>(options_.threads_per_block));
  memory_.begin(random_.next(), options_.weak_views,
                static_cast<uint32_t>(places_.size()) * static_cast<uint32_t>(options_.threads_per_block));
  split_one_in_ = random_.below(3) * 4;
  patience_ = 16u << (3 * random_.below(3));
  until_access_point_ = 1 + random_.below(2 * kAccessesPerPoint);
  steps_ = idle_steps_ = 0;
  not_paused_ = 0;
  watched_ = nullptr;
  set_constants(nullptr, 0);
  next_block_ = blocks_alive_ = 0;
  for (Block& place : places_) {
    place.shared.begin_launch(shared_bytes);
    if (next_block_ < launch.blocks) begin_block(place);
  }
}

void Grid::begin_block(Block& place) {
  const auto threads = static_cast<uint32_t>(options_.threads_per_block);
  const auto first = static_cast<uint32_t>(&place - places_.data()) * threads;
  while (place.threads.size() < threads) {
    const auto lane = static_cast<uint32_t>(place.threads.size());
    place.threads.push_back(std::make_unique<Thread>(*this, place, first + lane, lane));
  }
  place.number = next_block_++;
  place.warps.assign(threads / kWarpLanes, {});
  place.alive = threads;
  place.at_barrier = 0;
  place.meeting.clear();
  place.released.clear();
  place.shared.begin_block();
  for (auto& t : place.threads) {
    memory_.begin_thread(t->number);
    set_wait(*t, Wait::kNothing);
    t->pause_round = pause_round_ - 1;
    ++not_paused_;
    scheduler_.add_new(t->number);
  }
  ++blocks_alive_;
}

Fiber& Grid::run_thread() {
  const uint64_t step = launch_.blocks * launch_.chunk;
  for (uint64_t item = running_->block.number * launch_.chunk; item < launch_.count; item += step) {
    launch_.entry(launch_.block, item, std::min(item + launch_.chunk, launch_.count));
  }
  note_progress();
  made_progress();
  if (const Thread* waiting = who_waits_for_it()) give_up(describe_end(*this, *waiting));
  Block& block = running_->block;
  leave_ready(Wait::kEnded, nullptr);
  if (--block.alive == 0) {
    --blocks_alive_;
    if (next_block_ < launch_.blocks) begin_block(block);
    if (blocks_alive_ == 0) return *host_;
  }
  const uint32_t next = scheduler_.next(running_->number);
  if (next == Scheduler::kNobody) give_up(describe_deadlock(*this));
  running_ = &thread(next);
  return running_->fiber;
}

Thread& Grid::thread(uint32_t number) const {
  const auto threads = static_cast<uint32_t>(options_.threads_per_block);
  return *places_[number / threads].threads[number % threads];
}

void Grid::pass_on(Order order) {
  Block& block = running_->block;
  if (order == Order::kRelease || order == Order::kAcquireRelease)
    memory_.arrive(running_->number, block.released);
  if (order == Order::kAcquire || order == Order::kAcquireRelease)
    memory_.learn(running_->number, block.released);
}

bool Grid::is_constant(const void* address, size_t bytes) const {
  const auto lies_in = [&](const void* first, size_t size) {
    const uintptr_t offset = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(first);
    return offset <= size && bytes <= size - offset;
  };
  if (lies_in(launch_.block, sizeof(LaunchBlock))) return true;
  return std::any_of(constants_, constants_ + num_constants_,
                     [&](const CoppiceSimtConstant& c) { return lies_in(c.address, c.bytes); });
}

void Grid::check_alignment(const AccessCall& call) {
  const size_t alignment = call.access == Access::kAtomic ? call.bytes
                           : call.site == nullptr         ? 1
                                                          : call.site->alignment;
  if (reinterpret_cast<uintptr_t>(call.address) % std::max<size_t>(alignment, 1) != 0)
    give_up(describe_misaligned(*this, call, alignment));
}

void* Grid::reach(const AccessCall& call) {
  check_alignment(call);
  void* const address = const_cast<void*>(call.address);
  if (!options_.own_memory || is_on_stack(address)) return host_address(address);
  if (!is_device_address(address)) {
    if (call.access == Access::kLoad && is_constant(address, call.bytes)) return address;
    give_up(describe_host_access(*this, call));
  }
  if (!buffers_.holds(reinterpret_cast<uintptr_t>(address), call.bytes))
    give_up(describe_outside(*this, call));
  return host_address(address);
}

void Grid::use_shared(const AccessCall& call, bool reads, bool writes) {
  check_alignment(call);
  SharedMemory& shared = running_->block.shared;
  const uintptr_t offset = shared.offset_of(call.address);
  if (offset + call.bytes > shared_bytes_) give_up(describe_outside(*this, call));
  if (reads && !shared.is_written(offset, call.bytes)) give_up(describe_unwritten(*this, call));
  if (writes) shared.note_written(offset, call.bytes);
  if (!options_.weak_views) return;
  const SharedMemory::Use use{running_->number, memory_.new_event(running_->number), 0, call.access,
                              call.site};
  const auto race = shared.find_race(offset, call.bytes, use, memory_);
  if (race) give_up(describe_race(*this, call, *race));
}

void Grid::watch(const void* address, uint32_t bytes, bool shared) {
  watched_ = address;
  watched_is_shared_ = shared;
  watched_bytes_ = std::min<uint32_t>(bytes, sizeof watched_value_);
  std::memcpy(watched_value_, address, watched_bytes_);
}

// Nobody else has run since the atomic instruction.
void Grid::note_progress() {
  if (watched_ == nullptr) return;
  const void* const address = std::exchange(watched_, nullptr);
  if (std::memcmp(address, watched_value_, watched_bytes_) == 0) return;
  made_progress();
  if (!watched_is_shared_) memory_.after_update(running_->number, address, watched_bytes_, Order::kRelaxed);
}

void Grid::point() {
  note_progress();
  step();
  hand_over(scheduler_.next(running_->number));
}

void Grid::access_point() {
  note_progress();
  if (--until_access_point_ != 0) return;
  until_access_point_ = 1 + random_.below(2 * kAccessesPerPoint);
  step(kAccessesPerPoint);
  hand_over(scheduler_.next(running_->number));
}

// Steps are idle when every thread that could run paused and did nothing else: one that reads for long while
// others wait for it is no reason to give up.
void Grid::pause() {
  note_progress();
  if (running_->pause_round != pause_round_) {
    running_->pause_round = pause_round_;
    if (--not_paused_ == 0) {
      idle_steps_ += not_paused_ = scheduler_.ready_count();
      ++pause_round_;
    }
  }
  memory_.wait(running_->number);
  if (idle_steps_ > options_.max_idle_steps) give_up(describe_no_progress(*this));
  step();
  hand_over(scheduler_.next_after_pause(running_->number));
}

// Takes steps; in a while the threads of its warp that the running one left behind in active_mask() may go
// on.
void Grid::step(uint32_t count) {
  steps_ += count;
  if (steps_ > options_.max_idle_steps * kStepsPerIdleStep) give_up(describe_no_progress(*this));
  Warp& its = warp();
  if (its.at[static_cast<size_t>(Wait::kActiveMask)] == 0) return;
  its.patience -= std::min(its.patience, count);
  if (its.patience == 0) release_active_lanes();
}

void Grid::hand_over(uint32_t next) {
  if (next == Scheduler::kNobody) give_up(describe_deadlock(*this));
  if (next == running_->number) return;
  Thread& from = *std::exchange(running_, &thread(next));
  from.fiber.switch_to(running_->fiber);
}

void Grid::leave_ready(Wait what, const void* site) {
  set_wait(*running_, what);
  running_->site = site;
  if (running_->pause_round != pause_round_) --not_paused_;
  scheduler_.remove(running_->number);
  const Warp& its = warp();
  if (its.at[static_cast<size_t>(Wait::kActiveMask)] != 0 &&
      its.at[static_cast<size_t>(Wait::kNothing)] == 0) {
    release_active_lanes();
  }
}

void Grid::wake(Thread& t) {
  set_wait(t, Wait::kNothing);
  if (t.pause_round != pause_round_) ++not_paused_;
  scheduler_.add(t.number);
}

void Grid::set_wait(Thread& t, Wait what) {
  Warp& its = t.block.warps[t.lane / kWarpLanes];
  const uint32_t bit = 1u << t.lane % kWarpLanes;
  its.at[static_cast<size_t>(t.wait)] &= ~bit;
  its.at[static_cast<size_t>(what)] |= bit;
  t.wait = what;
}

// Never returns, and its caller's frame is left as it is: `why` was moved from.
void Grid::give_up(std::string why) {
  error_.swap(why);
  running_->fiber.switch_to(*host_);
  COPPICE_CHECK(false, "a thread of a launch that was given up goes on");
  __builtin_unreachable();
}

}  // namespace coppice::simt
