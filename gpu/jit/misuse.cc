// Refuses kernels that use a handle against its contract (see llvm_module.h).
//
// Handles test what the layouts decide and call coppice_misuse() where the test fails
// (sparse/device/checks.h). Layouts are constants by the time that a kernel is specialized, so that the
// optimiser has dropped the calls from right code. A call that it kept, with a handle that it knows, is in
// code that a run may come to. Where it does not know the handle, because a function was not inlined, all of
// the kernel is made one function and looked at again. That takes as long as another compilation, and happens
// in wrong code, in that which is not optimised, and where handles lie in arrays.
#include <fmt/format.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <vector>

#include "core/error.h"
#include "gpu/jit/library_code.h"
#include "gpu/jit/llvm_module.h"
#include "gpu/jit/marked_functions.h"

namespace coppice::jit {
namespace {

constexpr llvm::StringRef kMisuse = "coppice_misuse";

// Where the author wrote it: "heat.kernels.cc:12: ", or nothing where calls of several lines have become one.
std::string place_of(const llvm::Instruction& i, const std::string& folder) {
  const llvm::DILocation* at = i.getDebugLoc().get();
  while (at != nullptr && (at->getLine() == 0 || is_in_library(*at, folder))) at = at->getInlinedAt();
  return at == nullptr ? "" : fmt::format("{}:{}: ", at->getFilename().str(), at->getLine());
}

std::vector<llvm::CallInst*> calls_of_misuse(const llvm::Module& module) {
  std::vector<llvm::CallInst*> calls;
  const llvm::Function* const misuse = module.getFunction(kMisuse);
  if (misuse == nullptr) return calls;
  for (const llvm::User* user : misuse->users())
    if (const auto* call = llvm::dyn_cast<llvm::CallInst>(user))
      calls.push_back(const_cast<llvm::CallInst*>(call));
  return calls;
}

struct Finding {
  std::string why;  // of the first wrong use, whatever the order of the calls; empty where there is none
  bool has_unknown = false;  // some call's handle is not known
};
Finding find_misuse(const llvm::Module& module, const SpecializeRequest& request) {
  Finding found;
  const std::string folder = library_folder(module);
  for (const llvm::CallInst* call : calls_of_misuse(module)) {
    uint32_t given[3] = {};  // what, binding, given
    bool is_known = true;
    for (unsigned k = 0; k < 3; ++k) {
      const auto* number = llvm::dyn_cast<llvm::ConstantInt>(call->getArgOperand(k));
      is_known = is_known && number != nullptr;
      if (number != nullptr) given[k] = static_cast<uint32_t>(number->getZExtValue());
    }
    found.has_unknown |= !is_known;
    const std::string why = is_known ? request.why_misused(given[0], given[1], given[2]) : "";
    if (why.empty()) continue;
    const std::string text = place_of(*call, folder) + why;
    if (found.why.empty() || text < found.why) found.why = text;
  }
  return found;
}

// One function, in which all is known of a handle that can be.
void fold_all(llvm::Module& module) {
  inline_all(module);
  Analyses analyses;
  llvm::ModulePassManager passes;
  llvm::cantFail(analyses.builder.parsePassPipeline(
      passes,
      "function(instcombine<no-verify-fixpoint>,simplifycfg,sroa<modify-cfg>,early-cse<memssa>,sccp,"
      "instcombine<no-verify-fixpoint>,simplifycfg)"));
  passes.run(module, analyses.modules);
}

}  // namespace

// Nothing that the kernel can see is changed by a call, so that what the optimiser knows of handles outlasts
// it.
void declare_misuse(llvm::Module& module) {
  llvm::Function* const misuse = module.getFunction(kMisuse);
  if (misuse == nullptr) return;
  misuse->setMemoryEffects(llvm::MemoryEffects::inaccessibleMemOnly(llvm::ModRefInfo::Mod));
  misuse->setDoesNotThrow();
  misuse->setWillReturn();
}

void refuse_misuse(llvm::Module& module, const SpecializeRequest& request,
                   const std::function<std::unique_ptr<llvm::Module>()>& link) {
  const std::vector<llvm::CallInst*> calls = calls_of_misuse(module);
  if (calls.empty()) return;
  if (request.why_misused) {
    Finding found = find_misuse(module, request);
    if (found.why.empty() && found.has_unknown) {
      const std::unique_ptr<llvm::Module> whole = link();
      fold_all(*whole);
      found = find_misuse(*whole, request);
    }
    if (!found.why.empty())
      throw Error(ErrorCode::kInvalidArgument, fmt::format("kernel {}: {}", request.id, found.why));
  }
  llvm::Function* const misuse = calls[0]->getCalledFunction();
  for (llvm::CallInst* call : calls) call->eraseFromParent();
  misuse->eraseFromParent();
}

}  // namespace coppice::jit
