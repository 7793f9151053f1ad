// Line tables of kernels: full ones for a debugger, directives alone for PTX (see llvm_module.h).
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>

#include "gpu/jit/llvm_module.h"
#include "gpu/jit/source_path.h"

namespace coppice::jit {
namespace {

bool same_place(const llvm::DILocation* a, const llvm::DILocation* b) {
  return a != nullptr && a->getLine() == b->getLine() && a->getScope() == b->getScope() &&
         a->getInlinedAt() == b->getInlinedAt();
}

bool in_kernel_file(const llvm::DILocation* at) {
  const llvm::DICompileUnit* unit = at->getScope()->getSubprogram()->getUnit();
  return unit != nullptr && path_of(at) == path_of(unit);
}

void add_nop(llvm::Instruction& before, llvm::DILocation* at) {
  llvm::BasicBlock* block = before.getParent();
  llvm::IRBuilder<> builder(
      block, llvm::isa<llvm::PHINode>(before) ? block->getFirstInsertionPt() : before.getIterator());
  builder.SetCurrentDebugLocation(at);
  auto* type = llvm::FunctionType::get(builder.getVoidTy(), false);
  builder.CreateCall(type, llvm::InlineAsm::get(type, "nop", "", /*hasSideEffects=*/true));
}

}  // namespace

void give_calls_code(llvm::Module& module) {
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    llvm::DenseSet<const llvm::DILocation*> seen;
    struct Call {
      llvm::Instruction* first;
      llvm::DILocation* at;
    };
    std::vector<Call> calls;
    for (llvm::BasicBlock* block : llvm::ReversePostOrderTraversal<llvm::Function*>(&f)) {
      const llvm::DILocation* before = nullptr;
      for (llvm::Instruction& i : *block) {
        llvm::DILocation* location = i.getDebugLoc().get();
        if (location == nullptr) continue;
        for (llvm::DILocation* at = location->getInlinedAt(); at != nullptr; at = at->getInlinedAt()) {
          if (seen.insert(at).second && in_kernel_file(at) && !same_place(before, at))
            calls.push_back({&i, at});
        }
        before = location;
      }
    }
    for (const Call& call : calls) add_nop(*call.first, call.at);
  }
}

void keep_line_directives(llvm::Module& module) {
  llvm::DebugInfoFinder finder;
  finder.processModule(module);
  llvm::NamedMDNode* units = module.getNamedMetadata("llvm.dbg.cu");
  if (units == nullptr) return;
  llvm::DenseMap<llvm::DICompileUnit*, llvm::DICompileUnit*> reduced;
  for (llvm::DICompileUnit* unit : finder.compile_units()) {
    reduced[unit] = llvm::DICompileUnit::getDistinct(
        module.getContext(), unit->getSourceLanguage(), unit->getFile(), unit->getProducer(),
        unit->isOptimized(), unit->getFlags(), unit->getRuntimeVersion(), unit->getSplitDebugFilename(),
        llvm::DICompileUnit::DebugDirectivesOnly, nullptr, nullptr, nullptr, nullptr, nullptr,
        unit->getDWOId(), unit->getSplitDebugInlining(), unit->getDebugInfoForProfiling(),
        unit->getNameTableKind(), unit->getRangesBaseAddress(), unit->getSysRoot(), unit->getSDK());
  }
  for (llvm::DISubprogram* function : finder.subprograms()) {
    if (llvm::DICompileUnit* unit = function->getUnit()) function->replaceUnit(reduced[unit]);
  }
  units->clearOperands();
  for (llvm::DICompileUnit* unit : finder.compile_units()) units->addOperand(reduced[unit]);
}

}  // namespace coppice::jit
