// Checks of accesses by pointer (see llvm_module.h).
//
// Left alone are the kernel's own variables, fast memory, the launch's own block, and what the library's
// headers do: handles check themselves, and runtime functions keep to their trees. What a C function does
// with an address that it is given (modf, sincos) is not seen.
#include <fmt/format.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include <map>
#include <string>

#include "gpu/effects.h"
#include "gpu/jit/author_code.h"
#include "gpu/jit/llvm_module.h"
#include "gpu/jit/marked_functions.h"
#include "gpu/jit/source_path.h"
#include "gpu/memory_uses.h"

namespace coppice::jit {
namespace {

class Guard {
 public:
  Guard(llvm::Module& module, llvm::Function& entry, std::string folder, const SpecializeRequest& request)
      : module_(module),
        entry_(entry),
        folder_(std::move(folder)),
        makes_room_(request.makes_room),
        has_slots_(request.has_slots) {
    llvm::LLVMContext& context = module.getContext();
    pointer_ = llvm::PointerType::get(context, 0);
    u32_ = llvm::Type::getInt32Ty(context), u64_ = llvm::Type::getInt64Ty(context);
    guard_ = module.getOrInsertFunction(
        "coppice_guard_memory",
        llvm::FunctionType::get(pointer_, {pointer_, pointer_, u64_, u32_, pointer_, u32_}, false));
  }

  void run() {
    llvm::SmallVector<llvm::Instruction*> all;
    for (llvm::Instruction& i : llvm::instructions(entry_)) {
      if (i.getDebugLoc() && !is_for_library(i)) all.push_back(&i);
    }
    for (llvm::Instruction* i : all) visit(*i);
  }

 private:
  // Returns true also for what the library has others' code do for it: copying a field's value, of a type
  // of Eigen's, say.
  bool is_for_library(const llvm::Instruction& i) const {
    if (is_library(i, folder_)) return true;
    for (const llvm::DILocation* at = i.getDebugLoc().get(); at != nullptr; at = at->getInlinedAt()) {
      const llvm::StringRef name = at->getScope()->getSubprogram()->getName();
      if (name.starts_with("call_kernel<")) return false;  // it called the author's kernel
      const std::string path = path_of(at);
      if (name != "atomic_add" && path.rfind(folder_ + "sparse/device/", 0) == 0) return true;
    }
    return false;
  }

