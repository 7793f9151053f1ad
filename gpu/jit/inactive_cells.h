// Proves that a kernel over cells may also run for inactive cells, whose results are then dropped. It is a
// part of coppice-kernelgen.
//
// The loop over a bitmasked leaf computes whole rows where that is harmless (sparse/device/loops.h). It is
// harmless when the kernel surely comes to an end, traps nowhere, and touches nothing but its own variables
// and handles, whatever values it is given. That is proved here, on the kernel file's bitcode before anything
// is optimised; what cannot be proved keeps the kernel to active cells.
#pragma once
#include <map>
#include <set>
#include <string>

namespace llvm {
class Module;
}

namespace coppice::jit {

// Returns by name, for each kernel over cells among those named, in a kernel file's module with debug
// information: an empty text when it may run for inactive cells, else one line, "file:line: what it does".
// Kernels over anything else are not in it. Cost: a few ms per kernel.
std::map<std::string, std::string> why_active_only(const llvm::Module& module,
                                                   const std::set<std::string>& names);

}  // namespace coppice::jit
