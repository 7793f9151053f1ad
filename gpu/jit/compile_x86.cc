// The x86-64 back end: a specialized kernel as an ELF object in memory, for the cpu device or the emulated
// GPU.
#include <fmt/format.h>
#include <llvm-c/Core.h>
#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Host.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "core/process_end.h"
#include "gpu/jit/build_identity.h"
#include "gpu/jit/llvm_module.h"
#include "gpu/jit/validate.h"

namespace coppice::jit {
namespace {

std::unique_ptr<llvm::TargetMachine> host_machine(const CodegenOptions& options,
                                                  const Diagnostics& diagnostics) {
  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder) diagnostics.fail("detecting the CPU", llvm::toString(builder.takeError()));
  builder->setCodeGenOptLevel(options.step ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Aggressive);
  builder->setRelocationModel(llvm::Reloc::PIC_);
  builder->getOptions().AllowFPOpFusion = llvm::FPOpFusion::Standard;  // where the source's flags allow it
  auto machine = builder->createTargetMachine();
  if (!machine) diagnostics.fail("creating the target", llvm::toString(machine.takeError()));
  return std::move(*machine);
}

// A debugger that steps into an intrinsic shows nothing of use: it becomes part of the line that calls it.
void inline_always(llvm::Module& intrinsics) {
  llvm::StripDebugInfo(intrinsics);
  for (llvm::Function& f : intrinsics) {
    if (!f.isDeclaration()) f.addFnAttr(llvm::Attribute::AlwaysInline);
  }
}

// Returns the kernel with all that it is linked with.
std::unique_ptr<llvm::Module> link_kernel(const SpecializeRequest& request,
                                          const llvm::TargetMachine& machine, llvm::LLVMContext& context,
                                          const Diagnostics& diagnostics) {
  auto module = parse_kernel(request, context, diagnostics);
  if (request.makes_room) remove_effects(*module, diagnostics);
  if (request.guards_memory) guard_memory(*module, request);
  module->setTargetTriple(machine.getTargetTriple().str());
  module->setDataLayout(machine.createDataLayout());
  const bool simt = request.options.simt;
  if (simt) prepare_for_simt(*module);
  auto intrinsics =
      parse_bitcode(simt ? simt_intrinsics_bitcode() : cpu_intrinsics_bitcode(), context, diagnostics);
  if (request.options.step) inline_always(*intrinsics);
  link_into(*module, std::move(intrinsics), true, diagnostics);
  bake_constants(*module, request, diagnostics);
  strip_target_attributes(*module);
  return module;
}

// Sums of <5 x double> and of i77, and a function of the math library: types that no register has.
void add_odd_function(llvm::Module& module) {
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> builder(context);
  llvm::Type* const real = builder.getDoubleTy();
  auto* const f = llvm::Function::Create(llvm::FunctionType::get(real, {builder.getPtrTy()}, false),
                                         llvm::Function::ExternalLinkage, "odd", module);
  builder.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
  llvm::Type* const odd[] = {llvm::FixedVectorType::get(real, 5), builder.getIntNTy(77)};
  for (llvm::Type* const type : odd) {
    llvm::Value* const x = builder.CreateLoad(type, f->getArg(0));
    builder.CreateStore(type->isIntegerTy() ? builder.CreateAdd(x, x) : builder.CreateFAdd(x, x),
                        f->getArg(0));
  }
  const llvm::FunctionCallee sine = module.getOrInsertFunction("sin", real, real);
  builder.CreateRet(builder.CreateCall(sine, builder.CreateLoad(real, f->getArg(0))));
}

// for (i = 0; i < n; ++i) p[i] *= p[i];
void add_loop(llvm::Module& module) {
  llvm::LLVMContext& context = module.getContext();
  llvm::IRBuilder<> builder(context);
  llvm::Type* const real = builder.getDoubleTy();
  llvm::Type* const parameters[] = {builder.getPtrTy(), builder.getInt64Ty()};
  auto* const f = llvm::Function::Create(llvm::FunctionType::get(builder.getVoidTy(), parameters, false),
                                         llvm::Function::ExternalLinkage, "loop", module);
  auto* const entry = llvm::BasicBlock::Create(context, "entry", f);
  auto* const loop = llvm::BasicBlock::Create(context, "loop", f);
  auto* const end = llvm::BasicBlock::Create(context, "end", f);
  builder.SetInsertPoint(entry);
  builder.CreateBr(loop);
  builder.SetInsertPoint(loop);
  llvm::PHINode* const i = builder.CreatePHI(builder.getInt64Ty(), 2);
  llvm::Value* const at = builder.CreateGEP(real, f->getArg(0), i);
  llvm::Value* const x = builder.CreateLoad(real, at);
  builder.CreateStore(builder.CreateFMul(x, x), at);
  llvm::Value* const next = builder.CreateAdd(i, builder.getInt64(1));
  i->addIncoming(builder.getInt64(0), entry), i->addIncoming(next, loop);
  builder.CreateCondBr(builder.CreateICmpULT(next, f->getArg(1)), loop, end);
  builder.SetInsertPoint(end);
  builder.CreateRetVoid();
}

// Compiles the least first that has types which no register has: LLVM has nearly all of its objects where it
// takes these apart.
void warm_up() {
  initialize_llvm();
  llvm::LLVMContext context;
  const Diagnostics diagnostics(context, "warm-up");
  for (void (*const add)(llvm::Module&) : {add_odd_function, add_loop}) {
    const auto machine = host_machine({}, diagnostics);
    llvm::Module module("warm-up", context);
    module.setTargetTriple(machine->getTargetTriple().str());
    module.setDataLayout(machine->createDataLayout());
    add(module);
    if (add == add_loop) optimize_o3(module, *machine);
    emit_code(module, *machine, llvm::CodeGenFileType::ObjectFile, diagnostics);
  }
}

}  // namespace

