// Math functions of kernels on NVIDIA GPUs: calls of C's and LLVM's become calls of
// libdevice's. Internal to gpu/jit.
#pragma once
#include "gpu/jit/llvm_module.h"

namespace coppice::jit {

// Maps calls of what libdevice has (gpu/jit/libdevice_names.h) and links what is called of libdevice,
// and nothing else; calls stay unresolved in a build without libdevice, or when `linked` is false.
// Returns whether anything was mapped.
bool map_math(llvm::Module& module, bool fast, bool linked, const Diagnostics& diagnostics);

}  // namespace coppice::jit
