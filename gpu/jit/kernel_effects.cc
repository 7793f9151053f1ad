// The effects of kernels (see kernel_effects.h).
//
// Accesses through handles stay calls, for which the marks of their methods and the roles answer. All else is
// inlined and promoted to registers; what then still loads or stores somewhere else than in the kernel's own
// variables may reach memory that others see.
#include "gpu/jit/kernel_effects.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "gpu/jit/kernel_decisions.h"
#include "gpu/jit/marked_functions.h"

namespace coppice::jit {
namespace {

constexpr uint32_t kUnknownEffects = kLoadsMemory | kStoresMemory | kAtomicsOnMemory | kDrawsFromMemory |
                                     kComputesAddresses | kReadsAnywhere | kReadsNeighbours | kLooksAtLists |
                                     kAddsAsItGrows | kDecidesByChanges | kDecidesByFields;

bool is_opaque(const llvm::Function& f) {
  for (const llvm::StringRef mark :
       {kHarmless, kHarmlessNear, kAccess, kMemory, kActivates, kDeactivates, kTests})
    if (is_marked(f, mark)) return true;
  return false;
}

// Tells whether memory is the kernel's own, or what a handle's method gave, for which the role answers.
bool is_own(const llvm::Value* pointer) {
  const llvm::Value* object = llvm::getUnderlyingObject(pointer, 0);
  return is_own_object(*object) || is_result_of_marked(*object, kAccess);
}

// Bytes [begin, end) of something of this type; of one of the items, whichever it is, of an array whose index
// is not constant.
struct Part {
  llvm::Type* type;
  uint64_t begin, end;
};

// The type of a variable, or of an argument that is one; null for others.
llvm::Type* type_of_object(const llvm::Value& object) {
  if (const auto* variable = llvm::dyn_cast<llvm::AllocaInst>(&object))
    return variable->isArrayAllocation() ? nullptr : variable->getAllocatedType();
  const auto* argument = llvm::dyn_cast<llvm::Argument>(&object);
  return argument != nullptr && argument->hasByValAttr() ? argument->getParamByValType() : nullptr;
}

// Finds where pointers are in variables: bytes that are stored as something else must not be taken for one.
class PointersInObjects {
 public:
  // `by` is an instruction of the function.
  explicit PointersInObjects(const llvm::Value& by)
      : layout_(llvm::cast<llvm::Instruction>(by).getModule()->getDataLayout()) {}

  // Returns where pointers begin in so many bytes from an address on; none where that is not known, or one of
  // them is not wholly there.
  std::optional<std::vector<uint64_t>> pointers_at(const llvm::Value& address, uint64_t bytes) const {
    const std::optional<Part> part = part_at(address, bytes);
    std::vector<uint64_t> begins;
    if (!part || !add_pointers(part->type, 0, *part, begins)) return {};
    return begins;
  }
  bool is_pointer(const llvm::Value& address) const {
    return pointers_at(address, layout_.getPointerSize()) == std::vector<uint64_t>{0};
  }
  // Returns whether what is stored is no part of a pointer.
  bool is_beside_pointers(const llvm::StoreInst& store) const {
    const uint64_t bytes = layout_.getTypeStoreSize(store.getValueOperand()->getType()).getFixedValue();
    const auto pointers = pointers_at(*store.getPointerOperand(), bytes);
    return pointers && pointers->empty();
  }
  // Returns where pointers begin in what a call copies or fills from an address on; none as above.
  std::optional<std::vector<uint64_t>> pointers_at(const llvm::Value& address,
                                                   const llvm::MemIntrinsic& call) const {
    const auto* bytes = llvm::dyn_cast<llvm::ConstantInt>(call.getLength());
    return bytes == nullptr ? std::nullopt : pointers_at(address, bytes->getZExtValue());
  }

