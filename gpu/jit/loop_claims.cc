// Checks what a loop claims to LLVM's vectoriser: that its iterations are independent (see llvm_module.h).
//
// A loop around a kernel carries `vectorize(assume_safety)`: no item disturbs another one through handles or
// pointers. LLVM takes that for every access in the loop and for both of what follows, neither of which is
// so:
// - Accesses to an item's own variables are claimed, too, and all lanes then share the one stack slot. A loop
//   that writes a slot which lives within one iteration and was not promoted to registers loses the claim,
//   and so does one that may write any other slot twice at the same place.
// - Accesses of one iteration are claimed to be independent of each other, so that strided ones are moved
//   together, loads up and stores down, past others that may be to the same memory. A loop in which that can
//   happen loses the claim.
// LLVM's own dependence analysis then decides: it may find the loop vectorisable all the same, with checks at
// its start.
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/CaptureTracking.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/LoopIterator.h>
#include <llvm/Analysis/MemoryLocation.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Passes/PassBuilder.h>

#include "gpu/jit/llvm_module.h"

namespace coppice::jit {
namespace {

constexpr char kClaim[] = "llvm.loop.parallel_accesses";

bool has_claim(const llvm::MDNode* loop_id) {
  if (loop_id == nullptr) return false;
  for (const llvm::MDOperand& operand : loop_id->operands()) {
    const auto* property = llvm::dyn_cast_or_null<llvm::MDNode>(operand.get());
    if (property == nullptr || property->getNumOperands() == 0) continue;
    const auto* name = llvm::dyn_cast<llvm::MDString>(property->getOperand(0));
    if (name != nullptr && name->getString() == kClaim) return true;
  }
  return false;
}

// Returns the ends of the loop's rounds that carry the claim. (Loop::getLoopID() is null where two ends
// differ.)
llvm::SmallVector<llvm::Instruction*> claiming_ends(const llvm::Loop& loop) {
  llvm::SmallVector<llvm::BasicBlock*> latches;
  loop.getLoopLatches(latches);
  llvm::SmallVector<llvm::Instruction*> ends;
  for (llvm::BasicBlock* latch : latches) {
    if (has_claim(latch->getTerminator()->getMetadata(llvm::LLVMContext::MD_loop)))
      ends.push_back(latch->getTerminator());
  }
  return ends;
}

// Finds stack slots that the iterations of a loop share although each means its own.
class Slots {
 public:
  Slots(llvm::Loop& loop, llvm::ScalarEvolution& evolution) : loop_(loop), evolution_(evolution) {
    for (llvm::Instruction& i : llvm::instructions(*loop.getHeader()->getParent())) {
      const auto* slot = llvm::dyn_cast<llvm::AllocaInst>(&i);
      if (slot != nullptr && lives_within(*slot) && llvm::PointerMayBeCaptured(slot, true, true))
        some_escape_ = true;
    }
  }

  bool are_shared() const {
    for (llvm::BasicBlock* block : loop_.blocks()) {
      for (llvm::Instruction& i : *block) {
        if (i.isLifetimeStartOrEnd()) continue;
        if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&i)) {
          const llvm::DataLayout& layout = i.getModule()->getDataLayout();
          if (is_shared(store->getPointerOperand(),
                        layout.getTypeStoreSize(store->getValueOperand()->getType())))
            return true;
        } else if (auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
                   call != nullptr && call->mayWriteToMemory()) {
          for (llvm::Value* argument : call->args()) {
            if (argument->getType()->isPointerTy() && is_shared(argument, UINT64_MAX)) return true;
          }
        }
      }
    }
    return false;
  }

 private:
  // Returns whether a write of so many bytes may be to a slot, other than to a part of it that is this
  // iteration's alone.
  bool is_shared(llvm::Value* pointer, uint64_t bytes) const {
    llvm::SmallVector<const llvm::Value*> objects;
    llvm::getUnderlyingObjects(pointer, objects, nullptr, 0);
    return llvm::any_of(objects, [&](const llvm::Value* object) {
      const auto* slot = llvm::dyn_cast<llvm::AllocaInst>(object);
      if (slot != nullptr) return lives_within(*slot) || !moves_on(pointer, bytes);
      // Memory that is known to be other can be no slot; an address that was loaded or computed can, once
      // one got out.
      return some_escape_ && !llvm::isa<llvm::Argument>(object) && !llvm::isa<llvm::GlobalVariable>(object);
    });
  }
  // Returns whether a variable's life is one iteration's: it begins in the loop, or it is used there and
  // nothing says where it begins.
  bool lives_within(const llvm::AllocaInst& slot) const {
    bool begins_outside = false, is_used = false;
    for (const llvm::User* user : slot.users()) {
      const auto* i = llvm::dyn_cast<llvm::Instruction>(user);
      const auto* mark = llvm::dyn_cast<llvm::IntrinsicInst>(user);
      const bool begins = mark != nullptr && mark->getIntrinsicID() == llvm::Intrinsic::lifetime_start;
      if (begins && loop_.contains(mark)) return true;
      begins_outside |= begins;
      is_used |= i != nullptr && loop_.contains(i);
    }
    return !begins_outside && is_used;
  }
  // Tells whether each iteration's address lies beyond the last one's bytes.
  bool moves_on(llvm::Value* pointer, uint64_t bytes) const {
    const auto* address = llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution_.getSCEV(pointer));
    if (address == nullptr || address->getLoop() != &loop_ || !address->isAffine()) return false;
    const auto* step = llvm::dyn_cast<llvm::SCEVConstant>(address->getStepRecurrence(evolution_));
    return step != nullptr && step->getAPInt().abs().uge(bytes);
  }

  llvm::Loop& loop_;
  llvm::ScalarEvolution& evolution_;
  bool some_escape_ = false;
};

