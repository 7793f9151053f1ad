// Hashes of single kernels (see kernel_contents.h).
//
// A kernel's part of the file is cut out and written as bitcode of its own, which numbers types, attributes
// and metadata anew. Where such numbers depend on more than the kernel, equal ones get different hashes,
// which costs a compilation; the reverse cannot be.
#include "gpu/jit/kernel_contents.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/SHA1.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <filesystem>
#include <vector>

#include "gpu/jit/source_path.h"

namespace coppice::kernelgen {
namespace {

using Reached = llvm::SmallPtrSet<const llvm::GlobalValue*, 32>;

// Collects all that code or data leads to.
void collect(const llvm::GlobalValue& from, Reached& reached) {
  llvm::SmallPtrSet<const llvm::Constant*, 32> seen;
  std::vector<const llvm::User*> open{&from};
  reached.insert(&from);
  const auto add = [&](const llvm::User& user) {
    for (const llvm::Use& operand : user.operands()) {
      const auto* constant = llvm::dyn_cast<llvm::Constant>(operand.get());
      if (constant == nullptr || !seen.insert(constant).second) continue;
      if (const auto* global = llvm::dyn_cast<llvm::GlobalValue>(constant)) reached.insert(global);
      open.push_back(constant);
    }
  };
  while (!open.empty()) {
    const llvm::User* const user = open.back();
    open.pop_back();
    add(*user);
    const auto* f = llvm::dyn_cast<llvm::Function>(user);
    if (f == nullptr) continue;
    for (const llvm::Instruction& i : llvm::instructions(*f)) add(i);
  }
}

}  // namespace

struct KernelContents::State {
  std::unique_ptr<llvm::Module> without_lines;
  // For each function with a body this says where its instructions were written.
  llvm::DenseMap<const llvm::GlobalValue*, std::string> places;
};

KernelContents::KernelContents(const llvm::Module& shipped) : state_(std::make_unique<State>()) {
  llvm::ValueToValueMapTy copies;
  state_->without_lines = llvm::CloneModule(shipped, copies);
  state_->without_lines->setSourceFileName("");
  state_->without_lines->setModuleIdentifier("");
  llvm::DenseMap<const llvm::DILocalScope*, std::string> names;
  const auto name_of = [&](const llvm::DILocation* at) -> const std::string& {
    std::string& name = names[at->getScope()];
    if (name.empty()) {
      // A wrapper of the compiler may have made the path a relative one.
      const std::string path = std::filesystem::path(jit::path_of(at)).lexically_normal().string();
      name = path + '\n' + at->getScope()->getSubprogram()->getName().str() + '\n';
    }
    return name;
  };
  for (const llvm::Function& f : shipped) {
    if (f.isDeclaration()) continue;
    llvm::SHA1 hash;
    for (const llvm::Instruction& i : llvm::instructions(f)) {
      for (const llvm::DILocation* at = i.getDebugLoc().get(); at != nullptr; at = at->getInlinedAt())
        hash.update(name_of(at));
      hash.update("\n");
    }
    const auto copy = llvm::cast<llvm::GlobalValue>(static_cast<llvm::Value*>(copies[&f]));
    state_->places[copy] = llvm::toHex(hash.final());
  }
  llvm::StripDebugInfo(*state_->without_lines);
}

KernelContents::~KernelContents() = default;

std::string KernelContents::hash(const llvm::Function& entry) const {
  const llvm::Module& all = *state_->without_lines;
  Reached reached;
  collect(*all.getFunction(entry.getName()), reached);
  llvm::ValueToValueMapTy copies;
  const std::unique_ptr<llvm::Module> part =
      llvm::CloneModule(all, copies, [&](const llvm::GlobalValue* g) { return reached.contains(g); });
  llvm::SHA1 hash;
  for (const llvm::GlobalValue& g : all.global_values()) {
    if (reached.contains(&g)) {
      hash.update(state_->places.lookup(&g));
    } else {
      llvm::cast<llvm::GlobalValue>(static_cast<llvm::Value*>(copies[&g]))->eraseFromParent();
    }
  }
  llvm::SmallString<0> bitcode;
  llvm::raw_svector_ostream out(bitcode);
  llvm::WriteBitcodeToFile(*part, out);
  hash.update(bitcode.str());
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

}  // namespace coppice::kernelgen
