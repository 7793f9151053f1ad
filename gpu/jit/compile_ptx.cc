// The NVPTX back end: a specialized kernel as PTX text.
#include <fmt/format.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>

#include "core/error.h"
#include "gpu/jit/llvm_module.h"
#include "gpu/jit/ptx_math.h"
#include "gpu/jit/validate.h"
#include "gpu/launch_block.h"

namespace coppice::jit {
namespace {

constexpr char kTriple[] = "nvptx64-nvidia-cuda";
struct Target {
  int sm;
  const char* ptx;  // the version that knows it, of at least 7.0: an old driver takes no newer ones
};
constexpr Target kTargets[] = {{75, "+ptx70"}, {80, "+ptx70"}, {86, "+ptx71"},
                               {87, "+ptx74"}, {89, "+ptx78"}, {90, "+ptx78"}};

constexpr char kSkips[] = "coppice_skips";  // of the intrinsics: bool (const LaunchBlock*)

// With kItemRuns a thread block takes 2, 4 or 8 items in a row, as what lies beside one is then still in
// the multiprocessor's L1; but no more than leave every block this many turns, or few would be waited for at
// the end.
constexpr uint64_t kLongestRun = 8, kTurns = 8;

// Adds `void file_kernel(LaunchBlock by value)`: block b of the grid takes items b, b + grid, ... of the
// loop, or so many runs of items, or with kThreadItems as many items at a time as it has threads. A recorded
// launch that is to be skipped takes none.
void add_gpu_entry(llvm::Module& module, const std::string& entry, const std::string& name) {
  llvm::LLVMContext& context = module.getContext();
  auto* i64 = llvm::Type::getInt64Ty(context);
  auto* i32 = llvm::Type::getInt32Ty(context);
  auto* pointer = llvm::PointerType::get(context, 0);
  auto* block_type = llvm::ArrayType::get(i64, sizeof(LaunchBlock) / 8);
  auto* f = llvm::Function::Create(llvm::FunctionType::get(llvm::Type::getVoidTy(context), {pointer}, false),
                                   llvm::GlobalValue::ExternalLinkage, name, module);
  f->setCallingConv(llvm::CallingConv::PTX_Kernel);
  f->addParamAttr(0, llvm::Attribute::getWithByValType(context, block_type));
  f->addParamAttr(0, llvm::Attribute::getWithAlignment(context, llvm::Align(16)));
  auto* start = llvm::BasicBlock::Create(context, "start", f);
  auto* begin = llvm::BasicBlock::Create(context, "begin", f);
  auto* read_count = llvm::BasicBlock::Create(context, "read_count", f);
  auto* counted = llvm::BasicBlock::Create(context, "counted", f);
  auto* head = llvm::BasicBlock::Create(context, "head", f);
  auto* body = llvm::BasicBlock::Create(context, "body", f);
  auto* done = llvm::BasicBlock::Create(context, "done", f);
  llvm::IRBuilder<> b(start);
  // Code without a place would drop the places of what is inlined into it.
  if (llvm::DISubprogram* kernel = module.getFunction(entry)->getSubprogram()) {
    f->setSubprogram(llvm::DISubprogram::getDistinct(
        context, kernel->getScope(), name, name, kernel->getFile(), kernel->getLine(), kernel->getType(),
        kernel->getScopeLine(), nullptr, 0, 0, llvm::DINode::FlagZero, llvm::DISubprogram::SPFlagDefinition,
        kernel->getUnit()));
    b.SetCurrentDebugLocation(llvm::DILocation::get(context, kernel->getLine(), 0, f->getSubprogram()));
  }
  auto sreg = [&](llvm::Intrinsic::ID id) { return b.CreateZExt(b.CreateIntrinsic(i32, id, {}), i64); };
  auto member = [&](uint64_t offset) {
    return b.CreateConstInBoundsGEP1_64(llvm::Type::getInt8Ty(context), f->getArg(0), offset);
  };
  b.CreateCondBr(b.CreateCall(module.getFunction(kSkips), {f->getArg(0)}), done, begin);
  b.SetInsertPoint(begin);
  // There are two loads, the second one volatile: LLVM would make one of them, from either of two
  // addresses, and that copies the block to local memory.
  llvm::Value* count_at = b.CreateLoad(pointer, member(offsetof(LaunchBlock, count)));
  llvm::Value* host_count = b.CreateLoad(i64, member(offsetof(LaunchBlock, item_count)));
  b.CreateCondBr(b.CreateIsNull(count_at), counted, read_count);
  b.SetInsertPoint(read_count);
  llvm::Value* pieces = b.CreateLoad(i32, member(offsetof(LaunchBlock, pieces)));
  llvm::Value* device_count = b.CreateMul(b.CreateLoad(i64, count_at, true), b.CreateZExt(pieces, i64));
  b.CreateBr(counted);
  b.SetInsertPoint(counted);
  llvm::PHINode* count = b.CreatePHI(i64, 2);
  count->addIncoming(host_count, begin);
  count->addIncoming(device_count, read_count);
  llvm::Value* flags = b.CreateLoad(b.getInt16Ty(), member(offsetof(LaunchBlock, flags)));
  llvm::Value* by_thread = b.CreateIsNotNull(b.CreateAnd(flags, kThreadItems));
  auto number = [&](uint64_t n) { return llvm::ConstantInt::get(i64, n); };
  llvm::Value* blocks = sreg(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x);
  llvm::Value* run = number(1);
  for (uint64_t n = 2; n <= kLongestRun; n *= 2) {
    llvm::Value* lasts = b.CreateICmpUGE(count, b.CreateMul(blocks, number(kTurns * n)));
    run = b.CreateSelect(lasts, number(n), run);
  }
  llvm::Value* in_runs = b.CreateIsNotNull(b.CreateAnd(flags, kItemRuns));
  llvm::Value* chunk =
      b.CreateSelect(by_thread, number(kGpuThreadsPerBlock), b.CreateSelect(in_runs, run, number(1)));
  llvm::Value* first = b.CreateMul(sreg(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x), chunk);
  llvm::Value* step = b.CreateMul(blocks, chunk);
  b.CreateBr(head);
  b.SetInsertPoint(head);
  llvm::PHINode* item = b.CreatePHI(i64, 2);
  item->addIncoming(first, counted);
  b.CreateCondBr(b.CreateICmpULT(item, count), body, done);
  b.SetInsertPoint(body);
  llvm::Value* end = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b.CreateAdd(item, chunk), count);
  // A call would hide from the kernel where its addresses come from, and copy the launch block to a stack.
  b.CreateCall(module.getFunction(entry), {f->getArg(0), item, end})
      ->addFnAttr(llvm::Attribute::AlwaysInline);
  item->addIncoming(b.CreateAdd(item, step), body);
  b.CreateBr(head);
  b.SetInsertPoint(done);
  b.CreateRetVoid();
}

// A thread may have the registers that so many threads of one block leave it. Unless told that one block at a
// time is enough, ptxas aims at full multiprocessors: of the tests' kernels it then spilled in one of ten.
void add_launch_bounds(llvm::Module& module, llvm::Function& entry) {
  llvm::LLVMContext& context = module.getContext();
  auto add = [&](const char* bound, uint32_t value) {
    auto* number = llvm::ConstantInt::get(llvm::Type::getInt32Ty(context), value);
    module.getOrInsertNamedMetadata("nvvm.annotations")
        ->addOperand(llvm::MDNode::get(
            context, {llvm::ValueAsMetadata::get(&entry), llvm::MDString::get(context, bound),
                      llvm::ConstantAsMetadata::get(number)}));
  };
  add("reqntidx", kGpuThreadsPerBlock);
  add("minctasm", 1);
}

std::unique_ptr<llvm::TargetMachine> nvptx_machine(const PtxTarget& target, const Diagnostics& diagnostics) {
  const Target* known = std::find_if(std::begin(kTargets), std::end(kTargets),
                                     [&](const Target& t) { return t.sm == target.sm; });
  if (known == std::end(kTargets)) {
    diagnostics.fail("choosing the target",
                     fmt::format("sm_{} is not one of sm_75, 80, 86, 87, 89, 90", target.sm));
  }
  std::string error;
  const llvm::Target* nvptx = llvm::TargetRegistry::lookupTarget(kTriple, error);
  if (nvptx == nullptr) diagnostics.fail("choosing the target", error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion =
      llvm::FPOpFusion::Standard;  // where the source's flags allow it; ptxas then adds none
  return std::unique_ptr<llvm::TargetMachine>(
      nvptx->createTargetMachine(kTriple, fmt::format("sm_{}", target.sm), known->ptx, options, std::nullopt,
                                 std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

// Returns the kernel with all that it is linked with but libdevice.
std::unique_ptr<llvm::Module> link_kernel(const SpecializeRequest& request, const std::string& name,
                                          llvm::TargetMachine& machine, llvm::LLVMContext& context,
                                          const Diagnostics& diagnostics) {
  auto module = parse_kernel(request, context, diagnostics);
  if (request.makes_room) remove_effects(*module, diagnostics);
  if (request.guards_memory) guard_memory(*module, request);
  module->setTargetTriple(kTriple);
  module->setDataLayout(machine.createDataLayout());
  strip_target_attributes(*module);
  remove_sanitizer_attributes(*module);
  keep_line_directives(*module);
  auto intrinsics = parse_bitcode(nvptx_intrinsics_bitcode(), context, diagnostics);
  strip_target_attributes(*intrinsics);
  llvm::StripDebugInfo(*intrinsics);
  module->getOrInsertFunction(kSkips, llvm::Type::getInt1Ty(context), llvm::PointerType::get(context, 0));
  link_into(*module, std::move(intrinsics), true, diagnostics);
  add_gpu_entry(*module, request.entry, name);
  bake_constants(*module, request, diagnostics);
  return module;
}

// LLVM marks where inlined code begins with labels for debug tables, which this text has none of, and it may
// put one into the middle of a call: a syntax error to ptxas.
std::string without_debug_labels(llvm::StringRef ptx) {
  std::string text;
  text.reserve(ptx.size());
  while (!ptx.empty()) {
    const auto [line, rest] = ptx.split('\n');
    if (!line.starts_with("$L__tmp")) text.append(line.data(), line.size()).push_back('\n');
    ptx = rest;
  }
  return text;
}

// Returns the kernel as its text is made of.
std::unique_ptr<llvm::Module> optimized_kernel(const SpecializeRequest& request, PtxTarget target,
                                               llvm::TargetMachine& machine, llvm::LLVMContext& context,
                                               const Diagnostics& diagnostics) {
  std::string name = request.id;
  std::replace(name.begin(), name.end(), '.', '_');
  const auto link = [&] { return link_kernel(request, name, machine, context, diagnostics); };
  auto module = link();
  const bool fast = has_fast_math(*module, request.entry);
  keep_only(*module, name);
  add_launch_bounds(*module, *module->getFunction(name));
  if (fast) add_fast_math_flags(*module);
  auto add_math = [&] {
    const bool mapped = map_math(*module, fast, target.libdevice, diagnostics);
    keep_only(*module, name);
    if (fast) flush_denormals(*module);
    module->setModuleFlag(llvm::Module::Override, "nvvm-reflect-ftz", fast ? 1u : 0u);
    return mapped;
  };
  add_math();
  verify_module(*module, "linking", diagnostics);
  const std::string stem = dump_stem(request, target);
  dump_module(stem, "in.ll", *module);
  optimize_o3(*module, machine);
  if (add_math()) optimize_o3(*module, machine);  // the optimiser made calls of its own, such as exp2 of pow
  refuse_misuse(*module, request, link);
  if (fast) use_fast_gpu_instructions(*module);
  verify_module(*module, "optimising", diagnostics);
  dump_module(stem, "opt.ll", *module);
  return module;
}

// Changes the module.
std::string text_of(llvm::Module& module, const SpecializeRequest& request, PtxTarget target,
                    llvm::TargetMachine& machine, const Diagnostics& diagnostics) {
  validate_for_ptx(module, target.sm, request.id);
  std::string text =
      without_debug_labels(emit_code(module, machine, llvm::CodeGenFileType::AssemblyFile, diagnostics));
  dump_text(dump_stem(request, target), "ptx", text);
  return text;
}

}  // namespace

PtxTarget newest_ptx_target(int compute_capability) {
  const Target* newer = std::upper_bound(std::begin(kTargets), std::end(kTargets), compute_capability,
                                         [](int capability, const Target& t) { return capability < t.sm; });
  if (newer == std::begin(kTargets)) {
    throw Error(ErrorCode::kUnavailable,
                fmt::format("the GPU's compute capability is {}.{}; expected 7.5 (Turing) or newer",
                            compute_capability / 10, compute_capability % 10));
  }
  return {.sm = newer[-1].sm};
}

std::string with_blocks_per_multiprocessor(std::string ptx, int blocks) {
  constexpr std::string_view kDirective = ".minnctapersm ";
  if (const size_t at = ptx.find(kDirective); at != std::string::npos) {
    const size_t number = at + kDirective.size();
    ptx.replace(number, ptx.find('\n', number) - number, std::to_string(blocks));
  }
  return ptx;
}

std::string compile_ptx(const SpecializeRequest& request, PtxTarget target) {
  initialize_llvm();
  llvm::LLVMContext context;
  const Diagnostics diagnostics(context, request.id);
  const auto machine = nvptx_machine(target, diagnostics);
  const auto module = optimized_kernel(request, target, *machine, context, diagnostics);
  return text_of(*module, request, target, *machine, diagnostics);
}

void compile_ptx_of_each(const SpecializeRequest& request, std::span<const PtxTarget> targets,
                         const std::function<void(int sm, std::string text)>& take,
                         const std::function<void(int sm, std::string message)>& take_error) {
  initialize_llvm();
  llvm::LLVMContext context;
  const Diagnostics diagnostics(context, request.id);
  std::unique_ptr<llvm::Module> module;
  const auto compile = [&](PtxTarget target) {
    const auto machine = nvptx_machine(target, diagnostics);
    if (module == nullptr) module = optimized_kernel(request, targets.back(), *machine, context, diagnostics);
    return text_of(*llvm::CloneModule(*module), request, target, *machine, diagnostics);
  };
  for (auto target = targets.rbegin(); target != targets.rend(); ++target) {
    try {
      take(target->sm, compile(*target));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kCompile) throw;
      take_error(target->sm, error.message());
    }
  }
}

}  // namespace coppice::jit