struct LoopAccess {
  llvm::MemoryLocation where;
  bool writes;
  bool is_strided;  // by a constant of several elements, so that it may join a group
};

class AccessOrder {
 public:
  AccessOrder(llvm::Loop& loop, llvm::ScalarEvolution& evolution, llvm::AAResults& aliases)
      : loop_(loop), evolution_(evolution, loop), aliases_(aliases) {}

  // Returns whether a store comes before another access, to what may be the same memory, and one of the
  // two may be moved.
  bool may_change(llvm::ArrayRef<llvm::BasicBlock*> blocks_in_order) {
    llvm::SmallVector<LoopAccess> before;
    for (llvm::BasicBlock* block : blocks_in_order) {
      for (llvm::Instruction& i : *block) {
        if (!llvm::isa<llvm::LoadInst>(i) && !llvm::isa<llvm::StoreInst>(i)) continue;
        const LoopAccess now{llvm::MemoryLocation::get(&i), llvm::isa<llvm::StoreInst>(i), is_strided(i)};
        for (const LoopAccess& store : before) {
          if ((store.is_strided || now.is_strided) && !aliases_.isNoAlias(store.where, now.where))
            return true;
        }
        if (now.writes) before.push_back(now);
      }
    }
    return false;
  }

 private:
  // Answers as the vectoriser does, which takes an index of 32 bits for one that does not wrap and checks
  // that when it runs.
  bool is_strided(llvm::Instruction& i) {
    const llvm::SCEVAddRecExpr* address = evolution_.getAsAddRec(llvm::getLoadStorePointerOperand(&i));
    if (address == nullptr || address->getLoop() != &loop_ || !address->isAffine()) return false;
    const auto* step = llvm::dyn_cast<llvm::SCEVConstant>(address->getStepRecurrence(*evolution_.getSE()));
    if (step == nullptr) return true;  // it may become a constant when the loop is versioned for it
    const uint64_t bytes = i.getModule()->getDataLayout().getTypeStoreSize(llvm::getLoadStoreType(&i));
    return step->getAPInt().abs().ugt(bytes);
  }

  llvm::Loop& loop_;
  llvm::PredicatedScalarEvolution evolution_;
  llvm::AAResults& aliases_;
};

struct DropFalseClaims : llvm::PassInfoMixin<DropFalseClaims> {
  llvm::PreservedAnalyses run(llvm::Function& f, llvm::FunctionAnalysisManager& analyses) {
    llvm::LoopInfo& loops = analyses.getResult<llvm::LoopAnalysis>(f);
    llvm::ScalarEvolution& evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(f);
    for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
      const llvm::SmallVector<llvm::Instruction*> ends = claiming_ends(*loop);
      if (ends.empty()) continue;
      if (!Slots(*loop, evolution).are_shared()) {
        llvm::LoopBlocksRPO order(loop);
        order.perform(&loops);
        const llvm::SmallVector<llvm::BasicBlock*> blocks(order.begin(), order.end());
        if (!AccessOrder(*loop, evolution, analyses.getResult<llvm::AAManager>(f)).may_change(blocks))
          continue;
      }
      for (llvm::Instruction* end : ends) {
        llvm::MDNode* const id = end->getMetadata(llvm::LLVMContext::MD_loop);
        end->setMetadata(llvm::LLVMContext::MD_loop,
                         llvm::makePostTransformationMetadata(f.getContext(), id, {kClaim}, {}));
      }
    }
    return llvm::PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }
};

}  // namespace

void drop_false_claims(llvm::PassBuilder& builder) {
  builder.registerVectorizerStartEPCallback(
      [](llvm::FunctionPassManager& passes, llvm::OptimizationLevel) { passes.addPass(DropFalseClaims()); });
}

}  // namespace coppice::jit
