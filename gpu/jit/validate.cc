// Checks of whole modules before code generation (see validate.h).
#include "gpu/jit/validate.h"

#include <fmt/format.h>
#include <llvm/ADT/SCCIterator.h>
#include <llvm/Analysis/CallGraph.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Support/AtomicOrdering.h>

#include <algorithm>
#include <string_view>

#include "core/error.h"
#include "gpu/codegen_options.h"
#include "gpu/jit/gpu_intrinsics.h"
#include "gpu/jit/llvm_module.h"

namespace coppice::jit {
namespace {

struct Feature {
  std::string_view prefix;  // of the intrinsic's name after "llvm.x86."
  std::string_view needs;   // features of LLVM's x86 back end
};
// The first match counts. AVX-512 is taken as a whole: which of its parts an intrinsic needs is not in its
// name.
constexpr Feature kX86Features[] = {
    {"sse41.", "+sse4.1"},   {"sse42.", "+sse4.2"},  {"sse4a.", "+sse4a"},     {"ssse3.", "+ssse3"},
    {"sse3.", "+sse3"},      {"sse2.", "+sse2"},     {"sse.", "+sse"},         {"avx2.", "+avx2"},
    {"avx.", "+avx"},        {"bmi.", "+bmi,+bmi2"}, {"pclmulqdq", "+pclmul"}, {"aesni.", "+aes"},
    {"vcvtps2ph.", "+f16c"}, {"rdtsc", "+sse2"},
};

class Validator {
 public:
  Validator(llvm::Module& module, std::string id, std::string target)
      : module_(module), id_(std::move(id)), target_(std::move(target)) {}

  void check_globals(bool is_gpu) {
    if (!module_.getModuleInlineAsm().empty())
      refuse_module("assembly outside of functions", "write it as C++");
    for (const llvm::GlobalVariable& global : module_.globals()) check_global(global, is_gpu);
    if (is_gpu && (!module_.alias_empty() || !module_.ifunc_empty()))
      refuse_module("an alias or an indirect function", "define the function under one name");
  }

  // Refuses what a GPU cannot do and no device does: with the same words on each. Only optimised code
  // shows it.
  void check_calls() const {
    for (const llvm::Function& function : module_) {
      for (const llvm::Instruction& i : llvm::instructions(function)) {
        const auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
        if (call != nullptr && call->isIndirectCall())
          refuse_everywhere(place_of(i), "a call of a function that only the run knows", "use a switch");
      }
    }
    refuse_recursion();
  }

  void check_function_for_x86(const llvm::Function& function, const llvm::TargetMachine& machine, bool simt) {
    if (function.hasGC()) refuse(function, "garbage collection", "remove it");
    for (const llvm::Instruction& i : llvm::instructions(function)) {
      check_types(i, simt);
      if (simt) check_as_on_a_gpu(i);
      if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&i)) check_x86_call(*call, machine);
    }
  }

  void check_function_for_ptx(const llvm::Function& function, int sm) {
    if (function.hasGC() || function.hasPersonalityFn())
      refuse(function, "exceptions or garbage collection", "remove them");
    for (const llvm::Instruction& i : llvm::instructions(function)) {
      check_types(i, true);
      check_ptx_instruction(i);
      check_atomic(i);
      if (const auto* call = llvm::dyn_cast<llvm::CallBase>(&i)) check_ptx_call(*call, sm);
    }
  }

 private:
  [[noreturn]] void refuse_at(const std::string& place, std::string_view what, std::string_view hint) const {
    throw Error(ErrorCode::kCompile,
                fmt::format("kernel {}: {}: {} is not supported on {}; {}", id_, place, what, target_, hint));
  }
  [[noreturn]] void refuse_everywhere(const std::string& place, std::string_view what,
                                      std::string_view hint) const {
    throw Error(ErrorCode::kCompile,
                fmt::format("kernel {}: {}: {} is supported on no device; {}", id_, place, what, hint));
  }
  [[noreturn]] void refuse_module(std::string_view what, std::string_view hint) const {
    refuse_at(module_.getSourceFileName().empty() ? "kernel file" : module_.getSourceFileName(), what, hint);
  }
  static std::string place_of(const llvm::Function& function) {
    const llvm::DISubprogram* source = function.getSubprogram();
    if (source == nullptr) return llvm::demangle(function.getName().str());
    return fmt::format("{} at {}:{}", source->getName().str(), source->getFilename().str(),
                       source->getLine());
  }
  // Returns where the user wrote it, also when it was inlined.
  static std::string place_of(const llvm::Instruction& i) {
    const llvm::DILocation* at = i.getDebugLoc().get();
    if (at == nullptr || at->getLine() == 0) return place_of(*i.getFunction());
    const llvm::DISubprogram* source = at->getScope()->getSubprogram();
    return fmt::format("{} at {}:{}", source->getName().str(), at->getFilename().str(), at->getLine());
  }
  template <class Code>
  [[noreturn]] void refuse(const Code& code, std::string_view what, std::string_view hint) const {
    refuse_at(place_of(code), what, hint);
  }

