// coppice-kernelgen: reads a kernel file's bitcode (with debug information) and writes the header that declares its
// kernels to the host, and the source that embeds the bitcode.
//
//     coppice-kernelgen <debug.bc> <shipped.bc> <name> <library's folder> <Eigen's folder> <out.h> <out.cc>
//
// The header redeclares the structs that the kernel file itself defines and includes the headers that define the
// others (kernel_types.h); it asserts clang's size and offsets of each against the host compiler's. What no device can
// run is refused (kernel_rules.h). A build-time tool; needs LLVM.
#include <fmt/format.h>
#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/MemoryBuffer.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/jit/kernel_rules.h"
#include "gpu/jit/kernel_types.h"

namespace coppice::kernelgen {
namespace {

using llvm::DICompositeType;
using llvm::DIDerivedType;
using llvm::DIType;

struct KernelDeclaration {
  std::string name;
  std::string space;         // the namespace it is in, "" or "n::m"
  std::string arguments;     // C++ types
  bool active_only = false;  // as in coppice::Kernel
  uint32_t layout = 0;       // device::argument_layout as clang has it
};

// Handles name fields and places are the loop's own; every other pointer may be written through.
bool holds_pointer(const DIType* type, int depth = 0) {
  if (type == nullptr || depth > 16) return false;
  if (const auto* derived = llvm::dyn_cast<DIDerivedType>(type)) {
    if (derived->getTag() == llvm::dwarf::DW_TAG_pointer_type ||
        derived->getTag() == llvm::dwarf::DW_TAG_reference_type)
      return true;
    return holds_pointer(derived->getBaseType(), depth + 1);
  }
  const auto* record = llvm::dyn_cast<DICompositeType>(type);
  if (record == nullptr || record->getFilename().ends_with("sparse/device/handles.h") ||
      record->getFilename().ends_with("sparse/device/places.h"))
    return false;
  if (record->getTag() == llvm::dwarf::DW_TAG_array_type)
    return holds_pointer(record->getBaseType(), depth + 1);
  for (const auto* element : record->getElements()) {
    const auto* member = llvm::dyn_cast<DIDerivedType>(element);
    if (member == nullptr || member->isStaticMember()) continue;
    if (member->getTag() != llvm::dwarf::DW_TAG_member && member->getTag() != llvm::dwarf::DW_TAG_inheritance)
      continue;
    if (holds_pointer(member->getBaseType(), depth + 1)) return true;
  }
  return false;
}

// Does it print, or trap on the zeros of inactive cells? Dividing integers is the one computation that does. Divisors that
// are constants in the source are constants here; the handles' own code divides by extents only.
bool needs_active_cells(const llvm::Function& f, std::set<const llvm::Function*>& visited) {
  if (!visited.insert(&f).second) return false;
  const llvm::DISubprogram* program = f.getSubprogram();
  if (program != nullptr && program->getName().starts_with("print<") &&
      program->getFilename().ends_with("sparse/device/messages.h"))
    return true;
  if (program != nullptr && program->getFilename().contains("sparse/device/")) return false;
  for (const llvm::Instruction& i : llvm::instructions(f)) {
    const unsigned code = i.getOpcode();
    const bool divides = code == llvm::Instruction::SDiv || code == llvm::Instruction::UDiv ||
                         code == llvm::Instruction::SRem || code == llvm::Instruction::URem;
    if (divides && !llvm::isa<llvm::ConstantInt>(i.getOperand(1))) return true;
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
    if (call != nullptr && call->getCalledFunction() != nullptr &&
        needs_active_cells(*call->getCalledFunction(), visited))
      return true;
  }
  return false;
}

// The function behind a kernel's entry, by the template argument of what the entry calls: not by its name, which others
// may have, too.
const llvm::Function* body_of(const llvm::Function& entry) {
  for (const llvm::Instruction& i : llvm::instructions(entry)) {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(&i);
    const llvm::Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
    const llvm::DISubprogram* program = callee == nullptr ? nullptr : callee->getSubprogram();
    const auto* runner =
        program == nullptr ? nullptr : llvm::dyn_cast_or_null<DICompositeType>(program->getScope());
    if (runner == nullptr) continue;
    for (const auto* parameter : runner->getTemplateParams()) {
      const auto* value = llvm::dyn_cast<llvm::DITemplateValueParameter>(parameter);
      if (value == nullptr || value->getName() != "kKernel") continue;
      const auto* function = llvm::dyn_cast_or_null<llvm::ConstantAsMetadata>(value->getValue());
      if (function != nullptr) return llvm::dyn_cast<llvm::Function>(function->getValue());
    }
  }
  return nullptr;
}

std::vector<KernelDeclaration> find_kernels(const llvm::Module& module, const llvm::Module& shipped,
                                            const SourceFolders& folders, TypeDeclarations& declarations) {
  static constexpr std::string_view kPrefix = "coppice_kernel_";
  std::vector<KernelDeclaration> kernels;
  for (const llvm::Function& f : module) {
    const std::string symbol = f.getName().str();
    if (f.isDeclaration() || symbol.rfind(kPrefix, 0) != 0) continue;
    const std::string name = symbol.substr(kPrefix.size());
    const llvm::Function* const body = body_of(f);
    if (body == nullptr || body->getSubprogram() == nullptr)
      throw std::runtime_error("kernel " + name + " was not defined by COPPICE_KERNEL");
    if (const llvm::Function* entry = shipped.getFunction(symbol))
      check_kernel(*entry, name, module, folders);
    std::string arguments;
    const auto types = body->getSubprogram()->getType()->getTypeArray();
    std::set<const llvm::Function*> visited;
    bool active_only = needs_active_cells(*body, visited);
    for (unsigned i = 1; i < types.size(); ++i) {
      arguments += (i > 1 ? ", " : "") + declarations.argument(*body->getSubprogram(), types[i], i);
      active_only |= holds_pointer(types[i]);
    }
    const llvm::GlobalVariable* layout = module.getNamedGlobal("coppice_layout_" + name);
    if (layout == nullptr || !layout->hasInitializer())
      throw std::runtime_error("kernel " + name + " was not defined by COPPICE_KERNEL");
    kernels.push_back(
        {name, TypeDeclarations::scope_of(body->getSubprogram()->getScope()), arguments, active_only,
         static_cast<uint32_t>(llvm::cast<llvm::ConstantInt>(layout->getInitializer())->getZExtValue())});
  }
  if (kernels.empty()) throw std::runtime_error("no COPPICE_KERNEL in this file");
  return kernels;
}

// Text as the inside of a C++ string literal.
std::string quoted(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '"' || c == '\\') safe += '\\';
    safe += c;
  }
  return safe;
}

