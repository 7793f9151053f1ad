// Finds what decides a kernel's activations (see kernel_decisions.h): values that follow from what the launch
// changes are marked, and those that follow from them, until nothing is marked any more. A variable in memory
// has one mark for all of it, and for all of its time.
#include "gpu/jit/kernel_decisions.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include <map>

#include "gpu/jit/kernel_effects.h"
#include "gpu/jit/marked_functions.h"

namespace coppice::jit {
namespace {

class Marks {
 public:
  Marks(llvm::Function& kernel, uint32_t effects)
      : kernel_(kernel), changes_memory_((effects & (kStoresMemory | kAtomicsOnMemory)) != 0) {
    while (spread()) {
    }
  }

  // Gives the marks of all branches, and of what is activated.
  uint32_t of_decisions() const {
    uint32_t marks = 0;
    for (const llvm::Instruction& i : llvm::instructions(kernel_)) {
      if (const auto* branch = llvm::dyn_cast<llvm::BranchInst>(&i);
          branch != nullptr && branch->isConditional())
        marks |= of(branch->getCondition());
      if (const auto* choice = llvm::dyn_cast<llvm::SwitchInst>(&i)) marks |= of(choice->getCondition());
      const auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
      if (call == nullptr || !is_call_of(*call, kActivates)) continue;
      // The arguments are (this, from, coordinate), and of what stores, too, an index or none and the
      // value, which decides nothing.
      const unsigned decisive = call->arg_size() > 3 ? call->arg_size() - 1 : call->arg_size();
      for (unsigned k = 0; k < decisive; ++k) marks |= of_argument(call->getArgOperand(k));
    }
    return marks;
  }

 private:
  static bool is_call_of(const llvm::CallBase& call, llvm::StringRef mark) {
    return call.getCalledFunction() != nullptr && is_marked(*call.getCalledFunction(), mark);
  }
  static bool is_method_of(const llvm::CallBase& call, llvm::StringRef mangled_class) {
    const llvm::Function* callee = call.getCalledFunction();
    return callee != nullptr && callee->getName().starts_with(("_ZNK7coppice" + mangled_class).str());
  }

  uint32_t of(const llvm::Value* value) const {
    const auto found = marks_.find(value);
    return found == marks_.end() ? 0 : found->second;
  }
  // A pointer has the mark of what it points to, as far as that is a variable.
  uint32_t of_argument(const llvm::Value* value) const {
    uint32_t marks = of(value);
    if (!value->getType()->isPointerTy()) return marks;
    for (const llvm::Value* object : objects_of(value)) marks |= of(object);
    return marks;
  }
  static llvm::SmallVector<const llvm::Value*> objects_of(const llvm::Value* pointer) {
    llvm::SmallVector<const llvm::Value*> objects;
    llvm::getUnderlyingObjects(pointer, objects, nullptr, 0);
    return objects;
  }

  uint32_t of_load(const llvm::Value* pointer) const {
    uint32_t marks = of(pointer);
    for (const llvm::Value* object : objects_of(pointer)) {
      marks |= of(object);
      const auto* call = llvm::dyn_cast<llvm::CallBase>(object);
      if (is_own_object(*object)) continue;
      if (call != nullptr && is_call_of(*call, kAccess))  // what a role lets change, or a Read's block
        marks |= is_method_of(*call, "6ValuesIK") ? kDecidesByFields : kDecidesByChanges;
      else if (changes_memory_)
        marks |= kDecidesByChanges;
    }
    return marks;
  }
  uint32_t of_call(const llvm::CallBase& call) const {
    if (is_call_of(call, kActivates) || is_method_of(call, "6Append") || is_method_of(call, "6Atomic"))
      return kDecidesByChanges;
    uint32_t marks = is_method_of(call, "4Read") ? kDecidesByFields : 0;
    // Operations about threads give the same each time.
    if (is_device_atomic(call) || is_device_load(call)) marks |= kDecidesByChanges;
    for (const llvm::Use& argument : call.args()) marks |= of_argument(argument.get());
    return marks;
  }
  uint32_t of_instruction(const llvm::Instruction& i) const {
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&i)) return of_load(load->getPointerOperand());
    if (llvm::isa<llvm::AtomicRMWInst>(i) || llvm::isa<llvm::AtomicCmpXchgInst>(i)) return kDecidesByChanges;
    if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&i)) return of_call(*call);
    uint32_t marks = 0;
    for (const llvm::Use& operand : i.operands()) marks |= of(operand.get());
    return marks;
  }

  bool add(const llvm::Value* value, uint32_t marks) {
    uint32_t& all = marks_[value];
    const bool is_new = (all | marks) != all;
    all |= marks;
    return is_new;
  }
  bool add_to_memory(const llvm::Value* pointer, uint32_t marks) {
    bool is_new = false;
    if (marks == 0) return false;
    for (const llvm::Value* object : objects_of(pointer)) is_new |= add(object, marks);
    return is_new;
  }
  bool spread() {
    bool is_new = false;
    for (const llvm::Instruction& i : llvm::instructions(kernel_)) {
      const uint32_t marks = of_instruction(i);
      if (marks != 0 && !llvm::isa<llvm::AllocaInst>(i)) is_new |= add(&i, marks);
      if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&i))
        is_new |= add_to_memory(store->getPointerOperand(),
                                of(store->getValueOperand()) | of(store->getPointerOperand()));
      const auto* copy = llvm::dyn_cast<llvm::MemTransferInst>(&i);
      if (copy != nullptr) is_new |= add_to_memory(copy->getRawDest(), of_load(copy->getRawSource()));
      const auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
      if (call == nullptr || copy != nullptr || call->isLifetimeStartOrEnd()) continue;
      // A function may set what it is given by address; a marked one sets what it returns or makes alone.
      const llvm::Function* callee = call->getCalledFunction();
      const bool is_marked_one = callee != nullptr && callee->hasFnAttribute("llvm.assume");
      const bool makes = callee != nullptr && callee->getName().starts_with("_ZN7coppice6Random");
      const bool is_method = is_marked_one && !makes;
      for (unsigned k = 0; k < call->arg_size(); ++k) {
        const bool may_set = !is_method || call->paramHasAttr(k, llvm::Attribute::StructRet);
        if (may_set && call->getArgOperand(k)->getType()->isPointerTy())
          is_new |= add_to_memory(call->getArgOperand(k), marks);
      }
    }
    return is_new;
  }

  llvm::Function& kernel_;
  const bool changes_memory_;
  std::map<const llvm::Value*, uint32_t> marks_;
};

}  // namespace

uint32_t decisions_of(llvm::Function& kernel, uint32_t effects) {
  return Marks(kernel, effects).of_decisions();
}

}  // namespace coppice::jit