  // Returns the first user of a constant or a global that is an instruction: an error can point at it.
  static const llvm::Instruction* first_user(const llvm::Value& value, int depth = 8) {
    for (const llvm::User* user : value.users()) {
      if (const auto* i = llvm::dyn_cast<llvm::Instruction>(user)) return i;
      if (depth == 0 || llvm::isa<llvm::GlobalValue>(user)) continue;
      if (const llvm::Instruction* i = first_user(*user, depth - 1)) return i;
    }
    return nullptr;
  }
  void check_global(const llvm::GlobalVariable& global, bool is_gpu) const {
    const std::string name = llvm::demangle(global.getName().str());
    auto refuse_use = [&](const std::string& what, std::string_view hint) {
      if (const llvm::Instruction* i = first_user(global)) refuse(*i, what, hint);
      refuse_module(what, hint);
    };
    if (global.isThreadLocal()) refuse_use("the thread-local variable " + name, "pass it as an argument");
    constexpr unsigned kShared = 3;  // sized by the launch
    if (is_gpu && global.isDeclaration() && global.getAddressSpace() != kShared && !global.use_empty() &&
        !global.getName().starts_with("llvm."))
      refuse_use("the variable " + name + ", which nobody defines,", "define it in the kernel file");
  }

  void refuse_recursion() const {
    llvm::CallGraph graph(module_);
    for (auto group = llvm::scc_begin(&graph); !group.isAtEnd(); ++group) {
      if (!group.hasCycle()) continue;
      for (const llvm::CallGraphNode* node : *group) {
        if (const llvm::Function* f = node->getFunction(); f != nullptr && !f->isDeclaration())
          refuse_everywhere(place_of(*f), "recursion", "a GPU thread has next to no stack: use a loop");
      }
    }
  }

  // Returns why no back end of ours has registers or library functions for a type; null where it has.
  static const char* why_no_type(const llvm::Type& type, bool is_gpu) {
    const llvm::Type& scalar = *type.getScalarType();
    if (type.isScalableTy() || scalar.isX86_AMXTy() || scalar.isTargetExtTy()) return "this vector type";
    if (!is_gpu) return nullptr;
    if (scalar.isX86_FP80Ty()) return "long double";
    if (scalar.isFP128Ty() || scalar.isPPC_FP128Ty()) return "a float of 128 bits";
    if (scalar.isX86_MMXTy()) return "an MMX register";
    return nullptr;
  }
  void check_types(const llvm::Instruction& i, bool is_gpu) const {
    auto check = [&](const llvm::Type& type) {
      if (const char* what = why_no_type(type, is_gpu)) refuse(i, what, "use float or double");
    };
    check(*i.getType());
    for (const llvm::Use& operand : i.operands()) check(*operand->getType());
  }

  void check_ptx_instruction(const llvm::Instruction& i) const {
    switch (i.getOpcode()) {
      case llvm::Instruction::IndirectBr:
      case llvm::Instruction::CallBr:
        refuse(i, "a computed goto", "use a switch");
      case llvm::Instruction::Invoke:
      case llvm::Instruction::LandingPad:
      case llvm::Instruction::Resume:
        refuse(i, "an exception", "return a value");
      case llvm::Instruction::VAArg:
        refuse(i, "an argument of a variadic function", "use a template");
      case llvm::Instruction::Alloca:
        if (!llvm::cast<llvm::AllocaInst>(i).isStaticAlloca())
          refuse(i, "stack memory of a size that only the run knows", "use an array of constant size");
        return;
      case llvm::Instruction::FPToUI:
      case llvm::Instruction::FPToSI:
      case llvm::Instruction::UIToFP:
      case llvm::Instruction::SIToFP:
        if (std::max(i.getType()->getScalarSizeInBits(), i.getOperand(0)->getType()->getScalarSizeInBits()) >
            64)
          refuse(i, "a conversion between a float and an integer of more than 64 bits",
                 "convert by way of 64 bits");
        return;
      default:
        return;
    }
  }

