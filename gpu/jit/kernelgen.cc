// coppice-kernelgen: reads a kernel file's bitcode (with debug information) and writes the header that
// declares its kernels to the host, and the source that embeds the bitcode.
//
//     coppice-kernelgen <debug.bc> <shipped.bc> <name> <library's folder> <Eigen's folder> <out.h> <out.cc> [recipe]
//     coppice-kernelgen --interface <debug.bc> <shipped.bc> <name> <library's folder> <Eigen's folder> <out> <known>
//
// The second form writes the interface alone (kernel_interface.h): a running program asks for it, which takes
// over changed kernels. <shipped.bc> may be "-", the standard input, which is read when the rest is. <known>
// has lines of earlier interfaces: kernels whose contents are there are not judged again, which takes most of
// the time. `recipe` is the file by which it finds out how to compile them
// (gpu/kernel_builder.h).
//
// The header redeclares the structs that the kernel file itself defines, and those of headers that have
// kernels, and includes the headers that define the others (kernel_types.h); it asserts clang's size and
// offsets of each against the host compiler's. What several kernel files have of one header is declared by
// the first of their generated headers that a source includes, and #error says where they differ. What no
// device can run is refused (kernel_rules.h). A build-time tool; needs LLVM.
#include <fmt/format.h>
#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/MemoryBuffer.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gpu/jit/c_names.h"
#include "gpu/jit/inactive_cells.h"
#include "gpu/jit/kernel_contents.h"
#include "gpu/jit/kernel_effects.h"
#include "gpu/jit/kernel_interface.h"
#include "gpu/jit/kernel_rules.h"
#include "gpu/jit/kernel_structure.h"
#include "gpu/jit/kernel_types.h"

