// Kernels whose loops and bodies were compiled apart, for tests that make many kernels: one loop serves all bodies of its
// arguments' types, and clang reads the body only.
//
// The result is what coppice_add_kernels() ships for the whole kernel, but for names: the same passes simplify both parts,
// and inline the body where the loop calls it.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "gpu/jit/bitcode.h"

namespace coppice::jit {

// Bitcode of a part, as clang made it (`raw`) and after COPPICE_BITCODE_PASSES (`shipped`).
struct KernelParts {
  KernelBitcode raw, shipped;
};

struct AssembledKernel {
  std::string bitcode;       // with the entry coppice_kernel_<name>
  bool active_only = false;  // as in coppice::Kernel
};

// A function of a file and what it leads to, as a file of its own: of large files every reader reads all names.
std::string extract_function(const KernelBitcode& file, const std::string& function);

// The loop `coppice_kernel_loop_<shape>` around the function `name`, which takes the place of `fuzz_body_<shape>`. Errors:
// kCompile where the parts do not fit.
AssembledKernel assemble_kernel(const KernelParts& loops, int shape, const KernelParts& bodies, const std::string& name);

}  // namespace coppice::jit
