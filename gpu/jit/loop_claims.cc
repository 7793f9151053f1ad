// Checks what a loop claims to LLVM's vectoriser: that its iterations are independent (see llvm_module.h).
//
// A loop around a kernel carries `vectorize(assume_safety)`: no item disturbs another one through handles or pointers.
// LLVM takes that for every access in the loop and for both of what follows, neither of which is so:
// - Accesses to an item's own variables are claimed, too, and all lanes then share the one stack slot. A loop with a slot
//   that lives within one iteration and was not promoted to registers loses the claim.
// - Accesses of one iteration are claimed to be independent of each other, so that strided ones are moved together, loads
//   up and stores down, past others that may be to the same memory. A loop in which that can happen loses the claim.
// LLVM's own dependence analysis then decides: it may find the loop vectorisable all the same, with checks at its start.
#include <llvm/Analysis/AliasAnalysis.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/LoopIterator.h>
#include <llvm/Analysis/MemoryLocation.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Passes/PassBuilder.h>

#include "gpu/jit/llvm_module.h"

namespace coppice::jit {
namespace {

constexpr char kClaim[] = "llvm.loop.parallel_accesses";

bool is_claimed(const llvm::Loop& loop) {
  const llvm::MDNode* id = loop.getLoopID();
  if (id == nullptr) return false;
  for (const llvm::MDOperand& operand : id->operands()) {
    const auto* property = llvm::dyn_cast_or_null<llvm::MDNode>(operand.get());
    if (property == nullptr || property->getNumOperands() == 0) continue;
    const auto* name = llvm::dyn_cast<llvm::MDString>(property->getOperand(0));
    if (name != nullptr && name->getString() == kClaim) return true;
  }
  return false;
}

// Calls visit(instruction) for what uses a slot's address, through address arithmetic. Lifetimes are no uses.
template <class Visit>
void each_use(const llvm::Value& address, Visit&& visit) {
  for (const llvm::User* user : address.users()) {
    const auto* i = llvm::dyn_cast<llvm::Instruction>(user);
    if (i == nullptr || i->isLifetimeStartOrEnd()) continue;
    visit(*i);
    if (llvm::isa<llvm::GetElementPtrInst>(i) || llvm::isa<llvm::CastInst>(i)) each_use(*i, visit);
  }
}

// Whether a variable's life is one iteration's: it begins in the loop, or nobody said where it does.
bool lives_within(const llvm::AllocaInst& slot, const llvm::Loop& loop) {
  bool begins_outside = false;
  for (const llvm::User* user : slot.users()) {
    const auto* mark = llvm::dyn_cast<llvm::IntrinsicInst>(user);
    if (mark == nullptr || mark->getIntrinsicID() != llvm::Intrinsic::lifetime_start) continue;
    if (loop.contains(mark)) return true;
    begins_outside = true;
  }
  return !begins_outside;
}

bool has_own_slots(const llvm::Loop& loop) {
  for (const llvm::Instruction& i : llvm::instructions(*loop.getHeader()->getParent())) {
    const auto* slot = llvm::dyn_cast<llvm::AllocaInst>(&i);
    if (slot == nullptr || !lives_within(*slot, loop)) continue;
    bool is_used = false;
    each_use(*slot, [&](const llvm::Instruction& user) { is_used |= loop.contains(&user); });
    if (is_used) return true;
  }
  return false;
}

struct LoopAccess {
  llvm::MemoryLocation where;
  bool writes;
  bool is_strided;  // by a constant of several elements, so that it may join a group
};

class AccessOrder {
 public:
  AccessOrder(const llvm::Loop& loop, llvm::ScalarEvolution& evolution, llvm::AAResults& aliases)
      : loop_(loop), evolution_(evolution), aliases_(aliases) {}

  // Whether a store comes before another access, to what may be the same memory, and one of the two may be moved.
  bool may_change(llvm::ArrayRef<llvm::BasicBlock*> blocks_in_order) {
    llvm::SmallVector<LoopAccess> before;
    for (llvm::BasicBlock* block : blocks_in_order) {
      for (llvm::Instruction& i : *block) {
        if (!llvm::isa<llvm::LoadInst>(i) && !llvm::isa<llvm::StoreInst>(i)) continue;
        const LoopAccess now{llvm::MemoryLocation::get(&i), llvm::isa<llvm::StoreInst>(i), is_strided(i)};
        for (const LoopAccess& store : before) {
          if ((store.is_strided || now.is_strided) && !aliases_.isNoAlias(store.where, now.where)) return true;
        }
        if (now.writes) before.push_back(now);
      }
    }
    return false;
  }

 private:
  bool is_strided(llvm::Instruction& i) {
    const auto* address =
        llvm::dyn_cast<llvm::SCEVAddRecExpr>(evolution_.getSCEV(llvm::getLoadStorePointerOperand(&i)));
    if (address == nullptr || address->getLoop() != &loop_ || !address->isAffine()) return false;
    const auto* step = llvm::dyn_cast<llvm::SCEVConstant>(address->getStepRecurrence(evolution_));
    if (step == nullptr) return true;  // the stride may become a constant when the loop is versioned for it
    const uint64_t bytes = i.getModule()->getDataLayout().getTypeStoreSize(llvm::getLoadStoreType(&i));
    return step->getAPInt().abs().ugt(bytes);
  }

  const llvm::Loop& loop_;
  llvm::ScalarEvolution& evolution_;
  llvm::AAResults& aliases_;
};

struct DropFalseClaims : llvm::PassInfoMixin<DropFalseClaims> {
  llvm::PreservedAnalyses run(llvm::Function& f, llvm::FunctionAnalysisManager& analyses) {
    llvm::LoopInfo& loops = analyses.getResult<llvm::LoopAnalysis>(f);
    for (llvm::Loop* loop : loops.getLoopsInPreorder()) {
      if (!is_claimed(*loop)) continue;
      if (!has_own_slots(*loop)) {
        llvm::LoopBlocksRPO order(loop);
        order.perform(&loops);
        const llvm::SmallVector<llvm::BasicBlock*> blocks(order.begin(), order.end());
        AccessOrder accesses(*loop, analyses.getResult<llvm::ScalarEvolutionAnalysis>(f),
                             analyses.getResult<llvm::AAManager>(f));
        if (!accesses.may_change(blocks)) continue;
      }
      loop->setLoopID(llvm::makePostTransformationMetadata(f.getContext(), loop->getLoopID(), {kClaim}, {}));
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
