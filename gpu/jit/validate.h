// Refuses what LLVM's back ends would abort the process on, or compile to wrong code without a word.
//
// Most of it coppice-kernelgen refuses before (kernel_rules.h); this also sees what
// the optimiser makes of the code.
//
// The lists come from LLVM 19.1: what its x86 and NVPTX back ends select was tried input by input.
// For intrinsics the GPU's list says what is allowed, so that one that nobody tried is an error
// and not the end of the program.
#pragma once
#include <string>

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace coppice {
struct CodegenOptions;
}  // namespace coppice

namespace coppice::jit {

class Diagnostics;

// Throws what LLVM's verifier finds (kCompile, "kernel <id>: <stage> failed: ..."):
// malformed code may crash any pass.
void verify_module(const llvm::Module& module, const char* stage, const Diagnostics& diagnostics);

// Call after optimising, so that what was optimised away does not count, and while debug information is
// there. Errors: kCompile, "kernel file.name: <function> at file:line: <what> is not supported on <target>;
// <what to do>". Recursion, and calls of functions that only the run knows, are refused with the same words
// on every device. Code that is not optimised (`options.step`) may have both, because what would become a
// loop or a direct call did not. With `options.simt`, code for the emulated GPU: whatever does not depend on
// a GPU's own libraries and instructions is refused there as it is for PTX.
void validate_for_x86(llvm::Module& module, const llvm::TargetMachine& machine, const std::string& id,
                      const CodegenOptions& options);
void validate_for_ptx(llvm::Module& module, int sm, const std::string& id);

}  // namespace coppice::jit
