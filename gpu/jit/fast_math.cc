// Kernels of COPPICE_KERNEL_FAST_MATH (see llvm_module.h).
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/Operator.h>

#include <vector>

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
  flags.setApproxFunc();
  for (llvm::Function& f : module) {
    for (llvm::Instruction& i : llvm::instructions(f)) {
      if (!llvm::isa<llvm::FPMathOperator>(i)) continue;
      flags.setAllowContract(
          i.hasAllowContract());  // the source's own choice: a pragma may have taken it away
      i.setFastMathFlags(flags);
    }
  }
}

void flush_denormals(llvm::Module& module) {
  for (llvm::Function& f : module) {
    if (!f.isDeclaration()) f.addFnAttr("denormal-fp-math-f32", "preserve-sign,preserve-sign");
  }
}

void use_fast_gpu_instructions(llvm::Module& module) {
  auto is_sqrt = [](const llvm::Value* v) {
    const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(v);
    return call != nullptr && call->getIntrinsicID() == llvm::Intrinsic::sqrt && call->hasApproxFunc();
  };
  auto replace = [](llvm::Instruction& i, llvm::Value* with) {
    i.replaceAllUsesWith(with);
    i.eraseFromParent();
  };
  std::vector<llvm::Instruction*> divisions, roots;
  for (llvm::Function& f : module) {
    for (llvm::Instruction& i : llvm::instructions(f)) {
      if (!llvm::isa<llvm::FPMathOperator>(i)) continue;
      if (i.getType()->isFloatTy() && i.getOpcode() == llvm::Instruction::FDiv && i.hasApproxFunc())
        divisions.push_back(&i);
      else if (i.getType()->isFloatTy() && is_sqrt(&i))
        roots.push_back(&i);
      else
        i.setHasApproxFunc(false),
            i.setHasAllowReciprocal(false);  // LLVM would approximate doubles to 22 bits
    }
  }
  for (llvm::Instruction* i : divisions) {
    llvm::IRBuilder<> b(i);
    llvm::Value *x = i->getOperand(0), *y = i->getOperand(1);
    if (is_sqrt(y)) {
      llvm::Value* root = llvm::cast<llvm::IntrinsicInst>(y)->getArgOperand(0);
      llvm::Value* inverse =
          b.CreateIntrinsic(b.getFloatTy(), llvm::Intrinsic::nvvm_rsqrt_approx_ftz_f, {root});
      replace(*i, b.CreateFMul(x, inverse));
    } else {
      replace(*i, b.CreateIntrinsic(b.getFloatTy(), llvm::Intrinsic::nvvm_div_approx_ftz_f, {x, y}));
    }
  }
  for (llvm::Instruction* i : roots) {
    llvm::IRBuilder<> b(i);
    replace(*i,
            b.CreateIntrinsic(b.getFloatTy(), llvm::Intrinsic::nvvm_sqrt_approx_ftz_f, {i->getOperand(0)}));
  }
}

}  // namespace coppice::jit
