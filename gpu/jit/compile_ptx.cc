// The NVPTX back end: a specialized kernel as PTX text.
#include <fmt/format.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/Linker/Linker.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>

#include <algorithm>

#include "core/error.h"
#include "gpu/jit/llvm_module.h"
#include "gpu/jit/validate.h"
#include "gpu/launch_block.h"

namespace coppice::jit {
namespace {

constexpr char kTriple[] = "nvptx64-nvidia-cuda";

struct MathName {
  const char* from;
  const char* to;
};
// C math calls and LLVM intrinsics that NVPTX cannot lower, and libdevice's name for each.
constexpr MathName kMath[] = {
    {"sinf", "__nv_sinf"},
    {"cosf", "__nv_cosf"},
    {"tanf", "__nv_tanf"},
    {"asinf", "__nv_asinf"},
    {"acosf", "__nv_acosf"},
    {"atanf", "__nv_atanf"},
    {"atan2f", "__nv_atan2f"},
    {"expf", "__nv_expf"},
    {"exp2f", "__nv_exp2f"},
    {"logf", "__nv_logf"},
    {"log2f", "__nv_log2f"},
    {"log10f", "__nv_log10f"},
    {"powf", "__nv_powf"},
    {"sinhf", "__nv_sinhf"},
    {"coshf", "__nv_coshf"},
    {"tanhf", "__nv_tanhf"},
    {"cbrtf", "__nv_cbrtf"},
    {"hypotf", "__nv_hypotf"},
    {"erff", "__nv_erff"},
    {"fmodf", "__nv_fmodf"},
    {"expm1f", "__nv_expm1f"},
    {"log1pf", "__nv_log1pf"},
    {"exp10f", "__nv_exp10f"},
    {"erfcf", "__nv_erfcf"},
    {"asinhf", "__nv_asinhf"},
    {"acoshf", "__nv_acoshf"},
    {"atanhf", "__nv_atanhf"},
    {"tgammaf", "__nv_tgammaf"},
    {"lgammaf", "__nv_lgammaf"},
    {"remainderf", "__nv_remainderf"},
    {"fdimf", "__nv_fdimf"},
    {"sin", "__nv_sin"},
    {"cos", "__nv_cos"},
    {"tan", "__nv_tan"},
    {"exp", "__nv_exp"},
    {"log", "__nv_log"},
    {"pow", "__nv_pow"},
    {"erf", "__nv_erf"},
    {"tanh", "__nv_tanh"},
    {"atan2", "__nv_atan2"},
    {"cbrt", "__nv_cbrt"},
    {"hypot", "__nv_hypot"},
    {"fmod", "__nv_fmod"},
    {"asin", "__nv_asin"},
    {"acos", "__nv_acos"},
    {"atan", "__nv_atan"},
    {"sinh", "__nv_sinh"},
    {"cosh", "__nv_cosh"},
    {"exp2", "__nv_exp2"},
    {"exp10", "__nv_exp10"},
    {"expm1", "__nv_expm1"},
    {"log2", "__nv_log2"},
    {"log10", "__nv_log10"},
    {"log1p", "__nv_log1p"},
    {"erfc", "__nv_erfc"},
    {"asinh", "__nv_asinh"},
    {"acosh", "__nv_acosh"},
    {"atanh", "__nv_atanh"},
    {"tgamma", "__nv_tgamma"},
    {"lgamma", "__nv_lgamma"},
    {"remainder", "__nv_remainder"},
    {"fdim", "__nv_fdim"},
    {"llvm.sin.f32", "__nv_sinf"},
    {"llvm.cos.f32", "__nv_cosf"},
    {"llvm.tan.f32", "__nv_tanf"},
    {"llvm.exp.f32", "__nv_expf"},
    {"llvm.exp2.f32", "__nv_exp2f"},
    {"llvm.log.f32", "__nv_logf"},
    {"llvm.log2.f32", "__nv_log2f"},
    {"llvm.log10.f32", "__nv_log10f"},
    {"llvm.pow.f32", "__nv_powf"},
    {"llvm.tanh.f32", "__nv_tanhf"},
    {"llvm.asin.f32", "__nv_asinf"},
    {"llvm.acos.f32", "__nv_acosf"},
    {"llvm.atan.f32", "__nv_atanf"},
    {"llvm.sinh.f32", "__nv_sinhf"},
    {"llvm.cosh.f32", "__nv_coshf"},
    {"llvm.exp10.f32", "__nv_exp10f"},
    {"llvm.powi.f32.i32", "__nv_powif"},
    {"llvm.sin.f64", "__nv_sin"},
    {"llvm.cos.f64", "__nv_cos"},
    {"llvm.exp.f64", "__nv_exp"},
    {"llvm.log.f64", "__nv_log"},
    {"llvm.pow.f64", "__nv_pow"},
    {"llvm.tan.f64", "__nv_tan"},
    {"llvm.tanh.f64", "__nv_tanh"},
    {"llvm.exp2.f64", "__nv_exp2"},
    {"llvm.exp10.f64", "__nv_exp10"},
    {"llvm.log2.f64", "__nv_log2"},
    {"llvm.log10.f64", "__nv_log10"},
    {"llvm.asin.f64", "__nv_asin"},
    {"llvm.acos.f64", "__nv_acos"},
    {"llvm.atan.f64", "__nv_atan"},
    {"llvm.sinh.f64", "__nv_sinh"},
    {"llvm.cosh.f64", "__nv_cosh"},
    {"llvm.powi.f64.i32", "__nv_powi"},
};

void map_math(llvm::Module& module) {
  for (const MathName& name : kMath) {
    llvm::Function* f = module.getFunction(name.from);
    if (f == nullptr || !f->isDeclaration()) continue;
    f->replaceAllUsesWith(module.getOrInsertFunction(name.to, f->getFunctionType()).getCallee());
    f->eraseFromParent();
  }
}

// libdevice is read lazily and only what is called gets linked: 2 ms instead of 29.
void link_libdevice(llvm::Module& module, const std::string& path, const Diagnostics& diagnostics) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) diagnostics.fail("reading libdevice", path + ": " + buffer.getError().message());
  auto library = llvm::getOwningLazyBitcodeModule(std::move(*buffer), module.getContext());
  if (!library) diagnostics.fail("reading libdevice", llvm::toString(library.takeError()));
  link_into(module, std::move(*library), true, diagnostics);
  module.addModuleFlag(llvm::Module::Override, "nvvm-reflect-ftz", 0u);
}