// The strings that these return are never destroyed: threads may compile until the process ends.
std::string_view llvm_version() {
  static const auto& version = *new std::string([] {
    unsigned major = 0, minor = 0, patch = 0;
    LLVMGetVersion(&major, &minor, &patch);
    return fmt::format("{}.{}.{}", major, minor, patch);
  }());
  return version;
}

// A target's description is a variable within LLVM. A function's address would not do: it may be that of the
// program's own jump to it.
const std::string& llvm_identity() {
  static const auto& identity = *new std::string([] {
    initialize_llvm();
    std::string error;
    const llvm::Target* target = llvm::TargetRegistry::lookupTarget(llvm::sys::getProcessTriple(), error);
    return fmt::format("{} {}", llvm_version(), build_identity(target));
  }());
  return identity;
}

const HostTarget& host_target() {
  static const auto& target = *new HostTarget([] {
    initialize_llvm();
    auto builder = llvm::cantFail(llvm::orc::JITTargetMachineBuilder::detectHost());
    return HostTarget{builder.getCPU(), builder.getFeatures().getString()};
  }());
  return target;
}

std::string compile_x86(const SpecializeRequest& request) {
  initialize_llvm();
  llvm::LLVMContext context;
  Diagnostics diagnostics(context, request.id);
  auto machine = host_machine(request.options, diagnostics);
  const auto link = [&] { return link_kernel(request, *machine, context, diagnostics); };
  auto module = link();
  const bool simt = request.options.simt;
  const bool fast = has_fast_math(*module, request.entry);
  keep_only(*module, request.entry);
  if (fast) add_fast_math_flags(*module);
  for (llvm::Function& f : *module) {
    if (f.isDeclaration()) continue;
    f.addFnAttr("target-cpu", machine->getTargetCPU());
    f.addFnAttr("target-features", machine->getTargetFeatureString());
    // Fast math would take an estimate and a Newton step, which make a NaN of 1 / sqrt(0); and makers'
    // estimates differ.
    f.addFnAttr("reciprocal-estimates", "none");
    // These tables are for backtraces, debuggers and profilers; they lie beside the code, which itself
    // stays the same.
    f.setUWTableKind(llvm::UWTableKind::Async);
    if (request.options.step) f.addFnAttr("frame-pointer", "all");
  }
  // Sanitizers do not watch emulated threads: these run in turns on one thread, change stacks, and what races
  // there is found by the emulation's views of memory instead.
  if (simt)
    remove_sanitizer_attributes(*module);
  else
    prepare_for_sanitizer(*module);
  verify_module(*module, "linking", diagnostics);
  const std::string stem = dump_stem(request);
  dump_module(stem, "in.ll", *module);
  if (request.options.step)
    simplify_for_stepping(*module, *machine);
  else
    optimize_o3(*module, *machine, simt ? Vectors::kNever : Vectors::kAsTuned);
  refuse_misuse(*module, request, link);
  if (!request.options.step) fuse_products(*module);
  verify_module(*module, "optimising", diagnostics);
  dump_module(stem, "opt.ll", *module);
  validate_for_x86(*module, *machine, request.id, request.options);
  if (simt) {
    instrument_for_simt(*module, request.entry, diagnostics);
    verify_module(*module, "instrumenting", diagnostics);
    dump_module(stem, "views.ll", *module);
  }
  dump_assembly(stem, *module, *machine);

  return emit_code(*module, *machine, llvm::CodeGenFileType::ObjectFile, diagnostics);
}

// While LLVM makes them, another thread says all the time that exit() is to wait first: there is no place in
// between from which this could be said.
void make_llvms_static_objects() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::atomic<bool> is_done = false;
    std::thread sayer([&] {
      constexpr std::chrono::microseconds kPause{5};
      while (!is_done.load()) {
        wait_before_what_is_static_now();
        const auto end = std::chrono::steady_clock::now() + kPause;
        while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
      }
    });
    warm_up();
    is_done = true;
    sayer.join();
    wait_before_what_is_static_now();
  });
}

}  // namespace coppice::jit
