// Functions that the library's headers mark (see marked_functions.h).
#include "gpu/jit/marked_functions.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>

namespace coppice::jit {
namespace {

constexpr char kPasses[] =
    "always-inline,function(sroa<modify-cfg>,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,"
    "loop-simplify,lcssa,loop-mssa(loop-rotate),loop(indvars,loop-unroll-full),sroa<modify-cfg>,early-cse<"
    "memssa>,"
    "instcombine<no-verify-fixpoint>,simplifycfg,sroa<modify-cfg>,early-cse<memssa>)";

}  // namespace

Analyses::Analyses() {
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
}

bool is_marked(const llvm::Function& f, llvm::StringRef with) {
  llvm::SmallVector<llvm::StringRef> marks;
  f.getFnAttribute("llvm.assume").getValueAsString().split(marks, ',');
  return llvm::is_contained(marks, with);
}

bool is_result_of_marked(const llvm::Value& object, llvm::StringRef with) {
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&object);
  return call != nullptr && call->getCalledFunction() != nullptr &&
         is_marked(*call->getCalledFunction(), with);
}

bool is_own_object(const llvm::Value& object) {
  if (const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(&object)) return global->isConstant();
  if (const auto* argument = llvm::dyn_cast<llvm::Argument>(&object))
    return argument->hasByValAttr() || argument->getDereferenceableBytes() > 0;
  return llvm::isa<llvm::AllocaInst>(object);
}

namespace {
bool is_call_with_prefix(const llvm::Instruction& i, std::initializer_list<llvm::StringRef> prefixes) {
  const auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
  const llvm::Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
  return callee != nullptr && llvm::any_of(prefixes, [callee](llvm::StringRef prefix) {
           return callee->getName().starts_with(prefix);
         });
}
}  // namespace

bool is_device_atomic(const llvm::Instruction& i) {
  return is_call_with_prefix(
      i, {"coppice_fetch_", "coppice_exchange_", "coppice_compare_exchange_", "coppice_store_release_"});
}
bool is_device_load(const llvm::Instruction& i) { return is_call_with_prefix(i, {"coppice_load_"}); }

void let_inline(llvm::Function& f, bool stays) {
  for (const auto kind :
       {llvm::Attribute::NoInline, llvm::Attribute::OptimizeNone, llvm::Attribute::AlwaysInline})
    f.removeFnAttr(kind);
  f.addFnAttr(stays ? llvm::Attribute::NoInline : llvm::Attribute::AlwaysInline);
  for (llvm::Instruction& i : llvm::instructions(f))
    if (auto* call = llvm::dyn_cast<llvm::CallBase>(&i)) call->removeFnAttr(llvm::Attribute::NoInline);
}

void make_opaque(llvm::Module& module, const std::function<bool(const llvm::Function&)>& is_opaque) {
  for (llvm::Function& f : module) {
    if (f.isDeclaration() || !is_opaque(f)) continue;
    f.deleteBody();
    f.setComdat(nullptr);
  }
}

namespace {
bool collect(llvm::Function& f, Functions& reached, Functions& path) {
  if (path.count(&f) != 0) return false;
  if (!reached.insert(&f).second) return true;
  path.insert(&f);
  bool ends = true;
  for (llvm::Instruction& i : llvm::instructions(f)) {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
    llvm::Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
    if (callee != nullptr && !callee->isDeclaration()) ends &= collect(*callee, reached, path);
  }
  path.erase(&f);
  return ends;
}
}  // namespace

bool collect_reached(llvm::Function& f, Functions& reached) {
  Functions path;
  return collect(f, reached, path);
}

void inline_and_simplify(llvm::Module& module, const Functions& kept, const Functions& inlined,
                         Analyses& analyses) {
  for (const char* list : {"llvm.used", "llvm.compiler.used"}) {
    if (llvm::GlobalVariable* g = module.getNamedGlobal(list)) g->eraseFromParent();
  }
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    if (kept.count(&f) == 0 && inlined.count(&f) == 0) {
      f.deleteBody();
      f.setComdat(nullptr);
      continue;
    }
    let_inline(f, kept.count(&f) != 0);
    // Inactive cells may have values that these flags rule out.
    for (llvm::Instruction& i : llvm::instructions(f)) i.dropPoisonGeneratingFlags();
  }
  llvm::ModulePassManager passes;
  llvm::cantFail(analyses.builder.parsePassPipeline(passes, kPasses));
  passes.run(module, analyses.modules);
}

}  // namespace coppice::jit
