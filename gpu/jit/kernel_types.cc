// Argument types from debug information (see kernel_types.h).
#include "gpu/jit/kernel_types.h"

#include <fmt/format.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>

#include <stdexcept>

namespace coppice::kernelgen {
namespace {

using llvm::DICompositeType;
using llvm::DIDerivedType;
using llvm::DIType;

[[noreturn]] void refuse(const DICompositeType& record, const std::string& name, const char* why) {
  throw std::runtime_error(
      fmt::format("{}:{}: argument type {} {}, or be defined in a header that the host includes, too",
                  path_of(&record), record.getLine(), name, why));
}

std::vector<const DIDerivedType*> data_members(const DICompositeType& record) {
  std::vector<const DIDerivedType*> members;
  for (const auto* element : record.getElements()) {
    const auto* member = llvm::dyn_cast<DIDerivedType>(element);
    if (member != nullptr && member->getTag() == llvm::dwarf::DW_TAG_member && !member->isStaticMember())
      members.push_back(member);
  }
  return members;
}

bool is_in_a_class(const DIType& type) { return llvm::isa_and_nonnull<DIType>(type.getScope()); }

}  // namespace

std::string TypeDeclarations::scope_of(const llvm::DIScope* scope) {
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

std::string TypeDeclarations::argument(const llvm::DISubprogram& kernel, const DIType* type,
                                       unsigned number) {
  const Owner owner{fmt::format("kernel {}: argument {}", kernel.getName().str(), number),
                    fmt::format("{}:{}", path_of(&kernel), kernel.getLine())};
  // Only constant references compile (sparse/device/drivers.h).
  const auto* reference = llvm::dyn_cast_or_null<DIDerivedType>(type);
  if (reference != nullptr && reference->getTag() == llvm::dwarf::DW_TAG_reference_type) {
    const auto* constant = llvm::cast<DIDerivedType>(reference->getBaseType());
    type = constant->getTag() == llvm::dwarf::DW_TAG_const_type ? constant->getBaseType() : constant;
  }
  return name_of(type, owner);
}

// Debug information prints template arguments without the namespaces of typedefs but with those of classes.
std::string TypeDeclarations::name_of(const DIType* type, const Owner& owner) {
  if (type == nullptr) return "void";
  if (const auto* derived = llvm::dyn_cast<DIDerivedType>(type)) {
    const DIType* base = derived->getBaseType();
    switch (derived->getTag()) {
      case llvm::dwarf::DW_TAG_pointer_type:
        return name_of(base, owner) + "*";
      case llvm::dwarf::DW_TAG_const_type:
        return name_of(base, owner) + " const";
      case llvm::dwarf::DW_TAG_volatile_type:
        return name_of(base, owner) + " volatile";
      case llvm::dwarf::DW_TAG_reference_type:
        return name_of(base, owner) + "&";
      case llvm::dwarf::DW_TAG_restrict_type:
      case llvm::dwarf::DW_TAG_typedef:
        return name_of(base, owner);
      case llvm::dwarf::DW_TAG_ptr_to_member_type:
        throw std::runtime_error(
            fmt::format("{}: {} is or holds a pointer to a member; give a number and use a switch",
                        owner.position, owner.what));
      default:
        break;
    }
  }
  if (llvm::isa<llvm::DISubroutineType>(type))
    throw std::runtime_error(
        fmt::format("{}: {} is or holds a pointer to a function, which has no address on a device; give a "
                    "number and use a switch",
                    owner.position, owner.what));
  const auto* record = llvm::dyn_cast<DICompositeType>(type);
  if (record != nullptr && record->getTag() == llvm::dwarf::DW_TAG_array_type)
    return name_of_array(*record, owner);
  declare(type, owner);
  return scope_of(type->getScope()) + type->getName().str();
}

// As a type of its own, `float[2][3]`, wherever an array may stand.
std::string TypeDeclarations::name_of_array(const DICompositeType& array, const Owner& owner) {
  if (array.isVector())
    throw std::runtime_error(
        fmt::format("{}: {} is or holds a vector of the compiler's; use an array or Eigen's types",
                    owner.position, owner.what));
  std::string extents;
  for (const auto* element : array.getElements()) {
    const auto* range = llvm::cast<llvm::DISubrange>(element);
    auto* count = llvm::dyn_cast_if_present<llvm::ConstantInt*>(range->getCount());
    if (count == nullptr || count->getSExtValue() < 0)
      throw std::runtime_error(fmt::format("{}: {} is or holds an array without a size; use a pointer",
                                           owner.position, owner.what));
    extents += fmt::format("[{}]", count->getSExtValue());
  }
  return fmt::format("std::type_identity_t<{}{}>", name_of(array.getBaseType(), owner), extents);
}

// Makes a class or enumeration known to the header: defined in the kernel file -> redeclare; in a header -> include that.
void TypeDeclarations::declare(const DIType* type, const Owner& owner) {
  const auto* record = llvm::dyn_cast_or_null<DICompositeType>(type);
  if (record == nullptr || !seen_.insert(type).second) return;
  for (const auto* parameter : record->getTemplateParams()) {
    if (const auto* of_type = llvm::dyn_cast<llvm::DITemplateTypeParameter>(parameter))
      name_of(of_type->getType(), owner);
  }
  const std::string file = path_of(record);
  const std::string name = scope_of(record->getScope()) + record->getName().str();
  const bool is_template = record->getName().contains('<');
  if (record->getName().empty()) refuse(*record, "without a name", "must have one");
  if (!folders_.is_kernel_file(file)) {
    include_header_of(file);
  } else if (is_template) {
    refuse(*record, name, "must be a plain struct, not a template");
  } else if (is_in_a_class(*record) || llvm::isa_and_nonnull<llvm::DILocalScope>(record->getScope())) {
    refuse(*record, name, "must be outside of classes and functions");
  } else if (record->getTag() == llvm::dwarf::DW_TAG_enumeration_type) {
    redeclare_enumeration(*record, name);
  } else {
    redeclare_struct(*record, name);
  }
  if (!is_template && record->getTag() != llvm::dwarf::DW_TAG_enumeration_type) assert_layout(*record, name);
}

void TypeDeclarations::include_header_of(const std::string& file) {
  const std::string header = folders_.library_header(file);
  if (folders_.is_eigen(file)) {
    includes.insert(
        "core/math.h");  // fixes the alignment of Eigen's types, so it is how the host must come by them
  } else if (!header.empty()) {
    if (header.rfind("sparse/device/", 0) != 0) includes.insert(header);  // those are included anyway
  } else if (!folders_.is_system(file)) {
    includes.insert(file);
  }
}

void TypeDeclarations::redeclare_struct(const DICompositeType& record, const std::string& name) {
  if (record.getTag() == llvm::dwarf::DW_TAG_union_type) refuse(record, name, "must be no union");
  for (const auto* element : record.getElements()) {
    const auto* part = llvm::dyn_cast<DIDerivedType>(element);
    if (part == nullptr) continue;
    if (part->getTag() == llvm::dwarf::DW_TAG_inheritance) refuse(record, name, "must have no base class");
    if (part->isBitField()) refuse(record, name, "must have no bit-fields");
    if (part->isArtificial() || part->getName().starts_with("_vptr"))
      refuse(record, name, "must have no virtual functions");
    if (part->getTag() == llvm::dwarf::DW_TAG_member && part->getName().empty())
      refuse(record, name, "must have no unnamed members");
  }
  const std::string alignment =
      record.getAlignInBytes() > 0 ? fmt::format("alignas({}) ", record.getAlignInBytes()) : "";
  std::string text = fmt::format("struct {}{} {{\n", alignment, record.getName().str());
  for (const DIDerivedType* member : data_members(record)) {
    const Owner owner{fmt::format("{}::{}", name, member->getName().str()),
                      fmt::format("{}:{}", path_of(&record), member->getLine())};
    text += fmt::format("  {} {};\n", name_of(member->getBaseType(), owner), member->getName().str());
  }
  add_definition(record, text + "};\n");
}

void TypeDeclarations::redeclare_enumeration(const DICompositeType& record, const std::string& name) {
  const bool scoped = (record.getFlags() & llvm::DINode::FlagEnumClass) != 0;
  std::string text = fmt::format("enum {}{} : {} {{\n", scoped ? "class " : "", record.getName().str(),
                                 name_of(record.getBaseType(), Owner{name, ""}));
  for (const auto* element : record.getElements()) {
    const auto* value = llvm::cast<llvm::DIEnumerator>(element);
    llvm::SmallString<24> number;
    value->getValue().toString(number, 10, !value->isUnsigned());
    text += fmt::format("  {} = {},\n", value->getName().str(), number.str().str());
  }
  add_definition(record, text + "};\n");
}

// In the namespace that it is in.
void TypeDeclarations::add_definition(const DICompositeType& record, const std::string& text) {
  const std::string scope = scope_of(record.getScope());
  if (scope.empty())
    structs.push_back(text);
  else
    structs.push_back(fmt::format("namespace {} {{\n{}}}\n", scope.substr(0, scope.size() - 2), text));
}

void TypeDeclarations::assert_layout(const DICompositeType& record, const std::string& name) {
  assertions.push_back(
      fmt::format("static_assert(sizeof({0}) == {1}, \"{0} differs between clang and the host compiler\");\n",
                  name, record.getSizeInBits() / 8));
  for (const DIDerivedType* member : data_members(record)) {
    if (member->getFlags() & (llvm::DINode::FlagPrivate | llvm::DINode::FlagProtected)) continue;
    if (member->getName().empty() || member->isBitField()) continue;
    assertions.push_back(fmt::format("static_assert(offsetof({}, {}) == {});\n", name,
                                     member->getName().str(), member->getOffsetInBits() / 8));
  }
}

}  // namespace coppice::kernelgen
