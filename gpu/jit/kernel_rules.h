// Says what kernels may contain, checked when a kernel file is built. Part of coppice-kernelgen.
//
// The rules are the same for every device, because a kernel is to run on each: what a GPU cannot do is
// refused here, with the line, and not where it is first run on one. What only the optimised code shows
// (recursion, calls through pointers) is left to gpu/jit/validate.h. docs/first-solver.md, "What a kernel may
// use", has the table.
#pragma once
#include <cstdint>
#include <string>

#include "gpu/jit/kernel_source.h"

namespace llvm {
class Function;
class Module;
}  // namespace llvm

namespace coppice::kernelgen {

// All variables of a kernel and of what it calls have this many bytes of stack at most. A GPU reserves the
// stack of every thread that it can hold: 64 KiB are 17 GB on one of 132 multiprocessors.
inline constexpr uint64_t kMaxStackBytes = 64 * 1024;

// Checks all that kernel `name`, which is `entry` in the shipped bitcode, leads to. `debug` is the same file
// with full debug information. Throws std::runtime_error, "file:line: kernel <name> <does what>; <what to do
// instead>".
void check_kernel(const llvm::Function& entry, const std::string& name, const llvm::Module& debug,
                  const SourceFolders& folders);

// Checks what is not part of any function. Throws as above.
void check_file(const llvm::Module& debug);

}  // namespace coppice::kernelgen
