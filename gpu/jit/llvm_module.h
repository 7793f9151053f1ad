// Steps that both back ends share: parse, link, bake constants, strip, optimise. Internal to gpu/jit.
#pragma once
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Target/TargetMachine.h>

namespace llvm {
class PassBuilder;
}

#include <functional>
#include <memory>
#include <string>

#include "gpu/jit/dump.h"
#include "gpu/jit/fatal_error.h"
#include "gpu/jit/specializer.h"

namespace coppice::jit {

// Collects LLVM's errors during one compilation; `check` throws what was collected. Also tells LLVM's handler
// for fatal errors which kernel this thread compiles.
class Diagnostics {
 public:
  Diagnostics(llvm::LLVMContext& context, std::string id);
  void check(std::string_view stage) const;
  [[noreturn]] void fail(std::string_view stage, const std::string& why) const;
  std::string& errors() { return errors_; }

 private:
  std::string id_;
  std::string errors_;
  CompilingKernel compiling_;
};

void initialize_llvm();
std::unique_ptr<llvm::Module> parse_bitcode(std::span<const std::byte> bitcode, llvm::LLVMContext& context,
                                            const Diagnostics& diagnostics);
// Reads of the request's kernel file its entry and what that leads to: a file may have many kernels, and
// reading all of them took longer than the rest of the compilation. What is left out is declared. Errors:
// kCompile, also for a variable that code would have to initialise, which is named with its place.
std::unique_ptr<llvm::Module> parse_kernel(const SpecializeRequest& request, llvm::LLVMContext& context,
                                           const Diagnostics& diagnostics);
void link_into(llvm::Module& into, std::unique_ptr<llvm::Module> from, bool only_needed,
               const Diagnostics& diagnostics);
// Makes constants of the request's constants and of what its options say.
void bake_constants(llvm::Module& module, const SpecializeRequest& request, const Diagnostics& diagnostics);
// Removes what ties bitcode to the CPU that clang was told of, and what blocks inlining across modules.
void strip_target_attributes(llvm::Module& module);
void keep_only(llvm::Module& module, std::string_view entry);
// Says whether loops and straight code may become vector code: where it pays, or nowhere, whatever pragmas
// say.
enum class Vectors { kAsTuned, kNever };
// Runs LLVM's O3 pipeline.
void optimize_o3(llvm::Module& module, llvm::TargetMachine& machine, Vectors vectors = Vectors::kAsTuned);
// Does no more than makes code bearable in a debugger: calls of the runtime inlined, constants folded,
// every line kept.
void simplify_for_stepping(llvm::Module& module, llvm::TargetMachine& machine);
// Generates code: an object, or the text of PTX. It changes the module.
std::string emit_code(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type,
                      const Diagnostics& diagnostics);
// Puts a `nop` on every line of the kernel file that calls what is inlined: without an instruction of its
// own a line cannot be stopped at. To be done last.
void give_calls_code(llvm::Module& module);
// In a program that was built with a sanitizer these run before the pipeline, and as its end; otherwise
// they do nothing.
void prepare_for_sanitizer(llvm::Module& module);
void add_sanitizer(llvm::ModulePassManager& passes, const llvm::Module& module);
// This is for GPU code, emulated or not, which no sanitizer watches.
void remove_sanitizer_attributes(llvm::Module& module);
// At the vectoriser's start, takes from loops the claim that their iterations are independent where it does
// not hold for all of their accesses (see loop_claims.cc).
void drop_false_claims(llvm::PassBuilder& builder);
// Takes pragmas off loops.
void drop_loop_hints(llvm::Module& module);
// Leaves out, for a run that only makes room, what the kernel's author stores, by whatever means, anywhere
// but in variables. What the library's own headers store stays. To be done first.
void remove_effects(llvm::Module& module, const Diagnostics& diagnostics);
// Puts, with checks, before every access by pointer that the kernel's author wrote, anywhere but in
// variables, a call that looks whether the launch's uses say so (gpu/memory_uses.h). To be done before
// linking intrinsics.
void guard_memory(llvm::Module& module, const SpecializeRequest& request);
// Misuse of handles (see misuse.cc). What a call of coppice_misuse() does is told when a module is read.
// After optimising the calls that are left are taken out; `link` gives the module anew as it was before
// optimising. Errors: kInvalidArgument, "kernel file.name: file:line: <why>", for one that the request's
// why_misused() finds to be wrong.
void declare_misuse(llvm::Module& module);
void refuse_misuse(llvm::Module& module, const SpecializeRequest& request,
                   const std::function<std::unique_ptr<llvm::Module>()>& link);
// These prepare code for the emulated GPU: before linking its intrinsics, and after optimising (see
// simt_passes.cc). Errors: kCompile for an access to memory that cannot be instrumented.
void prepare_for_simt(llvm::Module& module);
void instrument_for_simt(llvm::Module& module, std::string_view entry, const Diagnostics& diagnostics);
// Returns whether the kernel was defined by COPPICE_KERNEL_FAST_MATH (sparse/device/define_kernel.h). To
// be asked before keep_only().
bool has_fast_math(const llvm::Module& module, std::string_view entry);
// Adds all fast-math flags but those that declare NaNs and infinities impossible: a kernel may test for
// them. It is for the kernel's own code, before a library is linked whose algorithms need the order of
// their sums.
void add_fast_math_flags(llvm::Module& module);
// Makes fused operations of sums of products that the source lets be contracted: for CPUs, after
// optimising.
void fuse_products(llvm::Module& module);
// Flushes denormals, for GPUs, on all of the module's code: a function with another mode would not be
// inlined.
void flush_denormals(llvm::Module& module);
// On GPUs, after optimising, divisions and square roots of floats that have the flags become the
// approximate instructions, and the rest of the flags go. LLVM's own "unsafe-fp-math" would make doubles
// approximate, and libdevice.
void use_fast_gpu_instructions(llvm::Module& module);
// Reduces line tables to what becomes PTX's .loc and .file. Anything more makes the text say "debug", and
// ptxas optimise less.
void keep_line_directives(llvm::Module& module);
// Returns the target's device intrinsics (gpu/device/*.device.cc).
std::span<const std::byte> cpu_intrinsics_bitcode();
std::span<const std::byte> simt_intrinsics_bitcode();
std::span<const std::byte> nvptx_intrinsics_bitcode();
std::span<const std::byte> libdevice_bitcode();  // empty in a build without a CUDA toolkit
// Writes what COPPICE_DUMP asks for (see dump.h): nothing when the variable is unset.
void dump_module(const std::string& stem, std::string_view suffix, const llvm::Module& module);
// Writes assembly as `<stem>.s`; leaves the module as it is.
void dump_assembly(const std::string& stem, const llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace coppice::jit
