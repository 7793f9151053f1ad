// Finds what a kernel does besides what the roles of its handles say, when its file is built: the
// generated header has it, and a launch needs it to know what it touches (sparse/uses.h).
//
// Every flag errs on the side of doing more: a kernel without a flag surely does not do it.
#pragma once
#include <cstdint>
#include <map>
#include <string>

namespace llvm {
class Module;
}

namespace coppice {

// These flags say what a kernel does.
inline constexpr uint32_t kActivatesCells = 1;    // by set(), activate() or append()
inline constexpr uint32_t kDeactivatesCells = 2;  // or empties lists
inline constexpr uint32_t kTestsCells = 4;        // asks whether cells are active
inline constexpr uint32_t kLoadsMemory = 8;       // by pointers or Views that may be arguments
inline constexpr uint32_t kStoresMemory = 16;     // likewise
inline constexpr uint32_t kAtomicsOnMemory = 32;  // likewise
inline constexpr uint32_t kDrawsFromMemory =
    64;  // uses what an atomic operation gave it: what it does next depends on the order of items
// Reaches memory by addresses that are no argument's: they were loaded, or made of integers.
inline constexpr uint32_t kComputesAddresses = 2048;
inline constexpr uint32_t kReadsAnywhere = 128;     // by at() or length(), whatever the reach
inline constexpr uint32_t kReadsNeighbours = 8192;  // by neighbour_data(), blocks beside its own
inline constexpr uint32_t kLooksAtLists =
    1024;  // by an Append: reads or writes elements, or uses the index that append() gives
inline constexpr uint32_t kAddsAsItGrows = 4096;  // by a Grow's add()
// The choice of what it activates, or of its way at some branch, depends on what the launch changes:
inline constexpr uint32_t kDecidesByChanges =
    256;  // memory, values updated in place, indices that appends were given
inline constexpr uint32_t kDecidesByFields =
    512;  // fields that it reads, which other handles of it may change

namespace jit {

// Returns the effects of kernels by name. `bodies` has a kernel's name and the symbol of its function, in
// a module with debug information in which nothing has been optimised. Cost: a few ms per kernel.
std::map<std::string, uint32_t> kernel_effects(const llvm::Module& module,
                                               const std::map<std::string, std::string>& bodies);

}  // namespace jit
}  // namespace coppice
