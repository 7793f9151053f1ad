// Math functions of kernels on NVIDIA GPUs (see ptx_math.h).
#include "gpu/jit/ptx_math.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Support/MemoryBuffer.h>

#include <vector>

#include "gpu/jit/libdevice_names.h"

namespace coppice::jit {
namespace {

bool is_of_libdevice(const llvm::Function& f) {
  return f.isDeclaration() && f.getName().starts_with("__nv_");
}

// The library is read lazily: 2 ms instead of 29.
void link_libdevice(llvm::Module& module, const Diagnostics& diagnostics) {
  const std::span<const std::byte> bytes = libdevice_bitcode();
  auto library = llvm::getOwningLazyBitcodeModule(
      llvm::MemoryBuffer::getMemBuffer(
          llvm::StringRef(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "libdevice", false),
      module.getContext());
  if (!library) diagnostics.fail("reading libdevice", llvm::toString(library.takeError()));
  link_into(module, std::move(*library), true, diagnostics);
}

// LLVM's frexp returns both values in a struct, libdevice's one of them by a pointer.
bool expand_frexp(llvm::Function& frexp, bool fast) {
  if (frexp.getIntrinsicID() != llvm::Intrinsic::frexp) return false;
  auto* const results = llvm::cast<llvm::StructType>(frexp.getReturnType());
  llvm::Type* const number = results->getElementType(0);
  llvm::Type* const exponent = results->getElementType(1);
  if (!(number->isFloatTy() || number->isDoubleTy()) || !exponent->isIntegerTy(32)) return false;
  llvm::FunctionCallee callee =
      frexp.getParent()->getOrInsertFunction(libdevice_name(number->isFloatTy() ? "frexpf" : "frexp", fast),
                                             number, number, llvm::PointerType::get(frexp.getContext(), 0));
  for (llvm::User* user : llvm::make_early_inc_range(frexp.users())) {
    auto* const call = llvm::cast<llvm::CallInst>(user);
    llvm::IRBuilder<> start(&*call->getFunction()->getEntryBlock().getFirstInsertionPt());
    llvm::AllocaInst* const at = start.CreateAlloca(exponent);
    llvm::IRBuilder<> builder(call);
    llvm::Value* const fraction = builder.CreateCall(callee, {call->getArgOperand(0), at});
    llvm::Value* both = builder.CreateInsertValue(llvm::PoisonValue::get(results), fraction, 0);
    call->replaceAllUsesWith(builder.CreateInsertValue(both, builder.CreateLoad(exponent, at), 1));
    call->eraseFromParent();
  }
  frexp.eraseFromParent();
  return true;
}

}  // namespace

bool has_libdevice() { return !libdevice_bitcode().empty(); }

bool map_math(llvm::Module& module, bool fast, bool linked, const Diagnostics& diagnostics) {
  bool mapped = false;
  for (llvm::Function& f : llvm::make_early_inc_range(module)) {
    if (!f.isDeclaration()) continue;
    if (expand_frexp(f, fast)) {
      mapped = true;
      continue;
    }
    const std::string name = libdevice_name(f.getName(), fast);
    if (name.empty()) continue;
    f.replaceAllUsesWith(module.getOrInsertFunction(name, f.getFunctionType()).getCallee());
    f.eraseFromParent();
    mapped = true;
  }
  if (linked && has_libdevice() && llvm::any_of(module, is_of_libdevice)) link_libdevice(module, diagnostics);
  return mapped;
}

}  // namespace coppice::jit