// `void file_kernel(LaunchBlock by value)`: block b of the grid takes items b, b + grid, ... of the loop, or with
// kThreadItems as many items at a time as it has threads.
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
  // Two loads, the second one volatile: LLVM would make one of them, from either of two addresses, and that copies the
  // block to local memory.
  llvm::Value* count_at = b.CreateLoad(pointer, member(offsetof(LaunchBlock, count)));
  llvm::Value* host_count = b.CreateLoad(i64, member(offsetof(LaunchBlock, item_count)));
  b.CreateCondBr(b.CreateIsNull(count_at), counted, read_count);
  b.SetInsertPoint(read_count);
  llvm::Value* device_count = b.CreateLoad(i64, count_at, true);
  b.CreateBr(counted);
  b.SetInsertPoint(counted);
  llvm::PHINode* count = b.CreatePHI(i64, 2);
  count->addIncoming(host_count, start);
  count->addIncoming(device_count, read_count);
  llvm::Value* flags = b.CreateLoad(i32, member(offsetof(LaunchBlock, flags)));
  llvm::Value* by_thread = b.CreateIsNotNull(b.CreateAnd(flags, kThreadItems));
  llvm::Value* chunk = b.CreateSelect(by_thread, sreg(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x),
                                      llvm::ConstantInt::get(i64, 1));
  llvm::Value* first = b.CreateMul(sreg(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x), chunk);
  llvm::Value* step = b.CreateMul(sreg(llvm::Intrinsic::nvvm_read_ptx_sreg_nctaid_x), chunk);
  b.CreateBr(head);
  b.SetInsertPoint(head);
  llvm::PHINode* item = b.CreatePHI(i64, 2);
  item->addIncoming(first, counted);
  b.CreateCondBr(b.CreateICmpULT(item, count), body, done);
  b.SetInsertPoint(body);
  llvm::Value* end = b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, b.CreateAdd(item, chunk), count);
  b.CreateCall(module.getFunction(entry), {f->getArg(0), item, end});
  item->addIncoming(b.CreateAdd(item, step), body);
  b.CreateBr(head);
  b.SetInsertPoint(done);
  b.CreateRetVoid();
}

