// COPPICE_PTX_FOLDER=dir writes the PTX of every kernel that a program loads for the CPU or the emulated
// GPU, as a GPU would get it. It is for checking GPU code where there is no GPU (tests/ptx); a program so
// run is slow to start.
//
//     <id>-<key>-sm_90.ptx                     of every specialization; none is made twice
//     <id>-<key>-sm_75.ptx, -sm_80.ptx         of a kernel's smallest key, and of a larger one where that came first; made
//                                              of the module that is optimised for sm_90 (compile_ptx_of_each())
//     <id>-<key>-sm_75.refused, ...            why there is none: the one line of the error
//
// The folder is made. <key> is the first 8 digits of the specialization's key for sm_90. Thread-safe.
#pragma once
#include <filesystem>
#include <memory>

#include "gpu/jit/code_backend.h"

namespace coppice::jit {

// Returns the same back end, or, with COPPICE_PTX_FOLDER, one that also writes PTX. A failure to write it
// is an Error (kIo) of the kernel.
std::unique_ptr<CodeBackend> with_ptx_recorded(std::unique_ptr<CodeBackend> backend);

}  // namespace coppice::jit
