// Code for the emulated GPU: every access to memory that other threads may see goes through the thread's view of it, by
// the functions of gpu/simt/symbols.h (see llvm_module.h).
//
// Runs last, so that what registers hold is not touched. Left alone are the thread's own stack variables, constants, and
// reads of the launch block, which nothing writes during a launch. What cannot be made to see a view is refused: vector
// intrinsics that access memory, and C functions that are given a pointer to anything but a stack variable (sincos).
#include <fmt/format.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include "gpu/jit/llvm_module.h"

namespace coppice::jit {
namespace {

enum class Access { kRead, kWrite };

class Instrumenter {
 public:
  Instrumenter(llvm::Module& module, std::string_view entry, const Diagnostics& diagnostics)
      : module_(module), layout_(module.getDataLayout()), entry_(entry), diagnostics_(diagnostics) {
    llvm::LLVMContext& context = module.getContext();
    none_ = llvm::Type::getVoidTy(context);
    pointer_ = llvm::PointerType::get(context, 0);
    u32_ = llvm::Type::getInt32Ty(context);
    size_ = llvm::Type::getInt64Ty(context);
    load_ = declare("coppice_simt_load", {pointer_, pointer_, u32_});
    store_ = declare("coppice_simt_store", {pointer_, pointer_, u32_});
    copy_ = declare("coppice_simt_copy", {pointer_, pointer_, size_});
    fill_ = declare("coppice_simt_fill", {pointer_, u32_, size_});
    atomic_ = declare("coppice_simt_atomic", {pointer_, u32_}, pointer_);
  }

  void run(llvm::Function& function) {
    function_ = &function;
    slot_ = nullptr, slot_bytes_ = 0;
    llvm::SmallVector<llvm::Instruction*> all;
    for (llvm::Instruction& i : llvm::instructions(function)) all.push_back(&i);
    for (llvm::Instruction* i : all) visit(*i);
    if (slot_ != nullptr) slot_->setOperand(0, llvm::ConstantInt::get(size_, slot_bytes_));
  }

  // The entry names the code's constants: pointers to them may come to be read through a view.
  void show_constants(llvm::Function& entry) {
    auto* const row = llvm::StructType::get(pointer_, size_);
    llvm::SmallVector<llvm::Constant*> rows;
    for (llvm::GlobalVariable& global : module_.globals()) {
      if (!global.isConstant()) continue;
      llvm::Constant* bytes = llvm::ConstantInt::get(size_, bytes_of(global.getValueType()));
      rows.push_back(llvm::ConstantStruct::get(row, {&global, bytes}));
    }
    if (rows.empty()) return;
    auto* const type = llvm::ArrayType::get(row, rows.size());
    auto* const table = new llvm::GlobalVariable(module_, type, true, llvm::GlobalValue::PrivateLinkage,
                                                 llvm::ConstantArray::get(type, rows), "coppice_constants");
    llvm::IRBuilder<> builder(&*entry.getEntryBlock().getFirstInsertionPt());
    builder.CreateCall(declare("coppice_simt_constants", {pointer_, size_}),
                       {table, llvm::ConstantInt::get(size_, rows.size())});
  }

 private:
  llvm::FunctionCallee declare(const char* name, llvm::ArrayRef<llvm::Type*> parameters,
                               llvm::Type* result = nullptr) {
    llvm::FunctionCallee callee = module_.getOrInsertFunction(
        name, llvm::FunctionType::get(result == nullptr ? none_ : result, parameters, false));
    auto* function = llvm::cast<llvm::Function>(callee.getCallee());
    function->setDoesNotThrow();
    function->setConvergent();  // a switch to other threads: not to be moved or made twice
    return callee;
  }

  bool is_private(const llvm::Value& object, Access access) const {
    if (llvm::isa<llvm::AllocaInst>(object)) return true;
    if (const auto* argument = llvm::dyn_cast<llvm::Argument>(&object)) {
      if (argument->hasByValAttr() || argument->hasStructRetAttr()) return true;  // on this thread's stack
      const bool is_launch_block =
          argument->getArgNo() == 0 && std::string_view(function_->getName()) == entry_;
      return access == Access::kRead && is_launch_block;
    }
    const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(&object);
    return access == Access::kRead && global != nullptr && global->isConstant();
  }
  bool is_private_at(const llvm::Value* pointer, Access access) const {
    llvm::SmallVector<const llvm::Value*> objects;
    llvm::getUnderlyingObjects(pointer, objects, nullptr, 0);
    return llvm::all_of(objects, [&](const llvm::Value* object) { return is_private(*object, access); });
  }

