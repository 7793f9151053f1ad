// Puts kernels together of their parts (see kernel_assembly.h).
#include "tests/gpu/jit/kernel_assembly.h"

#include <fmt/format.h>
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>

#include "gpu/jit/inactive_cells.h"
#include "gpu/jit/kernel_effects.h"
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

void make_callers_internal(llvm::Function& callee) {
  for (llvm::User* user : callee.users()) {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(user);
    llvm::Function* caller = call == nullptr ? nullptr : const_cast<llvm::Function*>(call->getFunction());
    if (caller == nullptr || caller->hasInternalLinkage()) continue;
    caller->setLinkage(llvm::GlobalValue::InternalLinkage);
    caller->setComdat(nullptr);
    make_callers_internal(*caller);
  }
}

// Adds a loop, or the call for one cell, around a plan's body; it becomes the entry of the plan's kernel.
void add_part(llvm::Module& module, llvm::Linker& linker, const KernelBitcode& part,
              const std::string& function, const KernelPlan& plan, const Diagnostics& diagnostics) {
  auto loop = parse_bitcode(part.bitcode, module.getContext(), diagnostics);
  if (llvm::NamedMDNode* compilers = loop->getNamedMetadata("llvm.ident")) compilers->eraseFromParent();
  llvm::Function* const body = loop->getFunction(fmt::format("fuzz_body_{}", plan.shape));
  // Two kernels of one shape each have their own of what calls the body. All else they share, as in one file:
  // the inliner treats what has one caller otherwise.
  if (body != nullptr) make_callers_internal(*body);
  llvm::Function* entry = loop->getFunction(function);
  entry->setLinkage(llvm::GlobalValue::ExternalLinkage);
  entry->setName("coppice_kernel_" + plan.body);
  if (body != nullptr) {
    const llvm::Function* defined = module.getFunction(plan.body);
    if (defined == nullptr || body->getFunctionType() != defined->getFunctionType())
      diagnostics.fail("linking", "the body has other arguments than its loop");
    body->setName(plan.body);
  }
  if (linker.linkInModule(std::move(loop))) diagnostics.fail("linking", "the modules do not fit together");
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
  initialize_llvm();
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

AssembledKernels assemble_kernels(std::span<const KernelPlan> plans, const KernelBitcode& raw,
                                  const KernelBitcode& shipped) {
  initialize_llvm();
  llvm::LLVMContext context;
  Diagnostics diagnostics(context, "batch");
  AssembledKernels kernels;
  const auto cells = parse_bitcode(raw.bitcode, context, diagnostics);
  const auto loops = parse_bitcode(shipped.bitcode, context, diagnostics);
  llvm::Linker cell_linker(*cells), loop_linker(*loops);  // a new one would look at all that is there already
  for (const KernelPlan& plan : plans) {
    add_part(*cells, cell_linker, plan.parts.cell, fmt::format("coppice_kernel_cell_{}", plan.shape), plan,
             diagnostics);
    add_part(*loops, loop_linker, plan.parts.loop, fmt::format("coppice_kernel_loop_{}", plan.shape), plan,
             diagnostics);
  }
  std::set<std::string> names;
  std::map<std::string, std::string> bodies;
  for (const KernelPlan& plan : plans) names.insert(plan.body), bodies[plan.body] = plan.body;
  const auto why = why_active_only(*cells, names);
  const auto effects = kernel_effects(*cells, bodies);
  for (const KernelPlan& plan : plans) {
    const auto own = why.find(plan.body);
    kernels.told.push_back({own == why.end() || !own->second.empty(), effects.at(plan.body)});
    loops->getFunction(plan.body)->setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  run_passes(*loops, kPasses);
  kernels.bitcode = bitcode_of(*loops);
  return kernels;
}

}  // namespace coppice::jit
