// Translates the names of C's math functions, and of LLVM's intrinsics for them, into those of NVIDIA's
// library. No LLVM here: coppice-kernelgen links it.
#pragma once
#include <string>
#include <string_view>

namespace coppice::jit {

// Returns libdevice's name of C's function or LLVM's intrinsic, such as "__nv_sinf" of "sinf" and
// "llvm.sin.f32"; empty for what libdevice lacks or GPUs have instructions for. `fast`: of floats,
// "__nv_fast_sinf" where there is one.
std::string libdevice_name(std::string_view function, bool fast);

}  // namespace coppice::jit