 private:
  // Returns which bytes of its object an address leads to; none where that is not known.
  std::optional<Part> part_at(const llvm::Value& address, uint64_t bytes) const {
    const llvm::Value* at = &address;
    uint64_t begin = 0;
    std::vector<uint64_t> strides;
    const unsigned bits = layout_.getIndexTypeSizeInBits(address.getType());
    while (const auto* step = llvm::dyn_cast<llvm::GEPOperator>(at)) {
      llvm::MapVector<llvm::Value*, llvm::APInt> variable;
      llvm::APInt constant(bits, 0);
      if (!step->collectOffset(layout_, bits, variable, constant)) return {};
      begin += constant.getZExtValue();  // modulo 2^64
      for (const auto& entry : variable) strides.push_back(entry.second.getZExtValue());
      at = step->getPointerOperand();
    }
    llvm::Type* type = type_of_object(*at);
    while (type != nullptr && !strides.empty()) {
      const auto* array = llvm::dyn_cast<llvm::ArrayType>(type);
      if (array == nullptr) return {};
      type = array->getElementType();
      const uint64_t item = size_of(type);
      if (item == 0) return {};
      std::erase_if(strides, [&](uint64_t stride) { return stride % item == 0; });
      if (strides.empty()) begin %= item;
    }
    if (type == nullptr || begin > size_of(type) || bytes > size_of(type) - begin) return {};
    return Part{type, begin, begin + bytes};
  }
  uint64_t size_of(llvm::Type* type) const { return layout_.getTypeAllocSize(type).getFixedValue(); }
  static constexpr uint64_t kMostItems = 256;  // of an array that are looked through

  bool add_pointers(llvm::Type* type, uint64_t at, const Part& part, std::vector<uint64_t>& begins) const {
    const uint64_t end = at + size_of(type);
    if (end <= part.begin || at >= part.end) return true;
    if (type->isPointerTy()) {
      begins.push_back(at - part.begin);
      return part.begin <= at && end <= part.end;
    }
    if (const auto* members = llvm::dyn_cast<llvm::StructType>(type)) {
      const llvm::StructLayout& offsets = *layout_.getStructLayout(llvm::cast<llvm::StructType>(type));
      for (unsigned i = 0; i < members->getNumElements(); ++i)
        if (!add_pointers(members->getElementType(i), at + offsets.getElementOffset(i), part, begins))
          return false;
      return true;
    }
    const auto* array = llvm::dyn_cast<llvm::ArrayType>(type);
    if (array == nullptr) return !type->isVectorTy() || !type->getScalarType()->isPointerTy();
    llvm::Type* const item = array->getElementType();
    if (!has_pointers(item)) return true;
    if (array->getNumElements() > kMostItems) return false;
    for (uint64_t i = 0; i < array->getNumElements(); ++i)
      if (!add_pointers(item, at + i * size_of(item), part, begins)) return false;
    return true;
  }
  static bool has_pointers(llvm::Type* type) {
    if (type->isPtrOrPtrVectorTy()) return true;
    if (const auto* array = llvm::dyn_cast<llvm::ArrayType>(type))
      return has_pointers(array->getElementType());
    return std::any_of(type->subtype_begin(), type->subtype_end(), has_pointers);
  }

  const llvm::DataLayout& layout_;
};

// Finds out where addresses come from, of a kernel whose Views are still in memory.
class KnownAddresses {
 public:
  // Tells whether an address is a pointer that is an argument, or that of a View which is one.
  bool is_argument_or_of_one(const llvm::Value& pointer) {
    const llvm::Value& object = *llvm::getUnderlyingObject(&pointer, 0);
    if (llvm::isa<llvm::Argument>(object)) return true;
    const llvm::Value* view = nullptr;
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&object))
      view = load->getPointerOperand();
    else if (is_result_of_marked(object, kMemory))
      view = llvm::cast<llvm::CallBase>(object).getArgOperand(0);
    return view != nullptr && is_known_view(*llvm::getUnderlyingObject(view, 0)) &&
           PointersInObjects(object).is_pointer(*view);
  }

