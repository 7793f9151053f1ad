// coppice-kernelgen: reads a kernel file's bitcode (with debug information) and writes the header that declares its
// kernels to the host, and the source that embeds the bitcode.
//
//     coppice-kernelgen <debug.bc> <shipped.bc> <name> <out.h> <out.cc>
//
// The header redeclares the structs that the kernel file itself defines and includes the headers that define the
// others; it asserts clang's size and offsets of each against the host compiler's. A build-time tool; needs LLVM.
#include <fmt/format.h>
#include <llvm/ADT/SmallString.h>
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
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "gpu/jit/inactive_cells.h"

namespace {

using llvm::DICompositeType;
using llvm::DIDerivedType;
using llvm::DIType;

// clang names a file from the folder that it shares with the build, if any; only together with that it is one name.
template <class Scope>
std::string path_of(const Scope* scope) {
  const std::string file = scope->getFilename().str();
  return file.empty() || file[0] == '/' ? file : scope->getDirectory().str() + "/" + file;
}

// The host has these without being told; coppice's own, which may be installed among them, it must include.
bool is_system_header(const std::string& file) {
  return (file.rfind("/usr/include/", 0) == 0 || file.rfind("/usr/lib/", 0) == 0) &&
         file.find("/include/coppice/") == std::string::npos;
}

struct Generator {
  std::string kernel_file;              // as clang saw it
  std::set<std::string> includes;       // headers that define argument types
  std::vector<std::string> structs;     // definitions, in dependency order
  std::vector<std::string> assertions;  // sizes and offsets
  std::set<const DIType*> seen;

  std::string scope_of(const llvm::DIScope* scope) const {
    std::string prefix;
    for (; scope != nullptr && !llvm::isa<llvm::DIFile>(scope); scope = scope->getScope()) {
      if (const auto* space = llvm::dyn_cast<llvm::DINamespace>(scope)) {
        if (!space->getName().empty()) prefix = space->getName().str() + "::" + prefix;
      } else if (const auto* type = llvm::dyn_cast<DIType>(scope)) {
        prefix = type->getName().str() + "::" + prefix;
      }
    }
    return prefix;
  }

  // Debug information prints template arguments without the namespaces of typedefs but with those of classes.
  std::string name_of(const DIType* type) {
    if (type == nullptr) return "void";
    if (const auto* derived = llvm::dyn_cast<DIDerivedType>(type)) {
      const DIType* base = derived->getBaseType();
      switch (derived->getTag()) {
        case llvm::dwarf::DW_TAG_pointer_type:
          return name_of(base) + "*";
        case llvm::dwarf::DW_TAG_const_type:
          return "const " + name_of(base);
        case llvm::dwarf::DW_TAG_reference_type:
          return name_of(base) + "&";
        case llvm::dwarf::DW_TAG_restrict_type:
          return name_of(base);
        case llvm::dwarf::DW_TAG_volatile_type:
          return "volatile " + name_of(base);
        case llvm::dwarf::DW_TAG_typedef:
          declare(base);
          return name_of(base);
        default:
          break;
      }
    }
    declare(type);
    return scope_of(type->getScope()) + type->getName().str();
  }

  std::string member_declaration(const DIDerivedType* member) {
    const DIType* type = member->getBaseType();
    std::string suffix;
    while (const auto* array = llvm::dyn_cast_or_null<DICompositeType>(type)) {
      if (array->getTag() != llvm::dwarf::DW_TAG_array_type) break;
      for (const auto* element : array->getElements()) {
        const auto* range = llvm::cast<llvm::DISubrange>(element);
        if (auto* count = llvm::dyn_cast_if_present<llvm::ConstantInt*>(range->getCount())) {
          suffix += fmt::format("[{}]", count->getSExtValue());
        }
      }
      type = array->getBaseType();
    }
    return fmt::format("  {} {}{};\n", name_of(type), member->getName().str(), suffix);
  }

