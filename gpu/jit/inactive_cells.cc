// Proves that kernels are harmless for inactive cells (see inactive_cells.h).
//
// The library's headers mark the function that runs a kernel for one cell, and the accesses of handles that
// are harmless at any cell and for any argument (core/device_macros.h). All else that a kernel leads to is
// looked at twice: as it was written, for what an optimiser may take away without a word (divisions,
// unreachable places), and after inlining and promotion to registers, for loops and for accesses to memory.
#include "gpu/jit/inactive_cells.h"

#include <fmt/format.h>
#include <llvm/Analysis/CFG.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/LoopIterator.h>
#include <llvm/Analysis/ScalarEvolution.h>
#include <llvm/Analysis/ScalarEvolutionExpressions.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <vector>

#include "gpu/jit/marked_functions.h"

namespace coppice::jit {
namespace {

constexpr int64_t kNear = 64;           // cells: more than any reach
constexpr uint64_t kMostRounds = 4096;  // of all loops around a place: what an inactive cell may cost

bool is_access(const llvm::Function& f) { return is_marked(f, kHarmless) || is_marked(f, kHarmlessNear); }

// Says what is wrong, and where the author wrote it.
std::string at(const llvm::Instruction& i, llvm::StringRef what) {
  const llvm::DILocation* place = i.getDebugLoc().get();
  while (place != nullptr && place->getLine() == 0) place = place->getInlinedAt();
  if (place == nullptr) return fmt::format("{}: {}", i.getFunction()->getName().str(), what.str());
  return fmt::format("{}:{}: {}", place->getFilename().str(), place->getLine(), what.str());
}

bool is_harmless_divisor(const llvm::Instruction& i) {
  const auto* divisor = llvm::dyn_cast<llvm::ConstantInt>(i.getOperand(1));
  if (divisor == nullptr || divisor->isZero()) return false;
  const bool is_signed = i.getOpcode() == llvm::Instruction::SDiv || i.getOpcode() == llvm::Instruction::SRem;
  return !is_signed || !divisor->isMinusOne();
}

// Looks at a call of what is no function of the kernel file: empty when it is harmless whatever it is
// given.
std::string why_not_call(const llvm::CallBase& call) {
  if (call.isInlineAsm()) return at(call, "assembly");
  const llvm::Function* callee = call.getCalledFunction();
  if (callee == nullptr) return at(call, "a call by pointer");
  if (call.isLifetimeStartOrEnd() || llvm::isa<llvm::DbgInfoIntrinsic>(call) ||
      llvm::isa<llvm::MemIntrinsic>(call))
    return "";
  const llvm::Intrinsic::ID id = callee->getIntrinsicID();
  const bool counts_zeros = id == llvm::Intrinsic::cttz || id == llvm::Intrinsic::ctlz;
  if (counts_zeros && !llvm::cast<llvm::ConstantInt>(call.getArgOperand(1))->isZero())
    return at(call, "a count of the zeros of what may be zero");
  if (call.doesNotAccessMemory() && !call.doesNotReturn()) return "";
  switch (id) {
    case llvm::Intrinsic::experimental_noalias_scope_decl:
      return "";
    case llvm::Intrinsic::assume:
      return at(call, "an assumption");
    default:
      return at(call, fmt::format("a call of {}", callee->getName().str()));
  }
}

// Says what an instruction does, as it was written, that must not happen for an inactive cell.
std::string why_not(const llvm::Instruction& i) {
  switch (i.getOpcode()) {
    case llvm::Instruction::SDiv:
    case llvm::Instruction::UDiv:
    case llvm::Instruction::SRem:
    case llvm::Instruction::URem:
      return is_harmless_divisor(i) ? "" : at(i, "a division of integers by what may be zero");
    case llvm::Instruction::Unreachable:
      return at(i, "a place that must not be reached");
    case llvm::Instruction::IntToPtr:
      return at(i, "a pointer made of an integer");
    case llvm::Instruction::Alloca:
      return llvm::cast<llvm::AllocaInst>(i).isStaticAlloca() ? "" : at(i, "memory of unknown size");
    case llvm::Instruction::AtomicRMW:
    case llvm::Instruction::AtomicCmpXchg:
    case llvm::Instruction::Fence:
      return at(i, "an atomic operation");
    case llvm::Instruction::IndirectBr:
    case llvm::Instruction::CallBr:
    case llvm::Instruction::Invoke:
    case llvm::Instruction::Resume:
    case llvm::Instruction::VAArg:
      return at(i, "a computed goto, an exception or a variadic argument");
    default:
      return i.isVolatile() ? at(i, "a volatile access") : "";
  }
}

class Proof {
 public:
  // Looks at the code as written: all that `f` leads to. Notes the functions that are to be inlined.
  std::string look_at_source(llvm::Function& f, Functions& reached) {
    if (path_.count(&f) != 0) return at(*f.getEntryBlock().begin(), "recursion");
    if (!reached.insert(&f).second) return "";
    path_.insert(&f);
    std::string why;
    for (llvm::Instruction& i : llvm::instructions(f)) {
      const auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
      llvm::Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
      if (callee != nullptr && is_access(*callee)) continue;
      if (callee != nullptr && !callee->isDeclaration())
        why = look_at_source(*callee, reached);
      else
        why = call != nullptr ? why_not_call(*call) : why_not(i);
      if (!why.empty()) break;
    }
    path_.erase(&f);
    return why;
  }

