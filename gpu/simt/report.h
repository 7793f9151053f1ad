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

// What is wrong with the running thread's call.
std::string describe_call(const Grid& grid, Wait operation, const void* site, const std::string& what);
// The running thread's access to what is not the device's.
std::string describe_access(const Grid& grid, const void* address, size_t bytes, Access access,
                            const void* site);
// The running thread ends while `waiting` waits for it.
std::string describe_end(const Grid& grid, const Thread& waiting);
std::string describe_deadlock(const Grid& grid);
std::string describe_no_progress(const Grid& grid);

}  // namespace coppice::simt