 private:
  static bool is_view_argument(const llvm::Value& object) {
    const auto* argument = llvm::dyn_cast<llvm::Argument>(&object);
    if (argument == nullptr || !argument->hasByValAttr()) return false;
    const auto* type = llvm::dyn_cast<llvm::StructType>(argument->getParamByValType());
    return type != nullptr && type->hasName() && type->getName().starts_with("struct.coppice::View");
  }
  // Tells whether a View in memory is an argument of the kernel, or a variable: one that is nothing but a
  // copy of such a View, or made from a pointer that is an argument. All of its pointers are known then.
  bool is_known_view(const llvm::Value& object) {
    if (!is_view_argument(object) && !llvm::isa<llvm::AllocaInst>(object)) return false;
    // One whose own pointer is stored back, a few items further, is being looked at already.
    if (!looked_at_.insert(&object).second) return true;
    std::vector<const llvm::Value*> addresses{&object};
    while (!addresses.empty()) {
      const llvm::Value* const address = addresses.back();
      addresses.pop_back();
      for (const llvm::User* user : address->users()) {
        if (llvm::isa<llvm::GetElementPtrInst>(user))
          addresses.push_back(user);
        else if (!leaves_known(*user, *address))
          return false;
      }
    }
    return true;
  }
  bool leaves_known(const llvm::User& user, const llvm::Value& address) {
    if (llvm::isa<llvm::LoadInst>(user)) return true;
    if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&user)) {
      const llvm::Value& value = *store->getValueOperand();
      if (&value == &address) return false;
      const PointersInObjects pointers(user);
      if (pointers.is_beside_pointers(*store)) return true;
      return value.getType()->isPointerTy() && pointers.is_pointer(address) &&
             (llvm::isa<llvm::ConstantPointerNull>(value) || is_argument_or_of_one(value));
    }
    if (const auto* copy = llvm::dyn_cast<llvm::MemTransferInst>(&user))
      return copy->getRawDest() != &address || brings_known(*copy);
    if (const auto* set = llvm::dyn_cast<llvm::MemSetInst>(&user)) {
      const auto* byte = llvm::dyn_cast<llvm::ConstantInt>(set->getValue());
      return byte != nullptr && byte->isZero() && PointersInObjects(user).pointers_at(address, *set);
    }
    if (const auto* remark = llvm::dyn_cast<llvm::IntrinsicInst>(&user))
      return remark->isAssumeLikeIntrinsic();
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&user);
    const llvm::Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
    return callee != nullptr && is_marked(*callee, kMemory);
  }
  // Tells whether pointers that a copy writes are those of a variable that is known, in the same places.
  bool brings_known(const llvm::MemTransferInst& copy) {
    const PointersInObjects pointers(copy);
    const auto to = pointers.pointers_at(*copy.getRawDest(), copy);
    if (!to || to->empty()) return to.has_value();
    const llvm::Value& from = *copy.getRawSource();
    return to == pointers.pointers_at(from, copy) && is_known_view(*llvm::getUnderlyingObject(&from, 0));
  }

  std::set<const llvm::Value*> looked_at_;
};

// Gives an effect on memory that is not the kernel's own.
uint32_t effect_on(const llvm::Value* pointer, uint32_t effect) {
  if (is_own(pointer)) return 0;
  return effect | (KnownAddresses().is_argument_or_of_one(*pointer) ? 0u : kComputesAddresses);
}

