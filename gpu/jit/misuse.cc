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

#include <set>
#include <utility>
#include <vector>

#include "core/error.h"
#include "gpu/jit/author_code.h"
#include "gpu/jit/llvm_module.h"
#include "gpu/jit/marked_functions.h"

namespace coppice::jit {
namespace {

constexpr llvm::StringRef kMisuse = "coppice_misuse";

// Says where the author wrote something; no line where calls of several lines have become one.
struct SourceLine {
  std::string file;
  unsigned line = 0;
  auto operator<=>(const SourceLine&) const = default;
  // Returns "heat.kernels.cc:12: ".
  std::string text() const { return line == 0 ? "" : fmt::format("{}:{}: ", file, line); }
};

SourceLine line_of(const llvm::Instruction& i, const std::string& folder) {
  const llvm::DILocation* at = i.getDebugLoc().get();
  while (at != nullptr && (at->getLine() == 0 || is_in_library(*at, folder))) at = at->getInlinedAt();
  return at == nullptr ? SourceLine{} : SourceLine{at->getFilename().str(), at->getLine()};
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
  std::pair<SourceLine, std::string>
      first;                     // the first wrong use and why it is, whatever the order of the calls
  std::set<SourceLine> unknown;  // calls whose handle is not known
  bool is_any() const { return !first.second.empty(); }
};
// `among` are the only calls to judge.
Finding find_misuse(const llvm::Module& module, const SpecializeRequest& request,
                    const std::set<SourceLine>* among = nullptr) {
  Finding found;
  const std::string folder = library_folder(module);
  for (const llvm::CallInst* call : calls_of_misuse(module)) {
    const SourceLine place = line_of(*call, folder);
    if (among != nullptr && !among->contains(place) && !among->contains(SourceLine{})) continue;
    uint32_t given[3] = {};  // what, binding, given
    bool is_known = true;
    for (unsigned k = 0; k < 3; ++k) {
      const auto* number = llvm::dyn_cast<llvm::ConstantInt>(call->getArgOperand(k));
      is_known = is_known && number != nullptr;
      if (number != nullptr) given[k] = static_cast<uint32_t>(number->getZExtValue());
    }
    if (!is_known) found.unknown.insert(place);
    std::pair wrong(place, is_known ? request.why_misused(given[0], given[1], given[2]) : "");
    if (!wrong.second.empty() && (!found.is_any() || wrong < found.first)) found.first = std::move(wrong);
  }
  return found;
}

// Makes one function, in which all is known of a handle that can be.
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

// Declares that a call changes nothing that the kernel can see, so that what the optimiser knows of
// handles outlasts it.
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
    if (!found.is_any() && !found.unknown.empty()) {
      // This folds less than all of the optimiser does: calls that it had found dead are there again.
      const std::unique_ptr<llvm::Module> whole = link();
      fold_all(*whole);
      found = find_misuse(*whole, request, &found.unknown);
    }
    if (found.is_any())
      throw Error(ErrorCode::kInvalidArgument,
                  fmt::format("kernel {}: {}{}", request.id, found.first.first.text(), found.first.second));
  }
  llvm::Function* const misuse = calls[0]->getCalledFunction();
  for (llvm::CallInst* call : calls) call->eraseFromParent();
  misuse->eraseFromParent();
}

}  // namespace coppice::jit