  // Makes a class or enumeration known to the header: defined in the kernel file -> redeclare; in a header -> include that.
  void declare(const DIType* type) {
    const auto* record = llvm::dyn_cast_or_null<DICompositeType>(type);
    if (record == nullptr || record->getTag() == llvm::dwarf::DW_TAG_array_type || !seen.insert(type).second)
      return;
    for (const auto* parameter : record->getTemplateParams()) {
      if (const auto* of_type = llvm::dyn_cast<llvm::DITemplateTypeParameter>(parameter))
        name_of(of_type->getType());
    }
    const std::string file = path_of(record);
    const std::string name = scope_of(record->getScope()) + record->getName().str();
    const bool is_template = record->getName().contains('<');
    if (file != kernel_file) {
      // core/math.h fixes the alignment of Eigen's types, so it is how the host must come by them.
      if (file.find("/Eigen/") != std::string::npos) {
        includes.insert("core/math.h");
      } else if (file.find("sparse/device/") == std::string::npos && !is_system_header(file)) {
        includes.insert(file);
      }
    } else if (is_template || !scope_of(record->getScope()).empty()) {
      refuse(record, name, "must be a plain struct at global scope");
    } else if (record->getTag() == llvm::dwarf::DW_TAG_enumeration_type) {
      redeclare_enumeration(record, name);
    } else {
      redeclare_struct(record, name);
    }
    if (!is_template && record->getTag() != llvm::dwarf::DW_TAG_enumeration_type) assert_layout(record, name);
  }

 private:
  [[noreturn]] void refuse(const DICompositeType* record, const std::string& name, const char* why) const {
    throw std::runtime_error(
        fmt::format("{}:{}: argument type {} {}, or be defined in a header that the host includes, too",
                    path_of(record), record->getLine(), name, why));
  }

  static std::vector<const DIDerivedType*> data_members(const DICompositeType* record) {
    std::vector<const DIDerivedType*> members;
    for (const auto* element : record->getElements()) {
      const auto* member = llvm::dyn_cast<DIDerivedType>(element);
      if (member != nullptr && member->getTag() == llvm::dwarf::DW_TAG_member && !member->isStaticMember())
        members.push_back(member);
    }
    return members;
  }

  void redeclare_struct(const DICompositeType* record, const std::string& name) {
    if (record->getTag() == llvm::dwarf::DW_TAG_union_type) refuse(record, name, "must be no union");
    for (const auto* element : record->getElements()) {
      const auto* part = llvm::dyn_cast<DIDerivedType>(element);
      if (part == nullptr) continue;
      if (part->getTag() == llvm::dwarf::DW_TAG_inheritance) refuse(record, name, "must have no base class");
      if (part->isBitField()) refuse(record, name, "must have no bit-fields");
      if (part->getTag() == llvm::dwarf::DW_TAG_member && part->getName().empty())
        refuse(record, name, "must have no unnamed members");
    }
    const std::string alignment =
        record->getAlignInBytes() > 0 ? fmt::format("alignas({}) ", record->getAlignInBytes()) : "";
    std::string text = fmt::format("struct {}{} {{\n", alignment, name);
    for (const auto* member : data_members(record)) text += member_declaration(member);
    structs.push_back(text + "};\n");
  }

  void redeclare_enumeration(const DICompositeType* record, const std::string& name) {
    const bool scoped = (record->getFlags() & llvm::DINode::FlagEnumClass) != 0;
    std::string text =
        fmt::format("enum {}{} : {} {{\n", scoped ? "class " : "", name, name_of(record->getBaseType()));
    for (const auto* element : record->getElements()) {
      const auto* value = llvm::cast<llvm::DIEnumerator>(element);
      llvm::SmallString<24> number;
      value->getValue().toString(number, 10, !value->isUnsigned());
      text += fmt::format("  {} = {},\n", value->getName().str(), number.str().str());
    }
    structs.push_back(text + "};\n");
  }

