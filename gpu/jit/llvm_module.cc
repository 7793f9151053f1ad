// Steps that both back ends share (see llvm_module.h).
#include "gpu/jit/llvm_module.h"

#include <fmt/format.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/IPO/Internalize.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "core/error.h"

namespace coppice::jit {
namespace {

void on_diagnostic(const llvm::DiagnosticInfo* info, void* errors) {
  if (info->getSeverity() != llvm::DS_Error) return;
  llvm::raw_string_ostream out(*static_cast<std::string*>(errors));
  llvm::DiagnosticPrinterRawOStream printer(out);
  info->print(printer);
  out << "; ";
}

// Makes a constant of a first-class type from its in-memory image; bytes past the image's end are zero.
llvm::Constant* constant_from_bytes(llvm::Type* type, std::span<const std::byte> bytes,
                                    const llvm::DataLayout& layout) {
  auto tail = [&](uint64_t at) {
    return at < bytes.size() ? bytes.subspan(at) : std::span<const std::byte>{};
  };
  if (bytes.empty()) return llvm::Constant::getNullValue(type);
  if (auto* s = llvm::dyn_cast<llvm::StructType>(type)) {
    llvm::SmallVector<llvm::Constant*> members;
    for (unsigned i = 0; i < s->getNumElements(); ++i) {
      members.push_back(constant_from_bytes(s->getElementType(i),
                                            tail(layout.getStructLayout(s)->getElementOffset(i)), layout));
    }
    return llvm::ConstantStruct::get(s, members);
  }
  if (auto* a = llvm::dyn_cast<llvm::ArrayType>(type)) {
    llvm::SmallVector<llvm::Constant*> items;
    const uint64_t stride = layout.getTypeAllocSize(a->getElementType());
    for (uint64_t i = 0; i < a->getNumElements(); ++i) {
      items.push_back(constant_from_bytes(a->getElementType(), tail(i * stride), layout));
    }
    return llvm::ConstantArray::get(a, items);
  }
  uint64_t image = 0;
  std::memcpy(&image, bytes.data(),
              std::min<size_t>({bytes.size(), sizeof image, layout.getTypeStoreSize(type)}));
  if (type->isIntegerTy()) return llvm::ConstantInt::get(type, image);
  if (type->isFloatTy())
    return llvm::ConstantFP::get(type, std::bit_cast<float>(static_cast<uint32_t>(image)));
  if (type->isDoubleTy()) return llvm::ConstantFP::get(type, std::bit_cast<double>(image));
  return nullptr;
}

// Collects the functions that code or data leads to, each once, and not through what is theirs.
struct Reached {
  void add_operands(const llvm::User& user) {
    for (const llvm::Use& operand : user.operands()) {
      auto* constant = llvm::dyn_cast<llvm::Constant>(operand.get());
      if (constant == nullptr || !seen.insert(constant).second) continue;
      if (auto* f = llvm::dyn_cast<llvm::Function>(constant))
        functions.push_back(f);
      else
        add_operands(*constant);
    }
  }
  // Reads the functions from the file, and all that they lead to.
  void read(const Diagnostics& diagnostics) {
    for (; num_read < functions.size(); ++num_read) {
      llvm::Function* const f = functions[num_read];
      if (llvm::Error error = f->materialize())
        diagnostics.fail("reading bitcode", llvm::toString(std::move(error)));
      add_operands(*f);
      for (const llvm::Instruction& i : llvm::instructions(*f)) add_operands(i);
    }
  }
  std::vector<llvm::Function*> functions;
  size_t num_read = 0;
  llvm::SmallPtrSet<const llvm::Constant*, 32> seen;
};

// Returns a variable of `reached` that an instruction before main() may write; null where it writes none.
const llvm::GlobalVariable* initialised_by(const llvm::Instruction& i, const Reached& reached) {
  if (!i.mayHaveSideEffects() || i.isLifetimeStartOrEnd()) return nullptr;
  for (const llvm::Use& operand : i.operands()) {
    const auto* global = llvm::dyn_cast<llvm::GlobalVariable>(operand->stripInBoundsOffsets());
    if (global != nullptr && !global->isConstant() && reached.seen.contains(global)) return global;
  }
  return nullptr;
}

// Returns where the variable stands for which clang made the function that `i` is in, or was inlined to. A
// store itself has no line, but the code before it, which makes the value, has one.
std::string place_of_initialiser(const llvm::Instruction& i) {
  for (const llvm::Instruction* before = &i; before != nullptr; before = before->getPrevNode()) {
    const llvm::DILocation* outermost = nullptr;
    for (const llvm::DILocation* at = before->getDebugLoc().get(); at != nullptr; at = at->getInlinedAt()) {
      if (at->getLine() != 0) outermost = at;  // what gathers these functions stands nowhere
    }
    if (outermost != nullptr)
      return fmt::format("{}:{}", outermost->getFilename().str(), outermost->getLine());
  }
  return i.getModule()->getSourceFileName();
}

// No device runs code before a kernel: a variable that such code makes what it is would hold zeros. Headers
// have many that a kernel knows nothing of (Eigen's placeholders, the standard streams), so only those that
// it leads to count.
void drop_initialisers(llvm::Module& module, const Reached& reached, const std::string& id,
                       const Diagnostics& diagnostics) {
  for (const char* list : {"llvm.global_ctors", "llvm.global_dtors"}) {
    llvm::GlobalVariable* const global = module.getNamedGlobal(list);
    if (global == nullptr) continue;
    Reached before_main;
    before_main.add_operands(*global);
    before_main.read(diagnostics);
    for (const llvm::Function* f : before_main.functions) {
      for (const llvm::Instruction& i : llvm::instructions(*f)) {
        if (const llvm::GlobalVariable* variable = initialised_by(i, reached))
          throw Error(
              ErrorCode::kCompile,
              fmt::format(
                  "kernel {}: {}: the variable {} is initialised or destroyed by code, which no device "
                  "runs before a kernel; make it constexpr",
                  id, place_of_initialiser(i), llvm::demangle(variable->getName().str())));
      }
    }
    global->eraseFromParent();
  }
}

}  // namespace

Diagnostics::Diagnostics(llvm::LLVMContext& context, std::string id) : id_(std::move(id)), compiling_(id_) {
  context.setDiagnosticHandlerCallBack(on_diagnostic, &errors_);
}
void Diagnostics::check(std::string_view stage) const {
  if (!errors_.empty()) fail(stage, errors_);
}
void Diagnostics::fail(std::string_view stage, const std::string& why) const {
  throw Error(ErrorCode::kCompile, fmt::format("kernel {}: {} failed: {}", id_, stage, why));
}

void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();  // without it, inline assembly aborts the process
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    install_fatal_error_handlers();
  });
}