  // LLVM 19 aborts on ordered loads, stores and fences, and drops the order of read-modify-writes without a
  // word.
  void check_atomic(const llvm::Instruction& i) const {
    static constexpr char kHint[] = "use a relaxed one, or the ordered ones of gpu/device_intrinsics.h";
    auto is_ordered = [](llvm::AtomicOrdering order) {
      return llvm::isStrongerThan(order, llvm::AtomicOrdering::Monotonic);
    };
    const llvm::Type* type = nullptr;
    bool ordered = false;
    if (llvm::isa<llvm::FenceInst>(i)) {
      refuse(i, "a fence", "use the ordered atomics of gpu/device_intrinsics.h");
    } else if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&i); load && load->isAtomic()) {
      type = load->getType(), ordered = is_ordered(load->getOrdering());
    } else if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&i); store && store->isAtomic()) {
      type = store->getValueOperand()->getType(), ordered = is_ordered(store->getOrdering());
    } else if (const auto* update = llvm::dyn_cast<llvm::AtomicRMWInst>(&i)) {
      type = update->getType(), ordered = is_ordered(update->getOrdering());
    } else if (const auto* swap = llvm::dyn_cast<llvm::AtomicCmpXchgInst>(&i)) {
      type = swap->getNewValOperand()->getType(), ordered = is_ordered(swap->getMergedOrdering());
    }
    if (type == nullptr) return;
    if (ordered) refuse(i, "an atomic with an order other than relaxed", kHint);
    if (module_.getDataLayout().getTypeStoreSize(const_cast<llvm::Type*>(type)) > 8 || type->isVectorTy())
      refuse(i, "an atomic of more than 64 bits", "use several, or a lock");
  }

  // The emulated GPU could run all of this, but is there to tell what a GPU cannot.
  void check_as_on_a_gpu(const llvm::Instruction& i) const {
    check_ptx_instruction(i);
    check_atomic(i);
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
    if (call == nullptr) return;
    if (call->isInlineAsm()) {
      const llvm::StringRef code = llvm::cast<llvm::InlineAsm>(call->getCalledOperand())->getAsmString();
      if (!code.empty() && code != "nop") refuse(i, "assembly of another processor", "write it as C++");
    } else if (const llvm::Function* callee = call->getCalledFunction();
               callee != nullptr && callee->getName().starts_with("llvm.x86.")) {
      refuse(i, "the intrinsic " + callee->getName().str(), "write it as C++");
    }
  }

  void check_x86_call(const llvm::CallBase& call, const llvm::TargetMachine& machine) const {
    const llvm::Function* callee = call.getCalledFunction();
    if (callee == nullptr || !callee->isIntrinsic()) return;
    const std::string name = callee->getName().str();
    const llvm::Intrinsic::ID id = callee->getIntrinsicID();
    if (id == llvm::Intrinsic::read_register || id == llvm::Intrinsic::write_register ||
        id == llvm::Intrinsic::read_volatile_register)
      refuse(call, "a named register", "use an ordinary variable");
    if (id == llvm::Intrinsic::not_intrinsic ||
        (llvm::Function::isTargetIntrinsic(id) && !name.starts_with("llvm.x86.")))
      refuse(call, "the intrinsic " + name, "write it as C++");
    if (!name.starts_with("llvm.x86.")) return;
    const std::string needs = x86_features(std::string_view(name).substr(9));
    if (needs.empty())
      refuse(call, "the intrinsic " + name, "write it as C++, which is compiled for the CPU at hand");
    if (!machine.getMCSubtargetInfo()->checkFeatures(needs))
      refuse(call, fmt::format("the intrinsic {}, which needs {},", name, needs),
             "write it as C++, which is compiled for the CPU at hand");
  }
  static std::string x86_features(std::string_view name) {
    for (const Feature& feature : kX86Features) {
      if (name.starts_with(feature.prefix)) return std::string(feature.needs);
    }
    if (!name.starts_with("avx512.")) return "";
    std::string needs = "+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512cd";
    for (const char* part : {"vnni", "vbmi2", "vbmi", "ifma", "bitalg", "vp2intersect", "bf16", "fp16"}) {
      if (name.find(part) != name.npos) needs += fmt::format(",+avx512{}", part);
    }
    if (name.find("vpdpbusd") != name.npos || name.find("vpdpwssd") != name.npos) needs += ",+avx512vnni";
    if (name.find("vpmadd52") != name.npos) needs += ",+avx512ifma";
    return needs;
  }

  [[noreturn]] void refuse_missing(const llvm::CallBase& call, std::string_view name) const {
    constexpr std::string_view kMath = "__nv_", kFastMath = "__nv_fast_";
    if (!name.starts_with(kMath))
      refuse(call, fmt::format("{}, which has no GPU version,", llvm::demangle(std::string(name))),
             "define it in the kernel file");
    name.remove_prefix(name.starts_with(kFastMath) ? kFastMath.size() : kMath.size());
    refuse(call, fmt::format("the math function {} without NVIDIA's libdevice", name),
           "configure Coppice with -DCOPPICE_LIBDEVICE=<CUDA toolkit>/nvvm/libdevice/libdevice.10.bc");
  }

  void check_ptx_call(const llvm::CallBase& call, int sm) const {
    if (call.isInlineAsm()) return check_ptx_assembly(call);
    const llvm::Function* callee = call.getCalledFunction();
    if (callee == nullptr) return;
    const std::string name = callee->getName().str();
    if (!callee->isIntrinsic()) {
      if (callee->isDeclaration()) refuse_missing(call, name);
      return;
    }
    const llvm::Intrinsic::ID id = callee->getIntrinsicID();
    if (id == llvm::Intrinsic::stacksave || id == llvm::Intrinsic::stackrestore)
      refuse(call, "stack memory of a size that only the run knows", "use an array of constant size");
    if (!ptx_has_intrinsic(id, name, sm)) refuse(call, "the intrinsic " + name, "write it as C++");
  }

  // PTX has no `x` or `m` operands. LLVM reports some of this and goes on with PTX that lacks the
  // instruction.
  void check_ptx_assembly(const llvm::CallBase& call) const {
    const auto* assembly = llvm::cast<llvm::InlineAsm>(call.getCalledOperand());
    if (assembly->getAsmString().empty()) return;  // a barrier to the compiler
    static constexpr char kWhat[] = "assembly of another processor";
    static constexpr char kHint[] = "write it as C++";
    for (const llvm::InlineAsm::ConstraintInfo& operand : assembly->ParseConstraints()) {
      for (const std::string& code : operand.Codes) {
        const bool is_number =
            std::all_of(code.begin(), code.end(), [](char c) { return c >= '0' && c <= '9'; });
        if (operand.Type == llvm::InlineAsm::isClobber
                ? code != "{memory}"
                : !is_number && std::string_view("bhrlqfdni").find(code) == std::string_view::npos)
          refuse(call, kWhat, kHint);
      }
    }
  }

  llvm::Module& module_;
  const std::string id_;
  const std::string target_;
};

}  // namespace

void verify_module(const llvm::Module& module, const char* stage, const Diagnostics& diagnostics) {
  std::string broken;
  llvm::raw_string_ostream out(broken);
  bool has_broken_debug_info = false;  // is no reason to refuse code
  if (llvm::verifyModule(module, &out, &has_broken_debug_info)) diagnostics.fail(stage, out.str());
}

void validate_for_x86(llvm::Module& module, const llvm::TargetMachine& machine, const std::string& id,
                      const CodegenOptions& options) {
  const bool simt = options.simt;
  Validator validator(module, id,
                      simt ? "the emulated GPU" : fmt::format("x86-64 ({})", machine.getTargetCPU().str()));
  validator.check_globals(false);
  if (!options.step) validator.check_calls();
  for (const llvm::Function& function : module) validator.check_function_for_x86(function, machine, simt);
}

void validate_for_ptx(llvm::Module& module, int sm, const std::string& id) {
  Validator validator(module, id, fmt::format("sm_{}", sm));
  validator.check_globals(true);
  validator.check_calls();
  for (const llvm::Function& function : module) validator.check_function_for_ptx(function, sm);
}

}  // namespace coppice::jit
