// Why the emulated GPU gave a launch up: one line that names kernel, seed, launch and the lanes concerned.
//
// Places in the code are offsets from the kernel's entry.
#pragma once
#include <cstdint>
#include <string>

#include "gpu/simt/grid.h"

namespace coppice::simt {

inline bool is_warp_call(Wait wait) { return wait >= Wait::kMatchAny && wait <= Wait::kWarpBarrier; }

std::string lanes_text(uint32_t lanes);                          // "lanes 0-3,7"
std::string place_text(const Grid& grid, const Thread& thread);  // "ballot (mask 0x0000000f, entry+0x1c)"

// Says what is wrong with the running thread's call.
std::string describe_call(const Grid& grid, Wait operation, const void* site, const std::string& what);
// These describe the running thread's access: to what is not the device's, to what is in no buffer, or in
// the block's shared memory but behind its end; to an address that is not aligned as it says; to shared
// memory that nobody wrote, or that `earlier` accessed without a barrier in between.
std::string describe_host_access(const Grid& grid, const AccessCall& call);
std::string describe_outside(const Grid& grid, const AccessCall& call);
std::string describe_misaligned(const Grid& grid, const AccessCall& call, size_t alignment);
std::string describe_unwritten(const Grid& grid, const AccessCall& call);
std::string describe_race(const Grid& grid, const AccessCall& call, const SharedMemory::Use& earlier);
// Says that the running thread ends while `waiting` waits for it.
std::string describe_end(const Grid& grid, const Thread& waiting);
std::string describe_deadlock(const Grid& grid);
std::string describe_no_progress(const Grid& grid);

}  // namespace coppice::simt