  // Looks at the code after inlining and promotion: loops and memory of the one function that is left.
  static std::string look_at_memory(llvm::Function& f, llvm::FunctionAnalysisManager& analyses) {
    llvm::LoopInfo& loops = analyses.getResult<llvm::LoopAnalysis>(f);
    llvm::ScalarEvolution& evolution = analyses.getResult<llvm::ScalarEvolutionAnalysis>(f);
    llvm::ReversePostOrderTraversal<const llvm::Function*> order(&f);
    if (llvm::containsIrreducibleCFG<const llvm::BasicBlock*>(order, loops))
      return at(*f.getEntryBlock().begin(), "a loop with two entries");
    for (const llvm::Loop* loop : loops.getLoopsInPreorder()) {
      uint64_t rounds = 1;
      for (const llvm::Loop* around = loop; around != nullptr && rounds != 0;
           around = around->getParentLoop()) {
        rounds *= evolution.getSmallConstantMaxTripCount(around);
        if (rounds > kMostRounds) rounds = 0;
      }
      if (rounds == 0) return at(*loop->getHeader()->getTerminator(), "a loop of unknown or large length");
    }
    for (llvm::Instruction& i : llvm::instructions(f)) {
      const std::string why = why_not_access(i, evolution);
      if (!why.empty()) return why;
    }
    return "";
  }