namespace coppice::kernelgen {
namespace {

using llvm::DICompositeType;

// The symbols that COPPICE_KERNEL and COPPICE_KERNEL_2D_3D define (sparse/device/define_kernel.h).
constexpr std::string_view kPrefix = "coppice_kernel_";
constexpr std::string_view kPairMark = "coppice_kernel_2d_3d_";

struct KernelDeclaration {
  std::string name;
  std::string space;      // the namespace it is in, "" or "n::m"
  std::string arguments;  // C++ types
  std::string body_symbol;
  bool active_only = false;  // as in coppice::Kernel
  std::string why;           // it is, where it is over cells: file, line and what is there
  uint32_t layout = 0;       // device::argument_layout as clang has it
  uint32_t effects = 0;      // coppice::kActivatesCells and the like
  const llvm::DISubprogram* body = nullptr;
  std::string contents;    // KernelContents::hash()
  std::string header;      // that has it; empty: the kernel file itself
  uint64_t structure = 0;  // kernel_structure(), of one in a header
};

// Returns the function behind a kernel's entry, by the template argument of what the entry calls: not by
// its name, which others may have, too.
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

std::string place_of(const llvm::Function& f) {
  const llvm::DISubprogram* const program = f.getSubprogram();
  return program == nullptr ? "" : fmt::format("{}:{}: ", path_of(program), program->getLine());
}

// The host could not name such a kernel, nor both of COPPICE_KERNEL_2D_3D.
void refuse_names_of_c(const llvm::Function& entry, const std::string& name, const llvm::Module& module) {
  const std::string stem = name.substr(0, name.size() - std::min<size_t>(3, name.size()));
  const bool is_of_pair = module.getNamedGlobal(std::string(kPairMark) + stem) != nullptr;
  for (const std::string& called : {name, is_of_pair ? stem : name}) {
    if (is_name_of_c(called))
      throw std::runtime_error(
          fmt::format("{}kernel {} is called as a function of C's library, so that the host could not "
                      "name it; give it another name or a namespace",
                      place_of(entry), called));
  }
}

bool is_entry(const llvm::Function& f) {
  return !f.isDeclaration() && f.getName().starts_with(llvm::StringRef(kPrefix));
}

// Notes the headers in which a COPPICE_KERNEL stands.
void find_kernel_headers(const llvm::Module& module, SourceFolders& folders) {
  for (const llvm::Function& f : module) {
    const bool has_place = is_entry(f) && f.getSubprogram() != nullptr;
    if (has_place) folders.add_kernel_header(path_of(f.getSubprogram()));
  }
}

std::vector<KernelDeclaration> find_kernels(const llvm::Module& module, const SourceFolders& folders,
                                            TypeDeclarations& declarations) {
  std::vector<KernelDeclaration> kernels;
  for (const llvm::Function& f : module) {
    if (!is_entry(f)) continue;
    const std::string name = f.getName().substr(kPrefix.size()).str();
    const llvm::Function* const body = body_of(f);
    if (body == nullptr || body->getSubprogram() == nullptr)
      throw std::runtime_error(place_of(f) + "kernel " + name + " was not defined by COPPICE_KERNEL");
    std::string arguments;
    const auto types = body->getSubprogram()->getType()->getTypeArray();
    const std::string space = TypeDeclarations::scope_of(body->getSubprogram()->getScope());
    if (space.empty()) refuse_names_of_c(f, name, module);
    for (unsigned i = 1; i < types.size(); ++i) {
      arguments += (i > 1 ? ", " : "") + declarations.argument(*body->getSubprogram(), types[i], i);
    }
    const llvm::GlobalVariable* layout =
        module.getNamedGlobal("coppice_only_kernel_in_this_file_with_the_name_" + name);
    if (layout == nullptr || !layout->hasInitializer())
      throw std::runtime_error(place_of(f) + "kernel " + name + " was not defined by COPPICE_KERNEL");
    KernelDeclaration& k = kernels.emplace_back();
    k.name = name, k.space = space, k.arguments = arguments;
    k.layout = static_cast<uint32_t>(llvm::cast<llvm::ConstantInt>(layout->getInitializer())->getZExtValue());
    k.body = body->getSubprogram(), k.body_symbol = body->getName().str();
    const std::string file = f.getSubprogram() == nullptr ? "" : path_of(f.getSubprogram());
    if (folders.is_kernel_header(file)) k.header = file, k.structure = kernel_structure(f);
  }
  if (kernels.empty()) throw std::runtime_error("no COPPICE_KERNEL in this file");
  return kernels;
}

// Finds the names that COPPICE_KERNEL_2D_3D was given.
std::vector<std::string> find_pairs(const llvm::Module& module) {
  std::vector<std::string> names;
  for (const llvm::GlobalVariable& global : module.globals()) {
    if (global.getName().starts_with(llvm::StringRef(kPairMark)))
      names.push_back(global.getName().substr(kPairMark.size()).str());
  }
  return names;
}

// Holds what is known of kernels by their names and contents.
struct Facts {
  bool active_only = false;
  uint32_t effects = 0;
};
using KnownKernels = std::map<std::pair<std::string, std::string>, Facts>;

KnownKernels read_known(const std::string& path) {
  KnownKernels known;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string what, name, contents;
    Facts facts;
    if (words >> what >> name >> facts.active_only >> facts.effects >> contents && what == "kernel")
      known[{name, contents}] = facts;
  }
  return known;
}

// Finds what only the bitcode that is shipped tells, and whether devices can run it.
void look_at_shipped(const llvm::Module& shipped, const llvm::Module& debug, const SourceFolders& folders,
                     const KnownKernels& known, std::vector<KernelDeclaration>& kernels) {
  const KernelContents contents(shipped);
  for (KernelDeclaration& k : kernels) {
    const llvm::Function* const entry = shipped.getFunction(std::string(kPrefix) + k.name);
    if (entry == nullptr) throw std::runtime_error("no kernel " + k.name + " in the bitcode to be shipped");
    k.contents = contents.hash(*entry);
    if (!known.contains({k.name, k.contents})) check_kernel(*entry, k.name, debug, folders);
  }
}

// Finds what kernels do, by the bitcode as it was written.
void judge(const llvm::Module& debug, const KnownKernels& known, std::vector<KernelDeclaration>& kernels) {
  std::set<std::string> names;
  std::map<std::string, std::string> bodies;
  for (KernelDeclaration& k : kernels) {
    if (const auto found = known.find({k.name, k.contents}); found != known.end()) {
      k.active_only = found->second.active_only, k.effects = found->second.effects;
    } else {
      names.insert(k.name), bodies[k.name] = k.body_symbol;
    }
  }
  if (names.empty()) return;
  const std::map<std::string, std::string> why = coppice::jit::why_active_only(debug, names);
  const std::map<std::string, uint32_t> effects = coppice::jit::kernel_effects(debug, bodies);
  for (KernelDeclaration& k : kernels) {
    if (!names.contains(k.name)) continue;
    const auto reason = why.find(k.name);
    k.active_only = reason == why.end() || !reason->second.empty();
    if (reason != why.end()) k.why = reason->second;
    k.effects = effects.at(k.name);
  }
}

// Returns text as the inside of a C++ string literal.
std::string in_quotes(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '"' || c == '\\') safe += '\\';
    safe += c;
  }
  return safe;
}

