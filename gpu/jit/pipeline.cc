// The passes that kernels go through (see llvm_module.h).
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/Scalar/SCCP.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include "gpu/jit/gpu_addresses.h"
#include "gpu/jit/llvm_module.h"
#include "gpu/jit/sanitizer.h"

namespace coppice::jit {
namespace {

// ThreadSanitizer does not look at accesses of more than 16 bytes.
llvm::PipelineTuningOptions tuned(Vectors vectors) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization =
      vectors == Vectors::kAsTuned && kSanitizer != Sanitizer::kThread;
  return tuning;
}

// Holds LLVM's pass builder with all analyses registered.
struct Pipeline {
  Pipeline(llvm::Module& module, llvm::TargetMachine& machine, Vectors vectors = Vectors::kAsTuned)
      : builder(&machine, tuned(vectors)),  // registers the target's own passes too (NVVMReflect)
        library(llvm::Triple(module.getTargetTriple())) {
    functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(sccs);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, sccs, modules);
  }
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  llvm::TargetLibraryInfoImpl library;
};

}  // namespace

void drop_loop_hints(llvm::Module& module) {
  for (llvm::Function& f : module) {
    for (llvm::BasicBlock& block : f) {
      if (llvm::Instruction* end = block.getTerminator())
        end->setMetadata(llvm::LLVMContext::MD_loop, nullptr);
    }
  }
}

void optimize_o3(llvm::Module& module, llvm::TargetMachine& machine, Vectors vectors) {
  if (vectors == Vectors::kNever) drop_loop_hints(module);
  Pipeline pipeline(module, machine, vectors);
  drop_false_claims(pipeline.builder);
  if (machine.getTargetTriple().isX86()) {  // GPUs have no such library
    pipeline.builder.registerOptimizerLastEPCallback(
        [&](llvm::ModulePassManager& passes, llvm::OptimizationLevel) { add_sanitizer(passes, module); });
  }
  if (machine.getTargetTriple().isNVPTX()) infer_address_spaces(pipeline.builder);
  pipeline.builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, pipeline.modules);
}

void simplify_for_stepping(llvm::Module& module, llvm::TargetMachine& machine) {
  Pipeline pipeline(module, machine);
  llvm::FunctionPassManager functions;
  functions.addPass(llvm::SROAPass(llvm::SROAOptions::PreserveCFG));
  functions.addPass(llvm::SCCPPass());  // reads the baked layout
  functions.addPass(llvm::SimplifyCFGPass());
  llvm::ModulePassManager passes;
  passes.addPass(llvm::AlwaysInlinerPass());
  passes.addPass(llvm::GlobalDCEPass());
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(functions)));
  add_sanitizer(passes, module);
  passes.run(module, pipeline.modules);
  give_calls_code(module);
}

}  // namespace coppice::jit