  void assert_layout(const DICompositeType* record, const std::string& name) {
    assertions.push_back(fmt::format(
        "static_assert(sizeof({0}) == {1}, \"{0} differs between clang and the host compiler\");\n", name,
        record->getSizeInBits() / 8));
    for (const auto* member : data_members(record)) {
      if (member->getFlags() & (llvm::DINode::FlagPrivate | llvm::DINode::FlagProtected)) continue;
      if (member->getName().empty() || member->isBitField()) continue;
      assertions.push_back(fmt::format("static_assert(offsetof({}, {}) == {});\n", name,
                                       member->getName().str(), member->getOffsetInBits() / 8));
    }
  }
};

struct KernelDeclaration {
  std::string name;
  std::string arguments;     // C++ types
  bool active_only = false;  // as in coppice::Kernel
  std::string why;           // it is, where it is over cells: file, line and what is there
  uint32_t layout = 0;       // device::argument_layout as clang has it
};

std::vector<KernelDeclaration> find_kernels(const llvm::Module& module, Generator& generator) {
  static constexpr std::string_view kPrefix = "coppice_kernel_";
  std::map<std::string, const llvm::Function*> bodies;
  for (const llvm::Function& f : module) {
    // Member functions of the same name, and other headers' functions, are not it.
    const llvm::DISubprogram* program = f.getSubprogram();
    if (program == nullptr || path_of(program) != generator.kernel_file ||
        llvm::isa_and_nonnull<DIType>(program->getScope()))
      continue;
    bodies.emplace(program->getName().str(), &f);
  }
  std::vector<KernelDeclaration> kernels;
  const std::map<std::string, std::string> why_active_only = coppice::jit::why_active_only(module);
  for (const llvm::Function& f : module) {
    const std::string symbol = f.getName().str();
    if (f.isDeclaration() || symbol.rfind(kPrefix, 0) != 0) continue;
    const std::string name = symbol.substr(kPrefix.size());
    const auto found = bodies.find(name);
    if (found == bodies.end()) throw std::runtime_error("kernel " + name + " has no debug information");
    std::string arguments;
    const auto types = found->second->getSubprogram()->getType()->getTypeArray();
    const auto why = why_active_only.find(name);
    for (unsigned i = 1; i < types.size(); ++i) {
      arguments += (i > 1 ? ", " : "") + generator.name_of(types[i]);
    }
    const llvm::GlobalVariable* layout = module.getNamedGlobal("coppice_layout_" + name);
    if (layout == nullptr || !layout->hasInitializer())
      throw std::runtime_error("kernel " + name + " was not defined by COPPICE_KERNEL");
    kernels.push_back(
        {name, arguments, why == why_active_only.end() || !why->second.empty(),
         why == why_active_only.end() ? "" : why->second,
         static_cast<uint32_t>(llvm::cast<llvm::ConstantInt>(layout->getInitializer())->getZExtValue())});
  }
  if (kernels.empty()) throw std::runtime_error("no COPPICE_KERNEL in this file");
  return kernels;
}

void write_header(const std::string& path, const std::string& name, const Generator& g,
                  const std::vector<KernelDeclaration>& kernels) {
  std::ofstream out(path);
  out << "// Kernels of " << g.kernel_file
      << " for the host. Generated by coppice-kernelgen; do not edit.\n#pragma once\n"
      << "#include <cstddef>\n#include \"gpu/jit/bitcode.h\"\n#include \"sparse/kernel.h\"\n";
  for (const std::string& include : g.includes) out << "#include \"" << include << "\"\n";
  out << "\n";
  for (const std::string& text : g.structs) out << text << "\n";
  for (const std::string& text : g.assertions) out << text;
  out << "\nextern const coppice::KernelBitcode " << name << "_kernels;\n";
  for (const KernelDeclaration& k : kernels) {
    if (!k.why.empty()) out << "// Runs for active cells only, one by one, because of " << k.why << "\n";
    // Not inline: files of one program may use the same name for different kernels.
    out << fmt::format("constexpr coppice::Kernel<void({})> {}{{&{}_kernels, \"{}\", {}}};\n", k.arguments,
                       k.name, name, k.name, k.active_only);
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
             name, bitcode)
      << fmt::format("extern \"C\" const std::byte coppice_{0}_begin[], coppice_{0}_end[];\n", name)
      << fmt::format(
             "const coppice::KernelBitcode {0}_kernels{{\"{0}\", \"{1}\", {{coppice_{0}_begin, "
             "coppice_{0}_end}}}};\n",
             name, source_file);
}

int run(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: coppice-kernelgen <debug.bc> <shipped.bc> <name> <out.h> <out.cc>\n");
    return 2;
  }
  llvm::LLVMContext context;
  auto buffer = llvm::MemoryBuffer::getFile(argv[1]);
  if (!buffer) throw std::runtime_error(std::string(argv[1]) + ": " + buffer.getError().message());
  auto module = llvm::parseBitcodeFile((*buffer)->getMemBufferRef(), context);
  if (!module) throw std::runtime_error(std::string(argv[1]) + ": " + llvm::toString(module.takeError()));
  Generator generator;
  // The file's own name must be known before the first type is looked at.
  for (const llvm::DICompileUnit* unit : (*module)->debug_compile_units())
    generator.kernel_file = path_of(unit);
  const auto kernels = find_kernels(**module, generator);
  write_header(argv[4], argv[3], generator, kernels);
  write_source(argv[5], argv[4], argv[3], generator.kernel_file, argv[2]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) try { return run(argc, argv); } catch (const std::exception& e) {
  std::fprintf(stderr, "coppice-kernelgen: error: %s\n", e.what());
  return 1;
}