// Gives the effects of a call that nothing was inlined for.
uint32_t effects_of_call(const llvm::CallBase& call) {
  const llvm::Function* callee = call.getCalledFunction();
  if (call.isInlineAsm() || callee == nullptr) return kUnknownEffects;
  if (is_marked(*callee, kActivates)) {
    const bool adds =
        callee->getName().starts_with("_ZNK7coppice4Grow") && callee->getName().contains("E3add");
    return kActivatesCells | (adds ? kAddsAsItGrows : 0);
  }
  if (is_marked(*callee, kDeactivates)) return kDeactivatesCells;
  const uint32_t reads = (is_marked(*callee, kAnywhere) ? kReadsAnywhere : 0) |
                         (is_marked(*callee, kNeighbours) ? kReadsNeighbours : 0);
  if (is_marked(*callee, kTests)) return kTestsCells | reads;
  if (is_opaque(*callee)) return reads;
  if (const auto* copy = llvm::dyn_cast<llvm::MemTransferInst>(&call)) {
    return effect_on(copy->getRawDest(), kStoresMemory) | effect_on(copy->getRawSource(), kLoadsMemory);
  }
  if (const auto* set = llvm::dyn_cast<llvm::MemSetInst>(&call))
    return effect_on(set->getRawDest(), kStoresMemory);
  if (!callee->isDeclaration()) return kUnknownEffects;  // it calls itself
  const auto effect_on_operand = [&](uint32_t effect) {
    return effect | (effect_on(call.getArgOperand(0), effect) & kComputesAddresses);
  };
  if (is_device_atomic(call))
    return effect_on_operand(kAtomicsOnMemory) | (call.use_empty() ? 0u : kDrawsFromMemory);
  if (is_device_load(call)) return effect_on_operand(kLoadsMemory);
  // Other operations of the device are about threads.
  if (callee->isIntrinsic() || callee->getName().starts_with("coppice_")) return 0;
  // A function of a library may store through what it is given: modf, sincos, memcpy. Nobody leaves that out
  // of a run that only makes room.
  uint32_t effects = 0;
  for (unsigned k = 0; k < call.arg_size(); ++k) {
    if (call.getArgOperand(k)->getType()->isPointerTy())
      effects |= effect_on(call.getArgOperand(k), kLoadsMemory | kStoresMemory | kDecidesByChanges);
  }
  return effects;
}

// Flags an Append's method other than the one that appends, or that one where its index is used.
uint32_t effects_on_lists(const llvm::CallBase& call) {
  const llvm::Function* callee = call.getCalledFunction();
  if (callee == nullptr || !callee->getName().starts_with("_ZNK7coppice6Append")) return 0;
  const bool appends = callee->getName().contains("E6append");
  return appends && call.use_empty() ? 0 : kLooksAtLists;
}

uint32_t effects_of(const llvm::Instruction& i) {
  if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&i))
    return effect_on(load->getPointerOperand(), kLoadsMemory);
  if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&i))
    return effect_on(store->getPointerOperand(), kStoresMemory);
  const llvm::Value* atomic = nullptr;
  if (const auto* change = llvm::dyn_cast<llvm::AtomicRMWInst>(&i)) atomic = change->getPointerOperand();
  if (const auto* swap = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&i)) atomic = swap->getPointerOperand();
  if (atomic != nullptr) return effect_on(atomic, kAtomicsOnMemory | (i.use_empty() ? 0u : kDrawsFromMemory));
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
  return call == nullptr ? 0 : effects_of_call(*call) | effects_on_lists(*call);
}

uint32_t effects_of(llvm::Function& f) {
  uint32_t effects = 0;
  for (const llvm::Instruction& i : llvm::instructions(f)) effects |= effects_of(i);
  return effects | decisions_of(f, effects);
}

}  // namespace

std::map<std::string, uint32_t> kernel_effects(const llvm::Module& original,
                                               const std::map<std::string, std::string>& bodies) {
  const std::unique_ptr<llvm::Module> module = llvm::CloneModule(original);
  llvm::stripNonLineTableDebugInfo(*module);
  make_opaque(*module, is_opaque);
  std::map<std::string, uint32_t> effects;
  std::map<std::string, llvm::Function*> judged;
  Functions kept, inlined;
  for (const auto& [kernel, symbol] : bodies) {
    llvm::Function* const body = module->getFunction(symbol);
    effects[kernel] = kUnknownEffects | kActivatesCells | kDeactivatesCells | kTestsCells;
    if (body == nullptr || body->isDeclaration() || !collect_reached(*body, inlined)) continue;
    judged[kernel] = body, kept.insert(body);
    body->setLinkage(llvm::GlobalValue::ExternalLinkage);  // nobody calls it any more
  }
  Analyses analyses;
  inline_and_simplify(*module, kept, inlined, analyses);
  for (const auto& [kernel, body] : judged) effects[kernel] = effects_of(*body);
  return effects;
}

}  // namespace coppice::jit