void write_header(const std::string& path, const std::string& name, const std::string& kernel_file,
                  const TypeDeclarations& g, const std::vector<KernelDeclaration>& kernels) {
  std::ofstream out(path);
  out << "// Kernels of " << kernel_file
      << " for the host. Generated by coppice-kernelgen; do not edit.\n#pragma once\n"
      << "#include <cstddef>\n#include <type_traits>\n#include \"gpu/jit/bitcode.h\"\n#include "
         "\"sparse/kernel.h\"\n";
  for (const std::string& include : g.includes) out << "#include \"" << include << "\"\n";
  out << "\n";
  for (const std::string& text : g.structs) out << text << "\n";
  for (const std::string& text : g.assertions) out << text;
  out << "\nextern const coppice::KernelBitcode " << name << "_kernels;\n";
  for (const KernelDeclaration& k : kernels) {
    if (!k.space.empty()) out << "namespace " << k.space.substr(0, k.space.size() - 2) << " {\n";
    // Not inline: files of one program may use the same name for different kernels.
    out << fmt::format("constexpr coppice::Kernel<void({})> {}{{&{}_kernels, \"{}\", {}}};\n", k.arguments,
                       k.name, name, k.name, k.active_only);
    if (!k.space.empty()) out << "}\n";
    out << fmt::format(
        "static_assert(coppice::device::argument_layout<{}>() == {}u, \"kernel {}: clang and the host "
        "compiler align its arguments differently\");\n",
        k.arguments, k.layout, k.name);
  }
}

void write_source(const std::string& path, const std::string& header, const std::string& name,
                  const std::string& source_file, const std::string& bitcode) {
  std::ofstream out(path);
  out << "// Embedded bitcode of " << source_file << ". Generated by coppice-kernelgen; do not edit.\n"
      << "#include \"" << header << "\"\n\n"
      << fmt::format(
             "asm(\".section .rodata,\\\"a\\\"\\n.balign 16\\n.local "
             "coppice_{0}_begin\\ncoppice_{0}_begin:\\n.incbin \\\"{1}\\\"\\n"
             ".local coppice_{0}_end\\ncoppice_{0}_end:\\n.byte 0\\n.previous\\n\");\n",
             name, quoted(quoted(bitcode)))
      << fmt::format("extern \"C\" const std::byte coppice_{0}_begin[], coppice_{0}_end[];\n", name)
      << fmt::format(
             "const coppice::KernelBitcode {0}_kernels{{\"{0}\", \"{1}\", {{coppice_{0}_begin, "
             "coppice_{0}_end}}}};\n",
             name, quoted(source_file));
}

std::unique_ptr<llvm::Module> read(const char* path, llvm::LLVMContext& context) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer) throw std::runtime_error(std::string(path) + ": " + buffer.getError().message());
  auto module = llvm::parseBitcodeFile((*buffer)->getMemBufferRef(), context);
  if (!module) throw std::runtime_error(std::string(path) + ": " + llvm::toString(module.takeError()));
  return std::move(*module);
}

int run(int argc, char** argv) {
  if (argc != 8) {
    std::fprintf(
        stderr,
        "usage: coppice-kernelgen <debug.bc> <shipped.bc> <name> <library's folder> <Eigen's folder> <out.h> "
        "<out.cc>\n");
    return 2;
  }
  // A context each: types of one module would change their names in the other's.
  llvm::LLVMContext context, shipped_context;
  const auto module = read(argv[1], context), shipped = read(argv[2], shipped_context);
  // The file's own name must be known before the first type is looked at.
  std::string kernel_file;
  for (const llvm::DICompileUnit* unit : module->debug_compile_units()) kernel_file = path_of(unit);
  const SourceFolders folders(kernel_file, argv[4], argv[5]);
  TypeDeclarations declarations(folders);
  check_file(*shipped, *module, folders);
  const auto kernels = find_kernels(*module, *shipped, folders, declarations);
  write_header(argv[6], argv[3], kernel_file, declarations, kernels);
  write_source(argv[7], argv[6], argv[3], kernel_file, argv[2]);
  return 0;
}

}  // namespace
}  // namespace coppice::kernelgen

int main(int argc, char** argv) try {
  return coppice::kernelgen::run(argc, argv);
} catch (const std::exception& e) {
  std::fprintf(stderr, "coppice-kernelgen: error: %s\n", e.what());
  return 1;
}
