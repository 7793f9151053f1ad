// The thread blocks of a launch that are resident on the emulated GPU: their threads, and what these wait
// for.
//
// Everything runs in the OS thread that called run(), on fibers that switch to each other: a thread goes on
// until it waits or a scheduling point hands over. Members from `running` on are called on a thread of the
// grid (symbols.cc).
#pragma once
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/buffer_ranges.h"
#include "gpu/launch_block.h"
#include "gpu/simt/address.h"
#include "gpu/simt/fiber.h"
#include "gpu/simt/machine.h"
#include "gpu/simt/scheduler.h"
#include "gpu/simt/shared_memory.h"
#include "gpu/simt/symbols.h"
#include "gpu/simt/weak_memory.h"

namespace coppice::simt {

enum class Wait : uint8_t {
  kNothing,  // runs or is ready to
  kActiveMask,
  kMatchAny,
  kBallot,
  kShuffle,
  kWarpBarrier,
  kBlockBarrier,
  kEnded,
};

inline constexpr size_t kWaits = 8;

// Describes an access of a kernel's to memory, and where in its source that is.
struct AccessCall {
  const void* address;
  size_t bytes;
  Access access;
  const CoppiceSimtSite* site;  // null: not known
  const void* code;             // the return address of the call
};

// Holds what a lane brings to a warp operation.
struct WarpCall {
  uint32_t mask = 0;
  uint64_t value = 0;
  uint32_t source_lane = 0;
};

class Grid;
struct Block;

struct Thread {
  Thread(Grid& its_grid, Block& its_block, uint32_t its_number, uint32_t its_lane);

  Grid& grid;
  Block& block;
  uint32_t number;  // among all threads of the grid: the scheduler's
  uint32_t lane;    // in the block
  Wait wait = Wait::kEnded;
  uint32_t pause_round = 0;    // the last one in which it paused: see Grid::pause()
  const void* site = nullptr;  // where it waits: the return address of the call
  uint64_t barrier = 0;        // at which one, where it waits at one
  Fiber fiber;
};

// Holds the state of a warp, by lane.
struct Warp {
  std::array<uint32_t, kWaits> at{};  // lanes that wait for each
  uint32_t patience = 0;              // steps of the other lanes until some in active_mask() go on
  std::array<WarpCall, 32> calls;     // of those that wait for a warp operation
  std::array<uint32_t, 32> results;

  uint32_t lanes_with(uint64_t value, uint32_t among) const;
};

// This is a place for a resident block, and the block that is there.
struct Block {
  uint64_t number = 0;
  uint32_t multiprocessor = 0;
  std::vector<std::unique_ptr<Thread>> threads;  // made when the place is first used
  std::vector<Warp> warps;
  SharedMemory shared;
  uint32_t alive = 0;  // threads that have not ended
  uint32_t at_barrier = 0;
  Clock meeting;   // what those at the barrier know
  Clock released;  // by accesses to shared memory
};

struct Launch {
  std::string_view kernel;
  const LaunchBlock* block = nullptr;
  KernelEntry entry = nullptr;
  uint64_t count = 0;
  uint64_t number = 0;  // of the machine's launches, from 1
  uint64_t chunk = 1;   // items that a block takes at a time
  uint64_t blocks = 0;
};

class Grid {
 public:
  explicit Grid(const Options& options);

  // Returns an empty text, or why the launch was given up.
  std::string run(const Launch& launch, uint32_t shared_bytes);
  const Options& options() const { return options_; }
  const Launch& launch() const { return launch_; }
  const std::vector<Block>& places() const { return places_; }

  static Grid& current();

  uint64_t blocks_left() const { return launch_.blocks - next_block_; }

