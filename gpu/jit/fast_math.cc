// Kernels of COPPICE_KERNEL_FAST_MATH (see llvm_module.h).
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Operator.h>

#include "gpu/jit/llvm_module.h"

namespace coppice::jit {

bool has_fast_math(const llvm::Module& module, std::string_view entry) {
  constexpr std::string_view kEntry = "coppice_kernel_";
  if (!entry.starts_with(kEntry)) return false;
  return module.getNamedGlobal("coppice_fast_math_" + std::string(entry.substr(kEntry.size()))) != nullptr;
}

void add_fast_math_flags(llvm::Module& module) {
  llvm::FastMathFlags flags;
  flags.setAllowReassoc();
  flags.setNoSignedZeros();
  flags.setAllowReciprocal();
  flags.setAllowContract();
  flags.setApproxFunc();
  for (llvm::Function& f : module) {
    for (llvm::Instruction& i : llvm::instructions(f)) {
      if (llvm::isa<llvm::FPMathOperator>(i)) i.setFastMathFlags(flags);
    }
  }
}

void approximate_on_gpu(llvm::Module& module) {
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    f.addFnAttr("unsafe-fp-math", "true");
    f.addFnAttr("denormal-fp-math-f32", "preserve-sign,preserve-sign");
  }
}

}  // namespace coppice::jit
