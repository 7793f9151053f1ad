// Interfaces of kernel files (see kernel_interface.h).
#include "gpu/jit/kernel_interface.h"

#include <fmt/format.h>
#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Module.h>

#include <set>

#include "gpu/jit/kernel_types.h"

namespace coppice::kernelgen {
namespace {

using llvm::DICompositeType;
using llvm::DIDerivedType;
using llvm::DIType;

std::string name_of(const DIType& type) {
  return TypeDeclarations::scope_of(type.getScope()) + type.getName().str();
}

std::string md5_of(const llvm::DIFile* file) {
  return file == nullptr || !file->getChecksum() ? "" : file->getChecksum()->Value.str();
}

class TypeLines {
 public:
  // Returns the type's name; what it leads to is added to the lines.
  std::string add(const DIType* type) {
    if (type == nullptr) return "void";
    if (const auto* derived = llvm::dyn_cast<DIDerivedType>(type)) {
      const std::string base = add(derived->getBaseType());
      const unsigned tag = derived->getTag();
      const bool points = tag == llvm::dwarf::DW_TAG_pointer_type ||
                          tag == llvm::dwarf::DW_TAG_reference_type ||
                          tag == llvm::dwarf::DW_TAG_rvalue_reference_type;
      return points ? base + "*" : base;  // names of types and qualifiers change nothing
    }
    const auto* record = llvm::dyn_cast<DICompositeType>(type);
    if (record == nullptr) return name_of(*type);
    if (record->getTag() == llvm::dwarf::DW_TAG_array_type) return add_array(*record);
    const std::string name = name_of(*record);
    if (!seen_.insert(record).second) return name;
    for (const auto* parameter : record->getTemplateParams()) {
      if (const auto* of = llvm::dyn_cast<llvm::DITemplateTypeParameter>(parameter)) add(of->getType());
    }
    if (record->isForwardDecl())
      lines_.insert(fmt::format("opaque {}\t\t{}", name, md5_of(record->getFile())));
    else
      add_line(*record, name);
    return name;
  }
  const std::set<std::string>& lines() const { return lines_; }

 private:
  std::string add_array(const DICompositeType& array) {
    std::string name = add(array.getBaseType());
    for (const auto* element : array.getElements()) {
      const auto* extent = llvm::dyn_cast<llvm::DISubrange>(element);
      const auto* count =
          extent == nullptr ? nullptr : llvm::dyn_cast_if_present<llvm::ConstantInt*>(extent->getCount());
      name += fmt::format("[{}]", count == nullptr ? -1 : count->getSExtValue());
    }
    return name;
  }
  void add_line(const DICompositeType& record, const std::string& name) {
    std::string line = fmt::format("{}\t{}", name, record.getSizeInBits() / 8);
    for (const auto* element : record.getElements()) {
      if (const auto* value = llvm::dyn_cast<llvm::DIEnumerator>(element))
        line += fmt::format(" {}={}", value->getName().str(), value->getValue().getSExtValue());
      const auto* part = llvm::dyn_cast<DIDerivedType>(element);
      const bool takes_room =
          part != nullptr && !part->isStaticMember() &&
          (part->getTag() == llvm::dwarf::DW_TAG_member || part->getTag() == llvm::dwarf::DW_TAG_inheritance);
      if (!takes_room) continue;
      line += fmt::format(" {}:{}@{}", part->getName().str(), add(part->getBaseType()),
                          part->getOffsetInBits() / 8);
      if (part->isBitField())
        line += fmt::format(".{}+{}", part->getOffsetInBits() % 8, part->getSizeInBits());
    }
    lines_.insert(fmt::format("type {}\t{}", line, md5_of(record.getFile())));
  }

  std::set<const DIType*> seen_;
  std::set<std::string> lines_;
};

void add_library(const llvm::Module& debug, const SourceFolders& folders, std::set<std::string>& lines) {
  llvm::DebugInfoFinder found;
  found.processModule(debug);
  const auto add = [&](const llvm::DIFile* file) {
    if (file != nullptr && folders.is_library(path_of(file)))
      lines.insert(fmt::format("library {}\t{}", path_of(file), md5_of(file)));
  };
  for (const auto* program : found.subprograms()) add(program->getFile());
  for (const auto* type : found.types()) add(type->getFile());
  for (const auto* global : found.global_variables()) add(global->getVariable()->getFile());
}

}  // namespace

std::string interface_text(const std::vector<KernelLine>& kernels, const llvm::Module& debug,
                           const SourceFolders& folders) {
  TypeLines types;
  std::set<std::string> lines;
  for (const KernelLine& k : kernels) {
    lines.insert(
        fmt::format("kernel {} {} {} {} {}", k.name, int{k.active_only}, k.effects, k.contents, k.arguments));
    for (const DIType* type : k.body->getType()->getTypeArray()) types.add(type);
  }
  lines.insert(types.lines().begin(), types.lines().end());
  add_library(debug, folders, lines);
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

}  // namespace coppice::kernelgen