// Returns a kernel's constant, in its namespace.
std::string declaration_of(const KernelDeclaration& k, const std::string& file) {
  std::string text;
  if (!k.why.empty()) text += "// Runs for active cells only, one by one, because of " + k.why + "\n";
  // They are not inline: files of one program may use the same name for different kernels.
  text += fmt::format("constexpr coppice::Kernel<void({})> {}{{&{}_kernels, \"{}\", {}, {}u}};\n",
                      k.arguments, k.name, file, k.name, k.active_only, k.effects);
  text = in_namespace(k.space, text);
  if (k.header.empty()) return text;
  return shared_by_headers("kernel " + k.space + k.name, k.header, k.structure, text);
}

// Returns what the host calls diffuse<D> of COPPICE_KERNEL_2D_3D(diffuse, ...).
std::string declaration_of_pair(const std::string& name, const std::vector<KernelDeclaration>& kernels) {
  const auto find = [&](const char* end) -> const KernelDeclaration& {
    const auto is_it = [&](const KernelDeclaration& k) { return k.name == name + end; };
    return *std::find_if(kernels.begin(), kernels.end(), is_it);
  };
  const KernelDeclaration &two = find("_2d"), &three = find("_3d");
  const std::string text = in_namespace(
      two.space, fmt::format("template <int kDimensions>\nconstexpr const auto& {0} = "
                             "coppice::detail::kernel_of_dimensions<kDimensions>({0}_2d, {0}_3d);\n",
                             name));
  if (two.header.empty()) return text;
  return shared_by_headers("kernel " + two.space + name, two.header, two.structure ^ three.structure, text);
}

void write_header(const std::string& path, const std::string& name, const std::string& kernel_file,
                  const TypeDeclarations& g, const std::vector<KernelDeclaration>& kernels,
                  const std::vector<std::string>& pairs) {
  std::ofstream out(path);
  out << "// Kernels of " << kernel_file
      << " for the host. Generated by coppice-kernelgen; do not edit.\n#pragma once\n"
      << "#if !__has_include(\"sparse/kernel.h\")\n#error \"a target with kernels needs the library: "
         "target_link_libraries(your_program PRIVATE coppice::coppice)\"\n#endif\n"
      << "#include <cstddef>\n#include <type_traits>\n#include \"gpu/jit/bitcode.h\"\n#include "
         "\"sparse/kernel.h\"\n";
  for (const std::string& include : g.includes)
    out << "#include " << (include[0] == '<' ? include : '"' + include + '"') << "\n";
  out << "\n";
  for (const std::string& text : g.structs) out << text << "\n";
  for (const std::string& text : g.assertions) out << text;
  out << "\nextern const coppice::KernelBitcode " << name << "_kernels;\n";
  for (const KernelDeclaration& k : kernels) {
    out << declaration_of(k, name);
    out << fmt::format(
        "static_assert(coppice::device::argument_layout<{}>() == {}u, \"kernel {}: clang and the host "
        "compiler align its arguments differently\");\n",
        k.arguments, k.layout, k.name);
  }
  for (const std::string& pair : pairs) out << declaration_of_pair(pair, kernels);
}

