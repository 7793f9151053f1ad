// The library's own code in a kernel's module (see library_code.h).
#include "gpu/jit/library_code.h"

#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>

#include "gpu/jit/source_path.h"

namespace coppice::jit {
std::string library_folder(const llvm::Module& module) {
  constexpr llvm::StringRef kDrivers = "sparse/device/drivers.h";
  for (const llvm::Function& f : module) {
    for (const llvm::Instruction& i : llvm::instructions(f)) {
      for (const llvm::DILocation* at = i.getDebugLoc().get(); at != nullptr; at = at->getInlinedAt()) {
        const llvm::DISubprogram* program = at->getScope()->getSubprogram();
        if (!program->getName().starts_with("call_kernel<")) continue;
        const std::string path = path_of(program);
        if (llvm::StringRef(path).ends_with(kDrivers)) return path.substr(0, path.size() - kDrivers.size());
      }
    }
  }
  return "";
}

bool is_in_library(const llvm::DILocation& at, const std::string& folder) {
  const std::string path = path_of(&at);
  for (const char* part : {"sparse/device/", "gpu/", "core/", "coppice/"})
    if (path.rfind(folder + part, 0) == 0) return true;
  return false;
}

}  // namespace coppice::jit
