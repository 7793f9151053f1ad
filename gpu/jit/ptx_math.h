// Math functions of kernels on NVIDIA GPUs: calls of C's and LLVM's become calls of libdevice's. Internal to gpu/jit.
#pragma once
#include <string>
#include <string_view>

#include "gpu/jit/llvm_module.h"

namespace coppice::jit {

// libdevice's name for a C math function or an LLVM intrinsic that NVPTX cannot lower, or "". With `fast`, of the
// approximation on the GPU's special function units, where there is one.
std::string libdevice_name(std::string_view function, bool fast);

// Maps all such calls and links what is called of libdevice, and nothing else; calls stay unresolved in a build without
// libdevice, or when `linked` is false. Returns whether anything was mapped.
bool map_math(llvm::Module& module, bool fast, bool linked, const Diagnostics& diagnostics);

}  // namespace coppice::jit