  llvm::ConstantInt* u32(uint64_t value) const {
    return llvm::ConstantInt::get(llvm::Type::getInt32Ty(module_.getContext()), value);
  }
  uint64_t bytes_of(llvm::Type* type) const { return layout_.getTypeStoreSize(type).getFixedValue(); }

  // A thread's values go by way of one stack variable, as large as the largest of them.
  llvm::Value* slot(uint64_t bytes) {
    if (slot_ == nullptr) {
      llvm::IRBuilder<> start(&*function_->getEntryBlock().getFirstInsertionPt());
      slot_ = start.CreateAlloca(llvm::Type::getInt8Ty(module_.getContext()),
                                 llvm::ConstantInt::get(size_, 1), "view");
      slot_->setAlignment(slot_align_);
    }
    slot_bytes_ = std::max(slot_bytes_, bytes);
    return slot_;
  }

  void visit(llvm::Instruction& i) {
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&i)) {
      if (load->isAtomic()) return announce(i, load->getPointerOperandIndex(), load->getType());
      return visit_load(*load);
    }
    if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&i)) {
      if (store->isAtomic())
        return announce(i, store->getPointerOperandIndex(), store->getValueOperand()->getType());
      return visit_store(*store);
    }
    if (auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&i))
      return announce(i, update->getPointerOperandIndex(), update->getType());
    if (auto* swap = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&i))
      return announce(i, swap->getPointerOperandIndex(), swap->getNewValOperand()->getType());
    if (auto* call = llvm::dyn_cast<llvm::CallBase>(&i)) visit_call(*call);
  }

  void announce(llvm::Instruction& i, unsigned pointer, llvm::Type* type) {
    llvm::IRBuilder<> builder(&i);
    i.setOperand(pointer, builder.CreateCall(atomic_, {i.getOperand(pointer), u32(bytes_of(type))}));
  }

  void visit_load(llvm::LoadInst& load) {
    if (is_private_at(load.getPointerOperand(), Access::kRead)) return;
    llvm::IRBuilder<> builder(&load);
    const uint64_t bytes = bytes_of(load.getType());
    llvm::Value* at = slot(bytes);
    builder.CreateCall(load_, {load.getPointerOperand(), at, u32(bytes)});
    llvm::LoadInst* seen = builder.CreateAlignedLoad(load.getType(), at, slot_align_);
    seen->takeName(&load);
    load.replaceAllUsesWith(seen);
    load.eraseFromParent();
  }

  void visit_store(llvm::StoreInst& store) {
    if (is_private_at(store.getPointerOperand(), Access::kWrite)) return;
    llvm::IRBuilder<> builder(&store);
    const uint64_t bytes = bytes_of(store.getValueOperand()->getType());
    llvm::Value* at = slot(bytes);
    builder.CreateAlignedStore(store.getValueOperand(), at, slot_align_);
    builder.CreateCall(store_, {store.getPointerOperand(), at, u32(bytes)});
    store.eraseFromParent();
  }

  void visit_call(llvm::CallBase& call) {
    if (auto* copy = llvm::dyn_cast<llvm::AnyMemTransferInst>(&call))
      return visit_copy(call, copy->getRawDest(), copy->getRawSource(), copy->getLength());
    if (auto* fill = llvm::dyn_cast<llvm::AnyMemSetInst>(&call))
      return visit_fill(call, fill->getRawDest(), fill->getValue(), fill->getLength());
    const llvm::Function* callee = call.getCalledFunction();
    if (callee == nullptr || !callee->isDeclaration()) return;
    if (callee->getName() == "memcpy" || callee->getName() == "memmove") {
      call.replaceAllUsesWith(call.getArgOperand(0));
      visit_copy(call, call.getArgOperand(0), call.getArgOperand(1), call.getArgOperand(2));
    } else if (callee->getName() == "memset") {
      call.replaceAllUsesWith(call.getArgOperand(0));
      visit_fill(call, call.getArgOperand(0), call.getArgOperand(1), call.getArgOperand(2));
    } else if (!callee->getName().starts_with("coppice_simt_")) {
      refuse_access(call, *callee);
    }
  }

  void visit_copy(llvm::CallBase& call, llvm::Value* to, llvm::Value* from, llvm::Value* length) {
    const bool own_to = is_private_at(to, Access::kWrite), own_from = is_private_at(from, Access::kRead);
    if (own_to && own_from) return;
    llvm::IRBuilder<> builder(&call);
    const auto* known = llvm::dyn_cast<llvm::ConstantInt>(length);
    const uint64_t bytes = known == nullptr ? UINT64_MAX : known->getZExtValue();
    if (bytes <= UINT32_MAX && own_to) {
      builder.CreateCall(load_, {from, to, u32(bytes)});
    } else if (bytes <= UINT32_MAX && own_from) {
      builder.CreateCall(store_, {to, from, u32(bytes)});
    } else {
      builder.CreateCall(copy_, {to, from, builder.CreateZExtOrTrunc(length, size_)});
    }
    call.eraseFromParent();
  }

  void visit_fill(llvm::CallBase& call, llvm::Value* to, llvm::Value* byte, llvm::Value* length) {
    if (is_private_at(to, Access::kWrite)) return;
    llvm::IRBuilder<> builder(&call);
    builder.CreateCall(fill_,
                       {to, builder.CreateZExtOrTrunc(byte, u32_), builder.CreateZExtOrTrunc(length, size_)});
    call.eraseFromParent();
  }

  void refuse_access(const llvm::CallBase& call, const llvm::Function& callee) const {
    if (call.doesNotAccessMemory() || call.onlyAccessesInaccessibleMemory() || call.isLifetimeStartOrEnd() ||
        llvm::isa<llvm::AssumeInst>(call))
      return;
    for (const llvm::Use& argument : call.args()) {
      const llvm::Type* type = argument->getType();
      if (!type->isPtrOrPtrVectorTy() ||
          (!type->isVectorTy() && is_private_at(argument.get(), Access::kWrite)))
        continue;
      diagnostics_.fail(
          "instrumenting",
          fmt::format("{} is given memory that other threads may see, which is not supported on "
                      "the emulated GPU; give it a variable of its own",
                      callee.getName().str()));
    }
  }

  const llvm::Align slot_align_{64};  // the largest vector's
  llvm::Module& module_;
  const llvm::DataLayout& layout_;
  const std::string_view entry_;
  const Diagnostics& diagnostics_;
  llvm::Type *none_, *pointer_, *u32_, *size_;
  llvm::FunctionCallee load_, store_, copy_, fill_, atomic_;
  llvm::Function* function_ = nullptr;
  llvm::AllocaInst* slot_ = nullptr;
  uint64_t slot_bytes_ = 0;
};

}  // namespace