 private:
  static std::string why_not_access(llvm::Instruction& i, llvm::ScalarEvolution& evolution) {
    const llvm::DataLayout& layout = i.getModule()->getDataLayout();
    auto check = [&](llvm::Value* pointer, uint64_t bytes, bool writes) -> std::string {
      if (is_own(pointer, bytes, writes, evolution)) return "";
      return at(i, "an access by pointer, or by an index that may be out of bounds");
    };
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&i))
      return check(load->getPointerOperand(), layout.getTypeStoreSize(load->getType()), false);
    if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&i))
      return check(store->getPointerOperand(), layout.getTypeStoreSize(store->getValueOperand()->getType()),
                   true);
    if (auto* memory = llvm::dyn_cast<llvm::MemIntrinsic>(&i)) {
      const auto* length = llvm::dyn_cast<llvm::ConstantInt>(memory->getLength());
      if (length == nullptr) return at(i, "a copy of unknown size");
      std::string why = check(memory->getRawDest(), length->getZExtValue(), true);
      if (auto* copy = llvm::dyn_cast<llvm::MemTransferInst>(memory); why.empty() && copy != nullptr)
        why = check(copy->getRawSource(), length->getZExtValue(), false);
      return why;
    }
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
    const llvm::Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
    if (call == nullptr) return "";
    if (callee != nullptr && is_access(*callee)) {
      for (unsigned k = 0; k < call->arg_size(); ++k) {  // what references lead to is read there
        llvm::Value* argument = call->getArgOperand(k);
        uint64_t bytes = std::max<uint64_t>(1, call->getParamDereferenceableBytes(k));
        const bool is_result = call->paramHasAttr(k, llvm::Attribute::StructRet);
        if (is_result) bytes = layout.getTypeAllocSize(call->getParamStructRetType(k));
        const std::string why = argument->getType()->isPointerTy() ? check(argument, bytes, is_result) : "";
        if (!why.empty()) return why;
      }
      const bool is_near_enough = is_marked(*callee, kHarmless) || is_near(*call, evolution);
      return is_near_enough ? "" : at(i, "a reach that depends on data");
    }
    if (callee != nullptr && !callee->isDeclaration()) return at(i, "a call that cannot be inlined");
    return why_not_call(*call);
  }

  static bool is_near(const llvm::CallBase& call, llvm::ScalarEvolution& evolution) {
    return llvm::all_of(call.args(), [&](const llvm::Use& argument) {
      if (!argument->getType()->isIntegerTy()) return true;
      const llvm::SCEV* offset = evolution.getSCEV(argument.get());
      if (depends_on_data(offset)) return false;
      const llvm::ConstantRange range = evolution.getSignedRange(offset);
      return range.getSignedMin().sge(-kNear) && range.getSignedMax().sle(kNear);
    });
  }

  // Returns whether a value depends on data. A range that follows from data may follow from what C++
  // leaves undefined: it is no bound for a cell whose values nobody vouches for.
  static bool depends_on_data(const llvm::SCEV* value) {
    return llvm::SCEVExprContains(value, [](const llvm::SCEV* s) { return llvm::isa<llvm::SCEVUnknown>(s); });
  }

  // Tells whether all bytes are of a variable of the kernel's own or, when read, of a constant or of its
  // arguments.
  static bool is_own(llvm::Value* pointer, uint64_t bytes, bool writes, llvm::ScalarEvolution& evolution) {
    llvm::Value* object = llvm::getUnderlyingObject(pointer, 0);
    const uint64_t size = size_of(*object, writes);
    if (size < bytes) return false;
    const llvm::SCEV* offset = evolution.getMinusSCEV(evolution.getSCEV(pointer), evolution.getSCEV(object));
    if (llvm::isa<llvm::SCEVCouldNotCompute>(offset) || depends_on_data(offset)) return false;
    return evolution.getUnsignedRangeMax(offset).ule(size - bytes);
  }
  static uint64_t size_of(const llvm::Value& object, bool writes) {
    if (const auto* slot = llvm::dyn_cast<llvm::AllocaInst>(&object)) {
      const auto size = slot->getAllocationSize(slot->getModule()->getDataLayout());
      return size ? size->getFixedValue() : 0;
    }
    if (writes) return 0;
    if (const auto* argument = llvm::dyn_cast<llvm::Argument>(&object))
      return argument->getDereferenceableBytes();
    const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(&object);
    if (global == nullptr || !global->isConstant() || !global->hasDefinitiveInitializer()) return 0;
    return global->getParent()->getDataLayout().getTypeAllocSize(global->getValueType());
  }

  Functions path_;  // that is being looked at
};

// Returns the function by which a kernel's entry runs it for one cell; null when it runs over something
// else.
llvm::Function* find_one_cell(llvm::Function& from, Functions& seen) {
  if (is_marked(from, kOneCell)) return &from;
  if (!seen.insert(&from).second) return nullptr;
  for (const llvm::Instruction& i : llvm::instructions(from)) {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
    llvm::Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
    if (callee == nullptr) continue;
    if (llvm::Function* found = find_one_cell(*callee, seen)) return found;
  }
  return nullptr;
}

}  // namespace

std::map<std::string, std::string> why_active_only(const llvm::Module& original,
                                                   const std::set<std::string>& names) {
  constexpr llvm::StringRef kPrefix = "coppice_kernel_";
  const std::unique_ptr<llvm::Module> module = llvm::CloneModule(original);
  llvm::stripNonLineTableDebugInfo(*module);
  Proof proof;
  make_opaque(*module, is_access);
  std::map<std::string, std::string> why;
  std::map<std::string, llvm::Function*> open;  // harmless so far
  Functions kept, inlined;
  for (llvm::Function& f : *module) {
    if (f.isDeclaration() || !f.getName().starts_with(kPrefix)) continue;
    const std::string name = f.getName().substr(kPrefix.size()).str();
    Functions seen, reached;
    llvm::Function* cell = names.contains(name) ? find_one_cell(f, seen) : nullptr;
    if (cell == nullptr) continue;
    why[name] = proof.look_at_source(*cell, reached);
    if (!why[name].empty()) continue;
    open[name] = cell, kept.insert(cell);
    inlined.insert(reached.begin(), reached.end());
  }
  Analyses analyses;
  inline_and_simplify(*module, kept, inlined, analyses);
  for (const auto& [name, cell] : open) why[name] = proof.Proof::look_at_memory(*cell, analyses.functions);
  return why;
}

}  // namespace coppice::jit
