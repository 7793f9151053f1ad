// Address spaces of GPU code: what the optimiser and ptxas must know to order, widen and overlap accesses.
//
// A generic address may be of the device's memory or of a thread block's fast memory, so ptxas moves no load
// of one over a store to the other, and an atomic operation first asks at run time which it is. Kernels read
// nearly all of their pointers from memory, where they lose their space.
#include "gpu/jit/gpu_addresses.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Operator.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/InferAddressSpaces.h>

namespace coppice::jit {
namespace {

// NVPTX's numbers.
constexpr unsigned kGeneric = 0, kGlobal = 1, kConstant = 4;
constexpr int kMostSteps = 64;  // of a number's origin; beyond, nothing is said of it

bool is_generic(const llvm::Value& v) {
  const auto* type = llvm::dyn_cast<llvm::PointerType>(v.getType());
  return type != nullptr && type->getAddressSpace() == kGeneric;
}

// Nobody reads or writes there.
bool is_nowhere(const llvm::Value* address) {
  return llvm::isa<llvm::ConstantPointerNull>(address) || llvm::isa<llvm::UndefValue>(address);
}

// One question about where an address, or a number that becomes one, comes from. A variable may hold a
// pointer to fast memory or to another variable; the device's memory holds none (docs/nvptx.md). What has
// been met before on the way, around a loop, adds nothing.
class Origin {
 public:
  // Returns whether all that an address may point to is the device's memory, or the launch block where that
  // is allowed.
  bool is_device_memory(const llvm::Value* address, bool or_launch_block) {
    llvm::SmallVector<const llvm::Value*, 4> objects;
    llvm::getUnderlyingObjects(address, objects, nullptr, 0);  // however far away
    return llvm::all_of(objects, [&](const llvm::Value* o) { return is_known(o, or_launch_block); });
  }
  // Returns whether a number is made of none that was a pointer to anything else.
  bool is_number_of_device_memory(const llvm::Value* number) {
    llvm::SmallVector<const llvm::Value*, 8> todo{number};
    for (int steps = 0; !todo.empty(); ++steps) {
      const llvm::Value* v = todo.pop_back_val();
      if (llvm::isa<llvm::ConstantInt>(v) || llvm::isa<llvm::UndefValue>(v)) continue;
      const auto* from = llvm::dyn_cast<llvm::Instruction>(v);
      if (from == nullptr || steps == kMostSteps) return false;
      if (!seen_.insert(from).second) continue;
      if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(from)) {
        if (!is_device_memory(load->getPointerOperand(), true)) return false;
        continue;
      }
      for (const llvm::Value* operand : from->operands()) {
        if (operand->getType()->isPointerTy()) return false;
        todo.push_back(operand);
      }
    }
    return true;
  }

 private:
  bool is_known(const llvm::Value* object, bool or_launch_block) {
    if (const auto* cast = llvm::dyn_cast<llvm::AddrSpaceCastOperator>(object))
      object = cast->getPointerOperand();
    if (is_nowhere(object)) return true;
    const unsigned space = object->getType()->getPointerAddressSpace();
    if (space == kGlobal || space == kConstant) return true;
    if (space != kGeneric) return false;
    // Another function's argument by value is a variable.
    if (const auto* argument = llvm::dyn_cast<llvm::Argument>(object)) {
      return or_launch_block && argument->hasByValAttr() &&
             argument->getParent()->getCallingConv() == llvm::CallingConv::PTX_Kernel;
    }
    if (!seen_.insert(object).second) return true;
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(object))
      return is_device_memory(load->getPointerOperand(), true);
    const auto* number = llvm::dyn_cast<llvm::IntToPtrInst>(object);
    return number != nullptr && is_number_of_device_memory(number->getOperand(0));
  }

  llvm::SmallPtrSet<const llvm::Value*, 16> seen_;
};

bool is_pointer_to_device_memory(const llvm::Instruction& i) {
  if (!is_generic(i)) return false;
  // LLVM 19 infers no space where one way leads to a pointer that nobody set.
  if (llvm::isa<llvm::PHINode>(i) || llvm::isa<llvm::SelectInst>(i))
    return llvm::any_of(i.operands(), is_nowhere) && Origin().is_device_memory(&i, false);
  if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&i))
    return Origin().is_device_memory(load->getPointerOperand(), true);
  const auto* number = llvm::dyn_cast<llvm::IntToPtrInst>(&i);
  return number != nullptr && Origin().is_number_of_device_memory(number->getOperand(0));
}

// Has every pointer that was read from the device's memory, or made of a number, pass through the global
// space; InferAddressSpaces then carries that to the accesses. Nothing may combine the two casts before.
struct CastThroughGlobal : llvm::PassInfoMixin<CastThroughGlobal> {
  llvm::PreservedAnalyses run(llvm::Function& f, llvm::FunctionAnalysisManager&) {
    llvm::SmallVector<llvm::Instruction*, 32> pointers;
    for (llvm::Instruction& i : llvm::instructions(f)) {
      if (is_pointer_to_device_memory(i)) pointers.push_back(&i);
    }
    for (llvm::Instruction* pointer : pointers) {
      llvm::IRBuilder<> b(&*pointer->getInsertionPointAfterDef().value());
      b.SetCurrentDebugLocation(pointer->getDebugLoc());
      llvm::Value* global = b.CreateAddrSpaceCast(pointer, b.getPtrTy(kGlobal));
      llvm::Value* generic = b.CreateAddrSpaceCast(global, b.getPtrTy(kGeneric));
      pointer->replaceUsesWithIf(generic, [&](const llvm::Use& use) { return use.getUser() != global; });
    }
    return pointers.empty() ? llvm::PreservedAnalyses::all() : llvm::PreservedAnalyses::none();
  }
};

}  // namespace

void infer_address_spaces(llvm::PassBuilder& builder) {
  const auto add = [](llvm::ModulePassManager& passes, llvm::OptimizationLevel) {
    llvm::FunctionPassManager functions;
    functions.addPass(CastThroughGlobal());
    functions.addPass(llvm::InferAddressSpacesPass());
    functions.addPass(llvm::EarlyCSEPass(true));
    functions.addPass(llvm::InstCombinePass());
    passes.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(functions)));
  };
  builder.registerOptimizerEarlyEPCallback(add);  // for the passes behind it
  builder.registerOptimizerLastEPCallback(add);   // pointers that lay in variables before
}

}  // namespace coppice::jit