std::string interface_of(const std::vector<KernelDeclaration>& kernels, const llvm::Module& debug,
                         const SourceFolders& folders) {
  std::vector<KernelLine> lines;
  for (const KernelDeclaration& k : kernels)
    lines.push_back(
        {k.name, k.active_only, k.effects, k.contents, fmt::format("{} {}", k.layout, k.arguments), k.body});
  return interface_text(lines, debug, folders);
}

void write_source(const std::string& path, const std::string& header, const std::string& name,
                  const std::string& source_file, const std::string& bitcode, const std::string& interface,
                  const std::string& recipe) {
  std::ofstream out(path);
  out << "// Embedded bitcode of " << source_file << ". Generated by coppice-kernelgen; do not edit.\n"
      << "#include \"" << header << "\"\n\n"
      << fmt::format(
             "asm(\".section .rodata,\\\"a\\\"\\n.balign 16\\n.local "
             "coppice_{0}_begin\\ncoppice_{0}_begin:\\n.incbin \\\"{1}\\\"\\n"
             ".local coppice_{0}_end\\ncoppice_{0}_end:\\n.byte 0\\n.previous\\n\");\n",
             name, in_quotes(in_quotes(bitcode)))
      << fmt::format("extern \"C\" const std::byte coppice_{0}_begin[], coppice_{0}_end[];\n", name)
      << fmt::format("const coppice::KernelBitcode {0}_kernels{{\"{0}\", \"{1}\", {{coppice_{0}_begin, ",
                     name, in_quotes(source_file));
  if (recipe.empty()) {
    out << fmt::format("coppice_{0}_end}}}};\n", name);
  } else {
    out << fmt::format("coppice_{0}_end}},\n    R\"interface({1})interface\",\n    \"{2}\"}};\n", name,
                       interface, in_quotes(recipe));
  }
}

std::unique_ptr<llvm::Module> read(const char* path, llvm::LLVMContext& context) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(path);
  if (!buffer) throw std::runtime_error(std::string(path) + ": " + buffer.getError().message());
  auto module = llvm::parseBitcodeFile((*buffer)->getMemBufferRef(), context);
  if (!module) throw std::runtime_error(std::string(path) + ": " + llvm::toString(module.takeError()));
  return std::move(*module);
}

int run(int argc, char** argv) {
  const bool tells_interface = argc == 9 && std::string_view(argv[1]) == "--interface";
  if (argc != 8 && argc != 9) {
    std::fprintf(
        stderr,
        "usage: coppice-kernelgen <debug.bc> <shipped.bc> <name> <library's folder> <Eigen's folder> <out.h> "
        "<out.cc> [recipe]\n       coppice-kernelgen --interface <debug.bc> <shipped.bc> <name> <library's "
        "folder> <Eigen's folder> <out> <known>\n");
    return 2;
  }
  const std::vector<std::string> words(argv + (tells_interface ? 2 : 1), argv + argc);
  // Each module has a context of its own: types of one would change their names in the other's.
  llvm::LLVMContext context, shipped_context;
  const auto module = read(words[0].c_str(), context);
  // The file's own name must be known before the first type is looked at.
  std::string kernel_file;
  for (const llvm::DICompileUnit* unit : module->debug_compile_units()) kernel_file = path_of(unit);
  SourceFolders folders(kernel_file, words[3], words[4]);
  find_kernel_headers(*module, folders);
  TypeDeclarations declarations(folders, *module);
  check_file(*module);
  auto kernels = find_kernels(*module, folders, declarations);
  const auto shipped = read(words[1].c_str(), shipped_context);
  const KnownKernels known = tells_interface ? read_known(words[6]) : KnownKernels();
  look_at_shipped(*shipped, *module, folders, known, kernels);
  judge(*module, known, kernels);
  if (tells_interface) {
    std::ofstream(words[5]) << interface_of(kernels, *module, folders);
    return 0;
  }
  write_header(words[5], words[2], kernel_file, declarations, kernels, find_pairs(*module));
  write_source(words[6], words[5], words[2], kernel_file, words[1], interface_of(kernels, *module, folders),
               words.size() > 7 ? words[7] : "");
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
