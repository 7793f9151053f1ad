// Puts kernels together of their parts (see kernel_assembly.h).
#include "tests/gpu/jit/kernel_assembly.h"

#include <fmt/format.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>

#include "gpu/jit/inactive_cells.h"
#include "gpu/jit/llvm_module.h"

namespace coppice::jit {
namespace {

// The part of COPPICE_BITCODE_PASSES that sees the body in its loop.
constexpr char kPasses[] = "cgscc(inline,function(sroa,early-cse,simplifycfg)),globaldce";

std::unique_ptr<llvm::Module> parse_function(const KernelBitcode& file, const std::string& function,
                                             llvm::LLVMContext& context, const Diagnostics& diagnostics) {
  SpecializeRequest request;
  request.file = &file, request.entry = function;
  return parse_kernel(request, context, diagnostics);
}

void forget_used(llvm::Module& module) {
  for (const char* list : {"llvm.used", "llvm.compiler.used"}) {
    if (llvm::GlobalVariable* g = module.getNamedGlobal(list)) g->eraseFromParent();
  }
}

// What tells that a kernel was defined by COPPICE_KERNEL_FAST_MATH.
void mark_fast_math(llvm::Module& module, const std::string& mark) {
  llvm::Type* byte = llvm::Type::getInt8Ty(module.getContext());
  new llvm::GlobalVariable(module, byte, true, llvm::GlobalValue::ExternalLinkage, llvm::ConstantInt::get(byte, 1),
                           mark);
}

// The function `part` of a loop's file with the body that it calls; the function is the kernel's entry then.
std::unique_ptr<llvm::Module> join(const KernelBitcode& loops, const std::string& part, int shape,
                                   const KernelBitcode& bodies, const std::string& name, llvm::LLVMContext& context,
                                   const Diagnostics& diagnostics) {
  auto module = parse_function(loops, fmt::format("coppice_kernel_{}_{}", part, shape), context, diagnostics);
  auto body = parse_function(bodies, name, context, diagnostics);
  forget_used(*module), forget_used(*body);
  llvm::Function* declared = module->getFunction(fmt::format("fuzz_body_{}", shape));
  llvm::Function* defined = body->getFunction(name);
  if (declared != nullptr && declared->getFunctionType() != defined->getFunctionType())
    diagnostics.fail("linking", "the body has other arguments than its loop");
  if (declared != nullptr) declared->setName(name);
  module->getFunction(fmt::format("coppice_kernel_{}_{}", part, shape))->setName("coppice_kernel_" + name);
  const std::string mark = "coppice_fast_math_" + name;
  const bool fast = body->getNamedGlobal(mark) != nullptr;
  link_into(*module, std::move(body), true, diagnostics);
  if (fast) mark_fast_math(*module, mark);
  if (llvm::Function* inner = module->getFunction(name)) inner->setLinkage(llvm::GlobalValue::InternalLinkage);
  return module;
}

// As opt makes it for the bitcode's own target.
llvm::TargetMachine& bitcode_machine() {
  thread_local const std::unique_ptr<llvm::TargetMachine> machine = [] {
    llvm::orc::JITTargetMachineBuilder builder(llvm::Triple("x86_64-pc-linux-gnu"));
    return llvm::cantFail(builder.createTargetMachine());
  }();
  return *machine;
}

void run_passes(llvm::Module& module, llvm::StringRef pipeline) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&bitcode_machine());
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::ModulePassManager passes;
  llvm::cantFail(builder.parsePassPipeline(passes, pipeline));
  passes.run(module, modules);
}

std::string bitcode_of(const llvm::Module& module) {
  std::string bytes;
  llvm::raw_string_ostream out(bytes);
  llvm::WriteBitcodeToFile(module, out);
  return bytes;
}

}  // namespace

std::string extract_function(const KernelBitcode& file, const std::string& function) {
  llvm::LLVMContext context;
  Diagnostics diagnostics(context, function);
  const auto module = parse_function(file, function, context, diagnostics);
  forget_used(*module);
  for (llvm::Function& f : *module) {
    const bool is_other = !f.isDeclaration() && f.getName() != function && f.hasExternalLinkage();
    if (is_other) f.setLinkage(llvm::GlobalValue::LinkOnceODRLinkage);
  }
  run_passes(*module, "globaldce");
  return bitcode_of(*module);
}

AssembledKernel assemble_kernel(const KernelParts& loops, int shape, const KernelParts& bodies,
                                const std::string& name) {
  initialize_llvm();
  llvm::LLVMContext context;
  Diagnostics diagnostics(context, name);
  AssembledKernel kernel;
  const auto cell = join(loops.raw, "cell", shape, bodies.raw, name, context, diagnostics);
  const auto why = why_active_only(*cell);
  const auto own = why.find(name);
  kernel.active_only = own == why.end() || !own->second.empty();

  const auto module = join(loops.shipped, "loop", shape, bodies.shipped, name, context, diagnostics);
  run_passes(*module, kPasses);
  kernel.bitcode = bitcode_of(*module);
  return kernel;
}

}  // namespace coppice::jit
