// Sums of products as fused operations, on x86-64 (see llvm_module.h).
//
// LLVM's instruction selection fuses a product into a sum only where nothing else uses the product, so that a
// weight that is computed once and used in three sums costs a multiplication and three additions with a
// longer chain. Here every sum takes its product in, which is never more instructions, wherever the source
// lets both be contracted.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Operator.h>

#include <vector>

#include "gpu/jit/llvm_module.h"

namespace coppice::jit {
namespace {

llvm::Instruction* product(llvm::Value* v) {
  auto* i = llvm::dyn_cast<llvm::Instruction>(v);
  return i != nullptr && i->getOpcode() == llvm::Instruction::FMul && i->hasAllowContract() ? i : nullptr;
}

// Returns the fused form of a sum or a difference; null when it has no product.
llvm::Value* fused(llvm::Instruction& sum) {
  llvm::IRBuilder<> b(&sum);
  b.setFastMathFlags(sum.getFastMathFlags());
  llvm::Value *left = sum.getOperand(0), *right = sum.getOperand(1);
  const bool is_difference = sum.getOpcode() == llvm::Instruction::FSub;
  auto fuse = [&](llvm::Value* x, llvm::Value* y, llvm::Value* z) {
    return b.CreateIntrinsic(sum.getType(), llvm::Intrinsic::fmuladd, {x, y, z});
  };
  // A product that only this sum uses goes first: its multiplication is saved.
  llvm::Instruction *of_left = product(left), *of_right = product(right);
  if (of_left != nullptr && of_right != nullptr) (of_right->hasOneUse() ? of_left : of_right) = nullptr;
  if (of_left != nullptr) {
    return fuse(of_left->getOperand(0), of_left->getOperand(1), is_difference ? b.CreateFNeg(right) : right);
  }
  if (of_right == nullptr) return nullptr;
  llvm::Value* const x = of_right->getOperand(0);
  return fuse(is_difference ? b.CreateFNeg(x) : x, of_right->getOperand(1), left);
}

}  // namespace

void fuse_products(llvm::Module& module) {
  for (llvm::Function& f : module) {
    std::vector<llvm::Instruction*> sums;
    for (llvm::Instruction& i : llvm::instructions(f)) {
      const bool is_sum =
          i.getOpcode() == llvm::Instruction::FAdd || i.getOpcode() == llvm::Instruction::FSub;
      if (is_sum && i.hasAllowContract()) sums.push_back(&i);
    }
    for (llvm::Instruction* sum : sums) {
      llvm::Value* const with = fused(*sum);
      if (with == nullptr) continue;
      with->takeName(sum);
      sum->replaceAllUsesWith(with);
      std::vector<llvm::Instruction*> unused{product(sum->getOperand(0)), product(sum->getOperand(1))};
      sum->eraseFromParent();
      for (size_t k = 0; k < unused.size(); ++k) {
        if (unused[k] == nullptr || !unused[k]->use_empty() || (k == 1 && unused[0] == unused[1])) continue;
        unused[k]->eraseFromParent();
      }
    }
  }
}

}  // namespace coppice::jit