std::unique_ptr<llvm::TargetMachine> nvptx_machine(const PtxTarget& target, const Diagnostics& diagnostics) {
  static constexpr int kKnown[] = {75, 80, 86, 87, 89, 90};
  if (std::find(std::begin(kKnown), std::end(kKnown), target.sm) == std::end(kKnown)) {
    diagnostics.fail("choosing the target",
                     fmt::format("sm_{} is not one of sm_75, 80, 86, 87, 89, 90", target.sm));
  }
  std::string error;
  const llvm::Target* nvptx = llvm::TargetRegistry::lookupTarget(kTriple, error);
  if (nvptx == nullptr) diagnostics.fail("choosing the target", error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Fast;
  return std::unique_ptr<llvm::TargetMachine>(nvptx->createTargetMachine(
      kTriple, fmt::format("sm_{}", target.sm), target.sm >= 90 ? "+ptx78" : "+ptx70", options, std::nullopt,
      std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

}  // namespace

std::string compile_ptx(const SpecializeRequest& request, PtxTarget target,
                        const std::string& libdevice_path) {
  initialize_llvm();
  llvm::LLVMContext context;
  Diagnostics diagnostics(context, request.id);
  auto machine = nvptx_machine(target, diagnostics);
  auto module = parse_bitcode(request.file->bitcode, context, diagnostics);
  module->setTargetTriple(kTriple);
  module->setDataLayout(machine->createDataLayout());
  strip_target_attributes(*module);
  remove_sanitizer_attributes(*module);
  keep_line_directives(*module);
  auto intrinsics = parse_bitcode(nvptx_intrinsics_bitcode(), context, diagnostics);
  strip_target_attributes(*intrinsics);
  llvm::StripDebugInfo(*intrinsics);
  link_into(*module, std::move(intrinsics), true, diagnostics);
  if (module->getFunction(request.entry) == nullptr) {
    diagnostics.fail("linking", fmt::format("no kernel {} in {}", request.entry, request.file->source_file));
  }
  std::string name = request.id;
  std::replace(name.begin(), name.end(), '.', '_');
  add_gpu_entry(*module, request.entry, name);
  bake_constants(*module, request, diagnostics);
  keep_only(*module, name);
  map_math(*module);
  if (!libdevice_path.empty()) link_libdevice(*module, libdevice_path, diagnostics);
  keep_only(*module, name);
  verify_module(*module, "linking", diagnostics);
  const std::string stem = dump_stem(request, target);
  dump_module(stem, "in.ll", *module);
  optimize_o3(*module, *machine);
  map_math(*module);  // the optimiser turns exp into exp2 and the like
  verify_module(*module, "optimising", diagnostics);
  dump_module(stem, "opt.ll", *module);
  validate_for_ptx(*module, target.sm, request.id);

  llvm::SmallString<0> ptx;
  llvm::raw_svector_ostream out(ptx);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::AssemblyFile)) {
    diagnostics.fail("code generation", "this target cannot emit PTX");
  }
  passes.run(*module);
  diagnostics.check("code generation");
  std::string text = ptx.str().str();
  dump_text(stem, "ptx", text);
  return text;
}

}  // namespace coppice::jit