  Thread& running() const { return *running_; }
  WeakMemory& memory() { return memory_; }
  uint32_t shared_bytes() const { return shared_bytes_; }
  void* shared_memory() const { return running_->block.shared.data(); }
  bool is_shared(const void* address) const { return running_->block.shared.holds(address); }
  bool is_on_stack(const void* address) const { return running_->fiber.has_on_stack(address); }
  // Returns where the host finds what the running thread accesses, on its stack or in the device's memory.
  // Gives the launch up when a GPU could not do it: memory of the host, but for the launch block and the
  // constants of the kernel's code; an address that is in no buffer, or less aligned than the access.
  void* reach(const AccessCall& call);
  // Does the same in the block's shared memory. A race there, and a read of what nobody wrote, ends the
  // launch, too. `writes` is false for an atomic load, and `reads` for an atomic store.
  void use_shared(const AccessCall& call, bool reads, bool writes);
  // Tells of an access there with an order: a release is acquired by every acquire behind it, whatever
  // place they are of.
  void pass_on(Order order);
  void set_constants(const CoppiceSimtConstant* all, uint64_t count) {
    constants_ = all, num_constants_ = count;
  }

  void point();         // others may run
  void access_point();  // others may run, but seldom do
  void pause();
  void made_progress() { idle_steps_ = steps_ = 0; }
  // Prepares for a relaxed atomic instruction that follows, on memory that is `shared` or not: whether it
  // changed anything is seen at the thread's next call, and noted then.
  void watch(const void* address, uint32_t bytes, bool shared);

  uint32_t active_mask(const void* site);
  uint32_t meet(Wait operation, const WarpCall& call, const void* site);
  void block_barrier(const void* site, uint64_t barrier);  // `barrier` tells it from others

 private:
  friend struct Thread;

  Thread& thread(uint32_t number) const;
  Thread& lane_of_warp(uint32_t warp_lane) const;  // the running thread's warp
  Warp& warp() const;
  uint32_t warp_lane() const { return running_->lane % 32; }
  void set_wait(Thread& t, Wait what);

  void prepare(const Launch& launch, uint32_t shared_bytes);
  void begin_block(Block& place);
  Fiber& run_thread();                     // to its end; who goes on then
  const Thread* who_waits_for_it() const;  // of its block, for a warp operation or barrier

  void leave_ready(Wait what, const void* site);
  void wake(Thread& t);
  void hand_over(uint32_t next);
  void step(uint32_t count = 1);
  void release_active_lanes();
  std::string find_misuse(Wait operation, const WarpCall& call) const;
  std::string find_barrier_misuse(uint64_t barrier) const;
  void give_up_if(Wait operation, const void* site, std::string misuse);
  void finish(Wait operation, uint32_t mask);
  void meet_in_memory(uint32_t mask);
  void wake_lanes(uint32_t lanes);
  bool is_complete(Wait operation, uint32_t mask) const;
  void note_progress();
  bool is_constant(const void* address, size_t bytes) const;
  void check_alignment(const AccessCall& call);
  [[noreturn]] void give_up(std::string why);

  const Options options_;
  Launch launch_;
  std::vector<Block> places_;
  WeakMemory memory_;
  BufferCache buffers_;
  Scheduler scheduler_;
  Random random_;
  Fiber* host_ = nullptr;
  Thread* running_ = nullptr;
  uint64_t next_block_ = 0;
  uint64_t blocks_alive_ = 0;
  uint32_t shared_bytes_ = 0;
  uint32_t until_access_point_ = 0;
  uint32_t split_one_in_ = 0;  // groups that active_mask() returns in parts; 0: none
  uint32_t patience_ = 0;      // on average
  uint64_t steps_ = 0;         // since there was progress
  uint64_t idle_steps_ = 0;    // the pauses among them, where nobody did anything else in between
  uint32_t pause_round_ = 0;
  uint32_t not_paused_ = 0;  // ready threads that have not paused in this round
  const CoppiceSimtConstant* constants_ = nullptr;
  uint64_t num_constants_ = 0;
  const void* watched_ = nullptr;
  uint32_t watched_bytes_ = 0;
  bool watched_is_shared_ = false;
  unsigned char watched_value_[16];
  std::string error_;
};

}  // namespace coppice::simt
