// The author's code of a kernel (see author_code.h).
#include "gpu/jit/author_code.h"

#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include "gpu/jit/marked_functions.h"
#include "gpu/jit/source_path.h"

namespace coppice::jit {
namespace {

// Kernels include these headers of the library besides sparse/device/.
constexpr llvm::StringRef kLibraryHeaders[] = {"core/device_macros.h", "gpu/device_intrinsics.h",
                                               "coppice/kernel.h",     "gpu/effects.h",
                                               "gpu/launch_block.h",   "gpu/message_record.h"};

}  // namespace

std::string library_folder(const llvm::Module& module) {
  // It is no matter which of its headers has the driver.
  constexpr std::string_view kDeviceHeaders = "sparse/device/";
  for (const llvm::Function& f : module) {
    for (const llvm::Instruction& i : llvm::instructions(f)) {
      for (const llvm::DILocation* at = i.getDebugLoc().get(); at != nullptr; at = at->getInlinedAt()) {
        const llvm::DISubprogram* program = at->getScope()->getSubprogram();
        if (!program->getName().starts_with("call_kernel<")) continue;
        const std::string path = path_of(program);
        const size_t found = path.rfind(kDeviceHeaders);
        const bool is_header_there =
            found != std::string::npos && path.find('/', found + kDeviceHeaders.size()) == std::string::npos;
        if (is_header_there) return path.substr(0, found);
      }
    }
  }
  return "";
}

bool is_library(const llvm::Instruction& i, const std::string& folder) {
  const llvm::DILocation* at = i.getDebugLoc().get();
  // The code that calls this function says what it is for.
  while (at != nullptr && at->getScope()->getSubprogram()->getName() == "atomic_add") at = at->getInlinedAt();
  return at != nullptr && is_in_library(*at, folder);
}

bool is_in_library(const llvm::DILocation& at, const std::string& folder) {
  const std::string path = path_of(&at);
  if (path.rfind(folder, 0) != 0) return false;
  // The folder may be the root of the author's own headers, too, and these may be in a gpu/ or core/ of
  // theirs.
  const llvm::StringRef name = llvm::StringRef(path).substr(folder.size());
  return name.starts_with("sparse/device/") || llvm::is_contained(kLibraryHeaders, name);
}

void inline_all(llvm::Module& module) {
  for (llvm::Function& f : module) {
    if (f.isDeclaration() || f.getName().starts_with("coppice_kernel_")) continue;
    let_inline(f);
    f.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  Analyses analyses;
  llvm::ModulePassManager passes;
  llvm::cantFail(analyses.builder.parsePassPipeline(
      passes,
      "always-inline,globaldce,function(sroa<modify-cfg>,early-cse<memssa>,simplifycfg,sroa<modify-cfg>)"));
  passes.run(module, analyses.modules);
}

}  // namespace coppice::jit
