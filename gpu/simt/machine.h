// An emulated GPU: runs a compiled kernel's threads as fibers of one thread, in an order that a seed chooses.
//
// It keeps what a GPU promises and nothing else: threads of a warp run independently and meet only in warp
// operations whose mask names them, blocks share fast memory and a barrier, more blocks may be asked for
// than are resident, and what a thread writes is seen by others late and in any order until a release and
// an acquire (weak_memory.h). The same seed gives the same order of everything, so a failure is replayed
// by its seed.
//
// Code for it is compiled with CodegenOptions::simt: its memory accesses and device intrinsics call
// symbols.h. Thread-compatible; one machine runs one launch at a time.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>

#include "gpu/launch_block.h"

namespace coppice::simt {

struct Options {
  uint64_t seed = 1;
  int threads_per_block = 64;         // a multiple of 32
  int multiprocessors = 2;            // for blocks to be resident on; memory looks the same from each
  int blocks_per_multiprocessor = 2;  // resident at once; others wait for one of these to end
  uint64_t max_blocks = 64;           // of a grid; items beyond are taken in turns, as the PTX entry does
  bool weak_views = true;             // false: every access goes to memory at once
  bool own_memory =
      false;  // kernels may use addresses of the device alone (address.h); a device says so itself
  uint64_t max_idle_steps =
      1'000'000;  // turns without progress (pauses, waiting) after which a launch is given up
};

class Machine {
 public:
  explicit Machine(const Options& options);
  ~Machine();

  // Runs `entry` over `count` items; returns when every thread has. `block.flags` says how items are given
  // out: one per thread block, or one per thread. Errors: kInternal, in one line that names kernel, seed,
  // launch, block, warp and lanes: a deadlock and where each lane waits, a warp operation whose mask lacks
  // its caller or names a lane that has ended, a block barrier that threads have left or reach in different
  // places, an access to memory of the host, of no buffer or with a misaligned address, and a race in fast
  // memory or a read of what nobody wrote there.
  void run(std::string_view kernel, const LaunchBlock& block, KernelEntry entry, uint64_t count,
           uint32_t shared_bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coppice::simt
