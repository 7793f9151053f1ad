// Leaves a kernel's effects on memory out (see llvm_module.h), for a run that only finds out how much room
// its launch needs.
//
// The author's stores go (author_code.h), and the library's own stay.
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include <string>
#include <vector>

#include "gpu/jit/author_code.h"
#include "gpu/jit/llvm_module.h"
#include "gpu/jit/marked_functions.h"

namespace coppice::jit {
namespace {

// Says where memory is: among the kernel's own variables, or anywhere else. What a pointer that lies in a
// variable leads to is not known, and neither is what may be the one or the other.
enum class Origin { kVariable, kElsewhere, kUnknown };
Origin origin_of(const llvm::Value* pointer) {
  llvm::SmallVector<const llvm::Value*> objects;
  llvm::getUnderlyingObjects(pointer, objects, nullptr, 0);
  size_t variables = 0;
  for (const llvm::Value* object : objects) {
    if (llvm::isa<llvm::AllocaInst>(object)) ++variables;
    const auto* load = llvm::dyn_cast<llvm::LoadInst>(object);
    if (load != nullptr && origin_of(load->getPointerOperand()) != Origin::kElsewhere)
      return Origin::kUnknown;
  }
  if (variables == objects.size()) return Origin::kVariable;
  return variables == 0 ? Origin::kElsewhere : Origin::kUnknown;
}

// Returns what an instruction writes to, where that is not the library's affair; else null.
const llvm::Value* written_by_author(const llvm::Instruction& i, const std::string& folder) {
  const llvm::Value* to = nullptr;
  if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&i)) to = store->getPointerOperand();
  if (const auto* change = llvm::dyn_cast<llvm::AtomicRMWInst>(&i)) to = change->getPointerOperand();
  if (const auto* swap = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&i)) to = swap->getPointerOperand();
  if (const auto* memory = llvm::dyn_cast<llvm::MemIntrinsic>(&i)) to = memory->getRawDest();
  if (is_device_atomic(i)) to = llvm::cast<llvm::CallBase>(i).getArgOperand(0);
  return to == nullptr || is_library(i, folder) ? nullptr : to;
}

// Removes a write: it gives what is there, and a swap says that it succeeded, so that nobody tries again.
void remove(llvm::Instruction& i) {
  llvm::IRBuilder<> builder(&i);
  if (auto* change = llvm::dyn_cast<llvm::AtomicRMWInst>(&i)) {
    i.replaceAllUsesWith(
        builder.CreateAlignedLoad(i.getType(), change->getPointerOperand(), change->getAlign()));
  } else if (auto* swap = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&i)) {
    llvm::Value* const found = builder.CreateAlignedLoad(swap->getCompareOperand()->getType(),
                                                         swap->getPointerOperand(), swap->getAlign());
    llvm::Value* const pair = builder.CreateInsertValue(llvm::PoisonValue::get(i.getType()), found, 0);
    i.replaceAllUsesWith(builder.CreateInsertValue(pair, builder.getTrue(), 1));
  } else if (is_device_atomic(i) && !i.getType()->isVoidTy()) {
    i.replaceAllUsesWith(builder.CreateLoad(i.getType(), llvm::cast<llvm::CallBase>(i).getArgOperand(0)));
  }
  i.eraseFromParent();
}

}  // namespace

void remove_effects(llvm::Module& module, const Diagnostics& diagnostics) {
  const std::string folder = library_folder(module);
  if (folder.empty())
    diagnostics.fail("making room", "nothing says which code is the library's: it has no line tables");
  inline_all(module);  // a variable is known as one wherever it is stored to
  std::vector<llvm::Instruction*> effects;
  for (llvm::Function& f : module) {
    for (llvm::Instruction& i : llvm::instructions(f)) {
      const llvm::Value* const to = written_by_author(i, folder);
      if (to == nullptr) continue;
      const Origin origin = origin_of(to);
      if (origin == Origin::kUnknown)
        diagnostics.fail("making room", "it may store to its own variables and elsewhere by one pointer");
      if (origin == Origin::kElsewhere) effects.push_back(&i);
    }
  }
  for (llvm::Instruction* i : effects) remove(*i);
}

}  // namespace coppice::jit
