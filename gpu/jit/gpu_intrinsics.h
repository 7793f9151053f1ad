// Knows which LLVM intrinsics the NVPTX back end of LLVM 19 can compile for a GPU. Internal to gpu/jit.
#pragma once
#include <string_view>

namespace coppice::jit {

// `id` is an llvm::Intrinsic::ID, `name` its name, "llvm.nvvm.barrier0".
bool ptx_has_intrinsic(unsigned id, std::string_view name, int sm);

}  // namespace coppice::jit
