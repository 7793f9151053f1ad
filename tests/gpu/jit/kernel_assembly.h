// Kernels whose loops and bodies were compiled apart, for tests that make many kernels: one loop serves all
// bodies of its arguments' types, and clang reads the bodies only.
//
// The result is what coppice_add_kernels() ships for the whole kernels, but for names: the same passes
// simplify both parts, and inline the bodies where the loops call them.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "gpu/jit/bitcode.h"

namespace coppice::jit {

// The loop of a shape, `coppice_kernel_loop_<shape>` after COPPICE_BITCODE_PASSES, and the call for one cell,
// `coppice_kernel_cell_<shape>`, as clang made it. Both call `fuzz_body_<shape>`, which is declared only.
struct LoopParts {
  KernelBitcode loop, cell;
};

// A function of a file and what it leads to, as a file of its own: of large files every reader reads all
// names.
std::string extract_function(const KernelBitcode& file, const std::string& function);

// The function `body` of a file becomes this: the kernel of the same name.
struct KernelPlan {
  std::string body;
  int shape;
  LoopParts parts;
};
// A kernel has this from coppice-kernelgen, as in coppice::Kernel.
struct ToldOfKernel {
  bool active_only = false;
  uint32_t effects = ~0u;
};
struct AssembledKernels {
  std::string bitcode;  // with an entry coppice_kernel_<body> for each
  std::vector<ToldOfKernel> told;
};

// `raw` and `shipped` are the bodies' file as clang made it and after the passes. Errors:
// kCompile where parts do not fit.
AssembledKernels assemble_kernels(std::span<const KernelPlan> plans, const KernelBitcode& raw,
                                  const KernelBitcode& shipped);

}  // namespace coppice::jit