std::unique_ptr<llvm::Module> parse_bitcode(std::span<const std::byte> bitcode, llvm::LLVMContext& context,
                                            const Diagnostics& diagnostics) {
  const llvm::StringRef bytes(reinterpret_cast<const char*>(bitcode.data()), bitcode.size());
  auto module = llvm::parseBitcodeFile(llvm::MemoryBufferRef(bytes, "kernel"), context);
  if (!module) diagnostics.fail("reading bitcode", llvm::toString(module.takeError()));
  return std::move(*module);
}

std::unique_ptr<llvm::Module> parse_kernel(const SpecializeRequest& request, llvm::LLVMContext& context,
                                           const Diagnostics& diagnostics) {
  const std::span<const std::byte> bitcode = request.file->bitcode;
  const llvm::StringRef bytes(reinterpret_cast<const char*>(bitcode.data()), bitcode.size());
  auto read = llvm::getLazyBitcodeModule(llvm::MemoryBufferRef(bytes, "kernel"), context, true);
  const auto check = [&](llvm::Error error) {
    if (error) diagnostics.fail("reading bitcode", llvm::toString(std::move(error)));
  };
  if (!read) check(read.takeError());
  std::unique_ptr<llvm::Module> module = std::move(*read);
  llvm::Function* const entry = module->getFunction(request.entry);
  if (entry == nullptr) {
    diagnostics.fail("linking", fmt::format("no kernel {} in {}", request.entry, request.file->source_file));
  }
  Reached reached;
  reached.functions.push_back(entry);
  reached.read(diagnostics);
  drop_initialisers(*module, reached, request.id, diagnostics);
  for (llvm::Function& f : *module) {
    if (!f.isMaterializable()) continue;
    f.deleteBody();
    f.setComdat(nullptr);
  }
  check(module->materializeAll());
  declare_misuse(*module);
  return module;
}