namespace {

// Each gets the number of its place in the kernel. The return address is none: code generation copies a call behind the
// ends of a loop, and threads that come to the copies are still at one barrier.
void number_barriers(llvm::Module& module) {
  llvm::Function* const barrier = module.getFunction("coppice_block_barrier");
  if (barrier == nullptr) return;
  auto* const u32 = llvm::Type::getInt32Ty(module.getContext());
  llvm::FunctionCallee numbered = module.getOrInsertFunction(
      "coppice_simt_numbered_barrier",
      llvm::FunctionType::get(llvm::Type::getVoidTy(module.getContext()), {u32}, false));
  llvm::cast<llvm::Function>(numbered.getCallee())->addFnAttr(llvm::Attribute::Convergent);
  uint32_t number = 0;
  for (llvm::User* user : llvm::make_early_inc_range(barrier->users())) {
    auto* const call = llvm::dyn_cast<llvm::CallInst>(user);
    if (call == nullptr) continue;
    llvm::IRBuilder<>(call).CreateCall(numbered, {llvm::ConstantInt::get(u32, ++number)});
    call->eraseFromParent();
  }
}

void replace_memcmp(llvm::Module& module) {
  for (const char* name : {"memcmp", "bcmp"}) {
    llvm::Function* f = module.getFunction(name);
    if (f == nullptr || !f->isDeclaration()) continue;
    f->replaceAllUsesWith(
        module.getOrInsertFunction("coppice_view_memcmp", f->getFunctionType()).getCallee());
    f->eraseFromParent();
  }
}

}  // namespace

void prepare_for_simt(llvm::Module& module) {
  replace_memcmp(module);
  number_barriers(module);
}

void instrument_for_simt(llvm::Module& module, std::string_view entry, const Diagnostics& diagnostics) {
  Instrumenter instrumenter(module, entry, diagnostics);
  for (llvm::Function& f : module) {
    if (!f.isDeclaration()) instrumenter.run(f);
  }
  instrumenter.show_constants(*module.getFunction(entry));
}

}  // namespace coppice::jit
