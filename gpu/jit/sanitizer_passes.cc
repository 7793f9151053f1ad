// Instruments kernels for the sanitizer that this program was built with (see llvm_module.h).
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Transforms/Instrumentation/AddressSanitizer.h>
#include <llvm/Transforms/Instrumentation/ThreadSanitizer.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/LowerAtomic.h>

#include "gpu/jit/llvm_module.h"
#include "gpu/jit/sanitizer.h"

namespace coppice::jit {
namespace {

// ThreadSanitizer knows atomic operations on integers only: `*address op= value`
// becomes a compare-exchange loop.
void expand_float_atomic(llvm::AtomicRMWInst& rmw) {
  llvm::IRBuilder<> builder(&rmw);
  llvm::Type* type = rmw.getType();
  llvm::Type* word = builder.getIntNTy(type->getPrimitiveSizeInBits());
  llvm::LoadInst* first = builder.CreateAlignedLoad(word, rmw.getPointerOperand(), rmw.getAlign());
  first->setAtomic(llvm::AtomicOrdering::Monotonic, rmw.getSyncScopeID());
  llvm::BasicBlock* start = rmw.getParent();
  llvm::BasicBlock* done = start->splitBasicBlock(&rmw, "done");
  auto* loop = llvm::BasicBlock::Create(start->getContext(), "retry", start->getParent(), done);
  start->getTerminator()->setSuccessor(0, loop);
  builder.SetInsertPoint(loop);
  llvm::PHINode* expected = builder.CreatePHI(word, 2);
  llvm::Value* old = builder.CreateBitCast(expected, type);
  llvm::Value* value = llvm::buildAtomicRMWValue(rmw.getOperation(), builder, old, rmw.getValOperand());
  auto* exchange = builder.CreateAtomicCmpXchg(
      rmw.getPointerOperand(), expected, builder.CreateBitCast(value, word), rmw.getAlign(),
      rmw.getOrdering(), llvm::AtomicCmpXchgInst::getStrongestFailureOrdering(rmw.getOrdering()),
      rmw.getSyncScopeID());
  expected->addIncoming(first, start);
  expected->addIncoming(builder.CreateExtractValue(exchange, 0), loop);
  builder.CreateCondBr(builder.CreateExtractValue(exchange, 1), done, loop);
  rmw.replaceAllUsesWith(old);
  rmw.eraseFromParent();
}

void expand_float_atomics(llvm::Module& module) {
  llvm::SmallVector<llvm::AtomicRMWInst*> found;
  for (llvm::Function& f : module) {
    for (llvm::Instruction& i : llvm::instructions(f)) {
      auto* rmw = llvm::dyn_cast<llvm::AtomicRMWInst>(&i);
      if (rmw != nullptr && rmw->getType()->isFloatingPointTy()) found.push_back(rmw);
    }
  }
  for (llvm::AtomicRMWInst* rmw : found) expand_float_atomic(*rmw);
}

bool is_marked(const llvm::Function& f) {
  return f.hasFnAttribute(llvm::Attribute::SanitizeAddress) ||
         f.hasFnAttribute(llvm::Attribute::SanitizeThread);
}

}  // namespace

void prepare_for_sanitizer(llvm::Module& module) {
  if (kSanitizer == Sanitizer::kNone) return;
  for (llvm::Function& f : module) {
    if (!f.isDeclaration())
      f.addFnAttr("frame-pointer", "all");  // the runtime libraries walk the stack by it
  }
  if (kSanitizer == Sanitizer::kThread) {
    // "Vectorise this loop" would make accesses of 32 bytes, which ThreadSanitizer does not look at.
    drop_loop_hints(module);
    expand_float_atomics(module);
  }
  // Red zones around globals are registered by a constructor, and loaded kernels have none run.
  llvm::GlobalValue::SanitizerMetadata unwatched;
  unwatched.NoAddress = true;
  for (llvm::GlobalVariable& g : module.globals()) g.setSanitizerMetadata(unwatched);
}

void add_sanitizer(llvm::ModulePassManager& passes, const llvm::Module& module) {
  // The passes leave calls in functions that are not marked, too.
  if (!llvm::any_of(module, is_marked)) return;
  if (kSanitizer == Sanitizer::kAddress) {
    llvm::AddressSanitizerOptions options;
    options.UseAfterScope = true;
    options.UseAfterReturn =
        llvm::AsanDetectStackUseAfterReturnMode::Never;  // its fake stacks differ from GCC's
    passes.addPass(llvm::AddressSanitizerPass(options, false, false, llvm::AsanDtorKind::None,
                                              llvm::AsanCtorKind::None));
  }
  if (kSanitizer == Sanitizer::kThread)
    passes.addPass(llvm::createModuleToFunctionPassAdaptor(llvm::ThreadSanitizerPass()));
}

void remove_sanitizer_attributes(llvm::Module& module) {
  for (llvm::Function& f : module) {
    f.removeFnAttr(llvm::Attribute::SanitizeAddress);
    f.removeFnAttr(llvm::Attribute::SanitizeThread);
  }
}

}  // namespace coppice::jit