  void visit(llvm::Instruction& i) {
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&i))
      return guard(i, load->getPointerOperandIndex(), bytes_of(load->getType()), effect::kReads);
    if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&i))
      return guard(i, store->getPointerOperandIndex(), bytes_of(store->getValueOperand()->getType()),
                   effect::kStores);
    if (auto* change = llvm::dyn_cast<llvm::AtomicRMWInst>(&i))
      return guard(i, change->getPointerOperandIndex(), bytes_of(change->getType()), effect::kChanges);
    if (auto* swap = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&i))
      return guard(i, swap->getPointerOperandIndex(), bytes_of(swap->getNewValOperand()->getType()),
                   effect::kChanges);
    if (auto* memory = llvm::dyn_cast<llvm::AnyMemIntrinsic>(&i)) return visit_range(*memory);
    if (is_device_atomic(i)) {
      auto& call = llvm::cast<llvm::CallBase>(i);
      // coppice_fetch_add_u32: its name ends with the size in bits.
      const bool is_wide = call.getCalledFunction()->getName().ends_with("64");
      guard(i, 0, llvm::ConstantInt::get(u64_, is_wide ? 8 : 4), effect::kChanges);
    }
  }

  // Guards copies and fills. If one is refused and is too large for the place that is accessed instead, no
  // byte is moved.
  void visit_range(llvm::AnyMemIntrinsic& memory) {
    visit_end(memory, 0, effect::kStores);
    if (llvm::isa<llvm::AnyMemTransferInst>(memory)) visit_end(memory, 1, effect::kReads);
  }
  void visit_end(llvm::AnyMemIntrinsic& memory, unsigned operand, uint32_t what) {
    llvm::Value *const length = memory.getLength(), *const before = memory.getArgOperand(operand);
    const auto* known = llvm::dyn_cast<llvm::ConstantInt>(length);
    guard(memory, operand, llvm::IRBuilder<>(&memory).CreateZExtOrTrunc(length, u64_), what);
    llvm::Value* const after = memory.getArgOperand(operand);
    if (after == before || (known != nullptr && known->getZExtValue() <= kSinkBytes)) return;
    llvm::IRBuilder<> builder(&memory);
    memory.setLength(builder.CreateSelect(builder.CreateICmpEQ(before, after), length,
                                          llvm::Constant::getNullValue(length->getType())));
  }

  llvm::Constant* bytes_of(llvm::Type* type) const {
    return llvm::ConstantInt::get(u64_, module_.getDataLayout().getTypeStoreSize(type).getFixedValue());
  }

  bool is_own(const llvm::Value& object) const {
    if (llvm::isa<llvm::AllocaInst>(object) || llvm::isa<llvm::GlobalVariable>(object)) return true;
    if (llvm::isa<llvm::Argument>(object)) return true;  // the launch's block
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&object);
    const llvm::Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
    return callee != nullptr && callee->getName() == "coppice_shared_memory";
  }

  // Tells whether a pointer was read from memory that is not the launch's arguments: from a
  // table of pointers, or as a value of a field. (A container's own, which the library
  // reads, cannot be told from these.)
  bool is_behind_memory(const llvm::Value* object) const {
    const auto* load = llvm::dyn_cast<llvm::LoadInst>(object);
    if (load == nullptr) return false;
    const auto is_block = [](const llvm::Value* o) { return llvm::isa<llvm::Argument>(o); };
    llvm::SmallVector<const llvm::Value*> from;  // an argument is in the block, or where its slot has it
    llvm::getUnderlyingObjects(load->getPointerOperand(), from, nullptr, 0);
    return has_slots_ ? !llvm::all_of(from, is_block) : llvm::none_of(from, is_block);
  }

  void guard(llvm::Instruction& i, unsigned operand, llvm::Value* bytes, uint32_t what) {
    llvm::Value* const pointer = i.getOperand(operand);
    if (pointer->getType() != pointer_) return;  // fast memory of a GPU
    llvm::SmallVector<const llvm::Value*> objects;
    llvm::getUnderlyingObjects(pointer, objects, nullptr, 0);
    if (llvm::all_of(objects, [&](const llvm::Value* o) { return is_own(*o); })) return;
    if (llvm::any_of(objects, [&](const llvm::Value* o) { return is_behind_memory(o); })) {
      what |= kIsBehindMemory;
      for (const llvm::GlobalVariable& g :
           module_.globals()) {  // it may have been the address of any of these
        if (g.isConstant() && g.hasInitializer() && g.hasLocalLinkage() &&
            !g.getName().starts_with("coppice_"))
          objects.push_back(&g);
      }
    }
    if (makes_room_) what |= kSaysNothing;
    const std::string place = place_of(i);
    llvm::IRBuilder<> builder(&i);
    for (const llvm::Value* o : objects) bytes = unless_in_table(builder, pointer, o, bytes);
    i.setOperand(operand, builder.CreateCall(
                              guard_, {entry_.getArg(0), pointer, bytes, llvm::ConstantInt::get(u32_, what),
                                       text(place), llvm::ConstantInt::get(u32_, place.size())}));
  }

  // Makes it no bytes, which may be anywhere, where a pointer that may lead elsewhere leads to a
  // constant table of the kernel's file.
  llvm::Value* unless_in_table(llvm::IRBuilder<>& builder, llvm::Value* pointer, const llvm::Value* object,
                               llvm::Value* bytes) const {
    const auto* const found = llvm::dyn_cast<llvm::GlobalVariable>(object);
    if (found == nullptr || found->getAddressSpace() != 0) return bytes;
    auto* const table = const_cast<llvm::GlobalVariable*>(found);
    llvm::Value* const from_begin =
        builder.CreateSub(builder.CreatePtrToInt(pointer, u64_), builder.CreatePtrToInt(table, u64_));
    return builder.CreateSelect(builder.CreateICmpULT(from_begin, bytes_of(table->getValueType())),
                                llvm::ConstantInt::get(u64_, 0), bytes);
  }

  // Returns "heat.kernels.cc:12".
  static std::string place_of(const llvm::Instruction& i) {
    const llvm::DILocation* const at = i.getDebugLoc().get();
    const llvm::StringRef file = at->getFilename();
    const llvm::StringRef name = file.substr(file.rfind('/') + 1).take_back(kMaxAssertionBytes / 2);
    return fmt::format("{}:{}", name.str(), at->getLine());
  }

  llvm::Constant* text(const std::string& place) {
    llvm::Constant*& known = texts_[place];
    if (known != nullptr) return known;
    llvm::Constant* bytes = llvm::ConstantDataArray::getString(module_.getContext(), place);
    return known = new llvm::GlobalVariable(module_, bytes->getType(), true,
                                            llvm::GlobalValue::PrivateLinkage, bytes, "coppice_place");
  }

  llvm::Module& module_;
  llvm::Function& entry_;
  const std::string folder_;
  const bool makes_room_, has_slots_;
  llvm::Type *pointer_, *u32_, *u64_;
  llvm::FunctionCallee guard_;
  std::map<std::string, llvm::Constant*> texts_;
};

}  // namespace

void guard_memory(llvm::Module& module, const SpecializeRequest& request) {
  const std::string folder = library_folder(module);
  if (folder.empty()) return;  // without line tables nothing says which code is the author's
  inline_all(module);
  Guard(module, *module.getFunction(request.entry), folder, request).run();
}

}  // namespace coppice::jit