void link_into(llvm::Module& into, std::unique_ptr<llvm::Module> from, bool only_needed,
               const Diagnostics& diagnostics) {
  const unsigned flags = only_needed ? llvm::Linker::Flags::LinkOnlyNeeded : llvm::Linker::Flags::None;
  from->setDataLayout(into.getDataLayout());
  from->setTargetTriple(into.getTargetTriple());
  if (!llvm::Linker::linkModules(into, std::move(from), flags)) return;
  diagnostics.check("linking");
  diagnostics.fail("linking", "the modules do not fit together");
}

void bake_constants(llvm::Module& module, const SpecializeRequest& request, const Diagnostics& diagnostics) {
  const uint32_t checks = request.options.checks ? 1 : 0, makes_room = request.makes_room ? 1 : 0;
  std::vector<ConstantGlobal> constants = request.constants;
  constants.push_back({"coppice_debug_checks", std::as_bytes(std::span(&checks, 1))});
  constants.push_back({"coppice_makes_room", std::as_bytes(std::span(&makes_room, 1))});
  // A loop that nothing is told about is over a range, and beside others.
  for (const std::string_view name : {"coppice_loop", "coppice_is_alone"}) {
    const bool is_given = std::any_of(constants.begin(), constants.end(),
                                      [&](const ConstantGlobal& c) { return c.name == name; });
    if (!is_given) constants.push_back({name, {}});
  }
  for (const ConstantGlobal& c : constants) {
    llvm::GlobalVariable* global = module.getNamedGlobal(llvm::StringRef(c.name.data(), c.name.size()));
    if (global == nullptr) continue;  // the kernel does not look at it
    llvm::Constant* value = constant_from_bytes(global->getValueType(), c.bytes, module.getDataLayout());
    if (value == nullptr)
      diagnostics.fail("baking constants", fmt::format("{} has an unsupported type", c.name));
    global->setInitializer(value);
    global->setConstant(true);
    global->setLinkage(llvm::GlobalValue::InternalLinkage);
  }
}

void strip_target_attributes(llvm::Module& module) {
  static constexpr const char* kNames[] = {"target-cpu",
                                           "target-features",
                                           "tune-cpu",
                                           "min-legal-vector-width",
                                           "frame-pointer",
                                           "no-builtins",
                                           "stack-protector-buffer-size",
                                           "probe-stack",
                                           "no-trapping-math"};
  for (llvm::Function& f : module) {
    for (const char* name : kNames) f.removeFnAttr(name);
    f.removeFnAttr(llvm::Attribute::UWTable);
    f.setComdat(nullptr);
    for (llvm::Instruction& i : llvm::instructions(f)) {
      if (auto* call = llvm::dyn_cast<llvm::CallBase>(&i)) {
        for (const char* name : kNames) call->removeFnAttr(name);
      }
    }
  }
  for (llvm::GlobalVariable& g : module.globals()) g.setComdat(nullptr);
}

void keep_only(llvm::Module& module, std::string_view entry) {
  // "used" lists pin every kernel of the file; only one is wanted here.
  for (const char* list : {"llvm.used", "llvm.compiler.used"}) {
    if (llvm::GlobalVariable* g = module.getNamedGlobal(list)) g->eraseFromParent();
  }
  llvm::internalizeModule(module,
                          [&](const llvm::GlobalValue& g) { return std::string_view(g.getName()) == entry; });
  llvm::ModuleAnalysisManager analyses;
  llvm::PassBuilder builder;
  builder.registerModuleAnalyses(analyses);
  llvm::ModulePassManager passes;
  passes.addPass(llvm::GlobalDCEPass());
  passes.run(module, analyses);
}

void dump_module(const std::string& stem, std::string_view suffix, const llvm::Module& module) {
  if (!is_dumping()) return;
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, nullptr);
  dump_text(stem, suffix, out.str());
}

std::string emit_code(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type,
                      const Diagnostics& diagnostics) {
  llvm::SmallString<0> code;
  llvm::raw_svector_ostream out(code);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, out, nullptr, type)) {
    const char* const what = type == llvm::CodeGenFileType::ObjectFile ? "objects" : "PTX";
    diagnostics.fail("code generation", fmt::format("this target cannot emit {}", what));
  }
  passes.run(module);
  diagnostics.check("code generation");
  return std::string(code);
}

void dump_assembly(const std::string& stem, const llvm::Module& module, llvm::TargetMachine& machine) {
  if (!is_dumping()) return;
  const std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);  // code generation changes it
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream out(text);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, out, nullptr, llvm::CodeGenFileType::AssemblyFile)) return;
  passes.run(*copy);
  dump_text(stem, "s", text.str());
}

}  // namespace coppice::jit
