// Code for the emulated GPU: every access to memory that other threads may see goes through the thread's view
// of it, by the functions of gpu/simt/symbols.h (see llvm_module.h).
//
// Runs last, so that what registers hold is not touched. Left alone are the thread's own stack variables,
// constants, and reads of the launch block, which nothing writes during a launch. What cannot be made to see
// a view is refused: vector intrinsics that access memory, and C functions that are given a pointer to
// anything but a stack variable (sincos).
#include <fmt/format.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include <map>
#include <string>

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
    flag_ = llvm::Type::getInt1Ty(context);
    const auto row = {pointer_, pointer_, u32_, pointer_};
    load_ = declare("coppice_simt_load", row);
    store_ = declare("coppice_simt_store", row);
    load_relaxed_ = declare("coppice_simt_load_relaxed", row);
    store_relaxed_ = declare("coppice_simt_store_relaxed", row);
    load_later_ = declare("coppice_simt_load_later", {pointer_, pointer_, u32_, flag_, pointer_});
    await_ = declare("coppice_simt_await", {pointer_});
    copy_ = declare("coppice_simt_copy", {pointer_, pointer_, size_, pointer_});
    fill_ = declare("coppice_simt_fill", {pointer_, u32_, size_, pointer_});
    atomic_ = declare("coppice_simt_atomic", {pointer_, u32_, pointer_}, pointer_);
    site_ = llvm::StructType::get(pointer_, u32_, u32_);
    llvm::cast<llvm::Function>(load_later_.getCallee())->addParamAttr(3, llvm::Attribute::ZExt);
  }

  void run(llvm::Function& function) {
    function_ = &function;
    slot_ = nullptr, slot_bytes_ = 0, deferred_ = 0;
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
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&i)) return visit_load(*load);
    if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&i)) return visit_store(*store);
    if (auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&i))
      return announce(i, update->getPointerOperandIndex(), update->getType());
    if (auto* swap = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&i))
      return announce(i, swap->getPointerOperandIndex(), swap->getNewValOperand()->getType());
    if (auto* call = llvm::dyn_cast<llvm::CallBase>(&i)) visit_call(*call);
  }

  void announce(llvm::Instruction& i, unsigned pointer, llvm::Type* type) {
    llvm::IRBuilder<> builder(&i);
    const uint64_t bytes = bytes_of(type);
    i.setOperand(pointer, builder.CreateCall(atomic_, {i.getOperand(pointer), u32(bytes), site(i, bytes)}));
  }

  void visit_load(llvm::LoadInst& load) {
    if (is_private_at(load.getPointerOperand(), Access::kRead)) return;
    const uint64_t bytes = bytes_of(load.getType());
    const bool is_relaxed = load.isAtomic() || load.isVolatile();
    if (llvm::Instruction* use = late_use(load, bytes)) return defer(load, *use, bytes, is_relaxed);
    llvm::IRBuilder<> builder(&load);
    llvm::Value* at = slot(bytes);
    builder.CreateCall(is_relaxed && bytes <= kMaxAtomicBytes ? load_relaxed_ : load_,
                       {load.getPointerOperand(), at, u32(bytes), site(load, load.getAlign().value())});
    replace(load, builder.CreateAlignedLoad(load.getType(), at, slot_align_));
  }

  // Returns where the value is needed first, when other accesses come before that and the load may wait
  // for it: a GPU's may pass them. Null where that is not worth a call.
  llvm::Instruction* late_use(llvm::LoadInst& load, uint64_t bytes) const {
    if (bytes > kMaxAtomicBytes || deferred_ == kMaxDeferred || load.getType()->isVectorTy()) return nullptr;
    bool passes_access = false;
    for (llvm::Instruction* i = load.getNextNode(); i != nullptr; i = i->getNextNode()) {
      const bool is_use = llvm::is_contained(i->operand_values(), &load);
      const bool is_call = llvm::isa<llvm::CallBase>(i) && i->mayReadOrWriteMemory();
      if (is_use || is_call || i->isTerminator()) return passes_access ? i : nullptr;
      const auto* store = llvm::dyn_cast<llvm::StoreInst>(i);
      passes_access = passes_access || llvm::isa<llvm::AtomicRMWInst>(i) ||
                      (store != nullptr && !is_private_at(store->getPointerOperand(), Access::kWrite));
    }
    return nullptr;
  }

  void defer(llvm::LoadInst& load, llvm::Instruction& use, uint64_t bytes, bool is_relaxed) {
    ++deferred_;
    llvm::IRBuilder<> start(&*function_->getEntryBlock().getFirstInsertionPt());
    llvm::AllocaInst* at = start.CreateAlloca(size_, nullptr, "later");
    at->setAlignment(llvm::Align(kMaxAtomicBytes));
    llvm::IRBuilder<> builder(&load);
    builder.CreateCall(load_later_, {load.getPointerOperand(), at, u32(bytes),
                                     llvm::ConstantInt::get(flag_, is_relaxed ? 1 : 0),
                                     site(load, load.getAlign().value())});
    llvm::IRBuilder<> later(&use);
    later.CreateCall(await_, {at});
    replace(load, later.CreateAlignedLoad(load.getType(), at, llvm::Align(kMaxAtomicBytes)));
  }

  static void replace(llvm::LoadInst& load, llvm::LoadInst* seen) {
    seen->takeName(&load);
    load.replaceAllUsesWith(seen);
    load.eraseFromParent();
  }

  void visit_store(llvm::StoreInst& store) {
    if (is_private_at(store.getPointerOperand(), Access::kWrite)) return;
    llvm::IRBuilder<> builder(&store);
    const uint64_t bytes = bytes_of(store.getValueOperand()->getType());
    const bool is_relaxed = (store.isAtomic() || store.isVolatile()) && bytes <= kMaxAtomicBytes;
    llvm::Value* at = slot(bytes);
    builder.CreateAlignedStore(store.getValueOperand(), at, slot_align_);
    builder.CreateCall(is_relaxed ? store_relaxed_ : store_,
                       {store.getPointerOperand(), at, u32(bytes), site(store, store.getAlign().value())});
    store.eraseFromParent();
  }

  // Returns "function at file:line", as in validate.cc: where the user wrote it, by way of which function
  // of ours.
  static std::string place_of(const llvm::Instruction& i) {
    const llvm::DILocation* at = i.getDebugLoc().get();
    if (at == nullptr) return {};
    const auto text = [](const llvm::DILocation& l) {
      return fmt::format("{} at {}:{}", l.getScope()->getSubprogram()->getName().str(), l.getFilename().str(),
                         l.getLine());
    };
    const auto is_intrinsic = [](const llvm::DILocation& l) {
      return l.getFilename().ends_with("simt.device.cc") || l.getFilename().ends_with("relaxed_atomics.h");
    };
    while (at->getInlinedAt() != nullptr && is_intrinsic(*at)) at = at->getInlinedAt();
    const llvm::DILocation* outer = at;
    while (outer->getInlinedAt() != nullptr) outer = outer->getInlinedAt();
    const llvm::DILocation* user = at;  // the first one in the kernel's own file
    while (user->getFilename() != outer->getFilename()) user = user->getInlinedAt();
    if (user == at) return text(*at);
    return fmt::format("{}, called in {}", text(*at), text(*user));
  }

  llvm::Constant* site(const llvm::Instruction& i, uint64_t alignment) {
    const std::string place = place_of(i);
    if (place.empty()) return llvm::ConstantPointerNull::get(llvm::cast<llvm::PointerType>(pointer_));
    llvm::Constant*& known = sites_[fmt::format("{}@{}", place, alignment)];
    if (known != nullptr) return known;
    const auto constant = [&](llvm::Constant* value, const char* name) {
      return new llvm::GlobalVariable(module_, value->getType(), true, llvm::GlobalValue::PrivateLinkage,
                                      value, name);
    };
    llvm::Constant* text =
        constant(llvm::ConstantDataArray::getString(module_.getContext(), place), "coppice_place");
    return known = constant(
               llvm::ConstantStruct::get(llvm::cast<llvm::StructType>(site_), {text, u32(alignment), u32(0)}),
               "coppice_site");
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
    } else if (call.arg_size() != 0 && llvm::isa<llvm::ConstantPointerNull>(*std::prev(call.arg_end()))) {
      call.setArgOperand(call.arg_size() - 1, site(call, 1));  // an access with an order: simt.device.cc
    }
  }

  void visit_copy(llvm::CallBase& call, llvm::Value* to, llvm::Value* from, llvm::Value* length) {
    const bool own_to = is_private_at(to, Access::kWrite), own_from = is_private_at(from, Access::kRead);
    if (own_to && own_from) return;
    llvm::IRBuilder<> builder(&call);
    const auto* known = llvm::dyn_cast<llvm::ConstantInt>(length);
    const uint64_t bytes = known == nullptr ? UINT64_MAX : known->getZExtValue();
    llvm::Constant* const at = site(call, 1);
    if (bytes <= UINT32_MAX && own_to) {
      builder.CreateCall(load_, {from, to, u32(bytes), at});
    } else if (bytes <= UINT32_MAX && own_from) {
      builder.CreateCall(store_, {to, from, u32(bytes), at});
    } else {
      builder.CreateCall(copy_, {to, from, builder.CreateZExtOrTrunc(length, size_), at});
    }
    call.eraseFromParent();
  }

  void visit_fill(llvm::CallBase& call, llvm::Value* to, llvm::Value* byte, llvm::Value* length) {
    if (is_private_at(to, Access::kWrite)) return;
    llvm::IRBuilder<> builder(&call);
    builder.CreateCall(fill_, {to, builder.CreateZExtOrTrunc(byte, u32_),
                               builder.CreateZExtOrTrunc(length, size_), site(call, 1)});
    call.eraseFromParent();
  }

  void refuse_access(const llvm::CallBase& call, const llvm::Function& callee) const {
    if (call.doesNotAccessMemory() || call.onlyAccessesInaccessibleMemory() || call.isLifetimeStartOrEnd() ||
        llvm::isa<llvm::AssumeInst>(call))
      return;
    if (call.getIntrinsicID() == llvm::Intrinsic::prefetch) return;  // nobody sees what it fetches
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

  static constexpr uint64_t kMaxAtomicBytes = 8;
  static constexpr unsigned kMaxDeferred = 64;  // loads of a function: each has a stack variable
  const llvm::Align slot_align_{64};            // the largest vector's
  llvm::Module& module_;
  const llvm::DataLayout& layout_;
  const std::string_view entry_;
  const Diagnostics& diagnostics_;
  llvm::Type *none_, *pointer_, *u32_, *size_, *flag_, *site_;
  llvm::FunctionCallee load_, store_, load_relaxed_, store_relaxed_, load_later_, await_, copy_, fill_,
      atomic_;
  std::map<std::string, llvm::Constant*> sites_;  // one for each place and alignment
  llvm::Function* function_ = nullptr;
  llvm::AllocaInst* slot_ = nullptr;
  uint64_t slot_bytes_ = 0;
  unsigned deferred_ = 0;
};

}  // namespace

namespace {

// Each barrier gets the number of its place in the kernel. The return address would not do: code
// generation copies a call behind the ends of a loop, and threads that come to the copies are still at one
// barrier.
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
  instrumenter.show_constants(*module.getFunction(entry));  // before there are those of the calls
  for (llvm::Function& f : module) {
    if (!f.isDeclaration()) instrumenter.run(f);
  }
}

}  // namespace coppice::jit
