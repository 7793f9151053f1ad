// Argument types from debug information (see kernel_types.h).
#include "gpu/jit/kernel_types.h"

#include <fmt/format.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/Support/MD5.h>
#include <llvm/Support/MathExtras.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>

namespace coppice::kernelgen {
namespace {

using llvm::DICompositeType;
using llvm::DIDerivedType;
using llvm::DIType;

[[noreturn]] void refuse(const DICompositeType& record, const std::string& name, const std::string& why) {
  throw std::runtime_error(fmt::format(
      "{}:{}: argument type {} {}, or be defined in a header without kernels that the host includes, too",
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

// Returns the class or enumeration that a type is, under its names and qualifiers; null for what is no
// such.
const DICompositeType* record_of(const DIType* type) {
  while (const auto* derived = llvm::dyn_cast_or_null<DIDerivedType>(type)) {
    const unsigned tag = derived->getTag();
    if (tag != llvm::dwarf::DW_TAG_typedef && tag != llvm::dwarf::DW_TAG_const_type &&
        tag != llvm::dwarf::DW_TAG_volatile_type)
      return nullptr;
    type = derived->getBaseType();
  }
  return llvm::dyn_cast_or_null<DICompositeType>(type);
}

// Goes by the name: of a type that only a pointer leads to, debug information has no more
// (sparse/device/handles.h, list_handles.h).
bool is_handle(const DICompositeType& record) {
  static constexpr llvm::StringRef kHandles[] = {"Read<",   "Write<", "Update<", "Accumulate<",
                                                 "Atomic<", "Grow<",  "Append<"};
  const auto begins_name = [&](llvm::StringRef handle) { return record.getName().starts_with(handle); };
  return llvm::any_of(kHandles, begins_name) && TypeDeclarations::scope_of(record.getScope()) == "coppice::";
}
bool holds_handles(const DICompositeType& record) {
  if (is_handle(record)) return true;
  for (const DIDerivedType* member : data_members(record)) {
    const DICompositeType* type = record_of(member->getBaseType());
    if (type != nullptr && holds_handles(*type)) return true;
  }
  return false;
}
// Says the same as device::is_handle_argument: a struct of handles, or a std::array of them, is known by its
// first member.
bool is_handle_argument(const DICompositeType& record) {
  if (is_handle(record)) return true;
  const auto members = data_members(record);
  const bool is_array = record.getTag() == llvm::dwarf::DW_TAG_array_type;
  if (!is_array && members.empty()) return false;
  const DICompositeType* first = record_of(is_array ? record.getBaseType() : members[0]->getBaseType());
  return first != nullptr && is_handle_argument(*first);
}

// Returns whether a struct of handles holds nothing else: only handles get into a kernel by it.
bool holds_handles_only(const DICompositeType& record) {
  if (is_handle(record)) return true;
  const auto is_of_handles = [](const DIType* type) {
    const DICompositeType* part = record_of(type);
    return part != nullptr && holds_handles_only(*part);
  };
  if (record.getTag() == llvm::dwarf::DW_TAG_array_type) return is_of_handles(record.getBaseType());
  const auto members = data_members(record);
  return !members.empty() && llvm::all_of(members, [&](const DIDerivedType* member) {
    return is_of_handles(member->getBaseType());
  });
}

bool is_laid_out_plainly(const DICompositeType& record);

// Returns the bytes that a type's address is a multiple of, without attributes of a name that it goes by;
// 0 where debug information does not say.
uint64_t alignment_of_type(const DIType* type) {
  if (const auto* derived = llvm::dyn_cast_or_null<DIDerivedType>(type)) {
    const unsigned tag = derived->getTag();
    if (tag == llvm::dwarf::DW_TAG_pointer_type || tag == llvm::dwarf::DW_TAG_reference_type) return 8;
    return alignment_of_type(derived->getBaseType());
  }
  if (const auto* basic = llvm::dyn_cast_or_null<llvm::DIBasicType>(type)) {
    const uint64_t bytes = basic->getSizeInBits() / 8;
    return basic->getEncoding() == llvm::dwarf::DW_ATE_complex_float ? bytes / 2 : bytes;
  }
  const auto* record = llvm::dyn_cast_or_null<DICompositeType>(type);
  if (record == nullptr) return 0;
  if (record->getTag() == llvm::dwarf::DW_TAG_array_type)
    return record->isVector() ? 0 : alignment_of_type(record->getBaseType());
  if (record->getTag() == llvm::dwarf::DW_TAG_enumeration_type) return record->getSizeInBits() / 8;
  const auto is_base = [](const llvm::DINode* part) {
    return part->getTag() == llvm::dwarf::DW_TAG_inheritance;
  };
  if (llvm::any_of(record->getElements(), is_base) || !is_laid_out_plainly(*record)) return 0;
  uint64_t most = std::max<uint64_t>(record->getAlignInBytes(), 1);
  for (const DIDerivedType* member : data_members(*record)) {
    const uint64_t alignment = alignment_of_type(member->getBaseType());
    if (alignment == 0) return 0;
    most = std::max<uint64_t>({most, alignment, member->getAlignInBytes()});
  }
  return most;
}

// Tells whether a struct that is declared with the same members has them at the same places. A member whose
// alignment is not known here is left to the host's compiler, which compares offsets.
bool is_laid_out_plainly(const DICompositeType& record) {
  uint64_t end = 0, most = std::max<uint64_t>(record.getAlignInBytes(), 1);
  for (const DIDerivedType* member : data_members(record)) {
    const uint64_t offset = member->getOffsetInBits() / 8;
    const uint64_t natural = alignment_of_type(member->getBaseType());
    const uint64_t alignment = std::max<uint64_t>(natural, member->getAlignInBytes());
    if (offset < end) return false;
    if (natural > 0 && offset != llvm::alignTo(end, alignment)) return false;
    most = std::max(most, alignment);
    end = offset + member->getSizeInBits() / 8;
  }
  return llvm::alignTo(std::max<uint64_t>(end, 1), most) <= record.getSizeInBits() / 8;
}

std::string alignment_of(uint32_t bytes) { return bytes > 0 ? fmt::format("alignas({}) ", bytes) : ""; }

std::string_view key_of(const DICompositeType& record) {
  return record.getTag() == llvm::dwarf::DW_TAG_union_type   ? "union"
         : record.getTag() == llvm::dwarf::DW_TAG_class_type ? "class"
                                                             : "struct";
}

// Tells whether members have default values, which is seen by what they make of the struct alone: it has no
// constructor, and all types of its members are trivial, and it is not.
bool has_hidden_defaults(const DICompositeType& record) {
  if ((record.getFlags() & llvm::DINode::FlagNonTrivial) == 0) return false;
  for (const auto* element : record.getElements())
    if (llvm::isa<llvm::DISubprogram>(element) &&
        llvm::cast<llvm::DISubprogram>(element)->getName() == record.getName())
      return false;
  return llvm::none_of(data_members(record), [](const DIDerivedType* member) {
    const DICompositeType* type = record_of(member->getBaseType());
    return type != nullptr && (type->getFlags() & llvm::DINode::FlagNonTrivial) != 0;
  });
}

// Tells whether a name is that of a member or of a function of the struct.
bool is_member(const DICompositeType& record, const std::string& name) {
  return llvm::any_of(record.getElements(), [&](const llvm::DINode* element) {
    const auto* function = llvm::dyn_cast<llvm::DISubprogram>(element);
    const auto* member = llvm::dyn_cast<DIDerivedType>(element);
    return function != nullptr ? function->getName() == name
                               : member != nullptr && !member->isStaticMember() && member->getName() == name;
  });
}

bool is_in_a_class(const DIType& type) { return llvm::isa_and_nonnull<DIType>(type.getScope()); }

}  // namespace

std::string in_namespace(const std::string& space, const std::string& text) {
  if (space.empty()) return text;
  return fmt::format("namespace {} {{\n{}}}\n", space.substr(0, space.size() - 2), text);
}

std::string shared_by_headers(const std::string& what, const std::string& header, uint64_t identity,
                              const std::string& text) {
  std::string guard = "COPPICE_SHARED_" + what;
  for (char& c : guard)
    if (!llvm::isAlnum(c)) c = '_';
  return fmt::format(
      "#ifndef {0}\n#define {0} {1:#x}u\n{2}#elif {0} != {1:#x}u\n#error \"{3} of {4} differs between the "
      "kernel "
      "files whose generated headers are included here: give them the same DEFINES, or include these headers "
      "in different sources\"\n#endif\n",
      guard, identity, text, what, std::filesystem::path(header).filename().string());
}

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
  Owner owner{fmt::format("kernel {}: argument {}", kernel.getName().str(), number),
              fmt::format("{}:{}", path_of(&kernel), kernel.getLine())};
  // Only constant references compile (sparse/device/kernel_call.h).
  const auto* reference = llvm::dyn_cast_or_null<DIDerivedType>(type);
  if (reference != nullptr && reference->getTag() == llvm::dwarf::DW_TAG_reference_type) {
    const auto* constant = llvm::cast<DIDerivedType>(reference->getBaseType());
    type = constant->getTag() == llvm::dwarf::DW_TAG_const_type ? constant->getBaseType() : constant;
  }
  const DICompositeType* record = record_of(type);
  owner.may_hold_handles = record != nullptr && is_handle_argument(*record);
  if (owner.may_hold_handles && !holds_handles_only(*record))
    throw std::runtime_error(
        fmt::format("{}: {}, {}, holds handles and other members; give these as arguments of their own",
                    owner.position, owner.what, record->getName().str()));
  return name_of(type, owner);
}

// Debug information prints template arguments without the namespaces of typedefs but with those of classes.
std::string TypeDeclarations::name_of(const DIType* type, const Owner& owner) {
  if (type == nullptr) return "void";
  if (!owner.may_hold_handles) refuse_handles(type, owner);
  if (const auto* derived = llvm::dyn_cast<DIDerivedType>(type)) {
    const DIType* base = derived->getBaseType();
    switch (derived->getTag()) {
      case llvm::dwarf::DW_TAG_pointer_type:
        return name_of(base, owner.without_handles()) + "*";
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
    return name_of_array(*record, owner.without_handles());
  if (const auto* basic = llvm::dyn_cast<llvm::DIBasicType>(type)) return name_of_number(*basic, owner);
  declare(type, owner);
  return scope_of(type->getScope()) + type->getName().str();
}

// Only a handle that is an argument, or part of one that is nothing else, is bound to a field.
void TypeDeclarations::refuse_handles(const DIType* type, const Owner& owner) {
  const DICompositeType* record = record_of(type);
  if (record != nullptr && holds_handles(*record))
    throw std::runtime_error(fmt::format(
        "{}: {} leads to a handle, {}; give handles as arguments or in a struct that holds nothing else",
        owner.position, owner.what, record->getName().str()));
}

// Returns the name by which the host's compiler, which may be GCC 12, calls it.
std::string TypeDeclarations::name_of_number(const llvm::DIBasicType& number, const Owner& owner) {
  const std::string name = number.getName().str();
  if (number.getEncoding() == llvm::dwarf::DW_ATE_complex_float)
    return number.getSizeInBits() == 64 ? "_Complex float" : "_Complex double";
  for (const auto& [unknown, instead] : {std::pair("_BitInt", "an integer of 8, 16, 32 or 64 bits"),
                                         std::pair("_Float16", "uint16_t and __builtin_bit_cast"),
                                         std::pair("__bf16", "uint16_t and __builtin_bit_cast")}) {
    if (name.find(unknown) != name.npos)
      throw std::runtime_error(
          fmt::format("{}: {} is or holds {}, which is no type of every host compiler's; use {}",
                      owner.position, owner.what, unknown, instead));
  }
  return name;
}

// Names it as a type of its own, `float[2][3]`, wherever an array may stand.
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

// Makes a class or enumeration known to the header: defined in the kernel file, or in a header that has
// kernels -> redeclare; in another header -> include that.
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
  const bool is_known_by_name_only = record->isForwardDecl();
  if (record->getName().empty()) refuse(*record, "without a name", "must have one");
  if (!folders_.is_kernel_file(file) && !folders_.is_kernel_header(file)) {
    include_header_of(file);
  } else if (is_template) {
    refuse(*record, name, "must be a plain struct, not a template");
  } else if (is_in_a_class(*record) || llvm::isa_and_nonnull<llvm::DILocalScope>(record->getScope())) {
    refuse(*record, name, "must be outside of classes and functions");
  } else if (record->getTag() == llvm::dwarf::DW_TAG_enumeration_type) {
    redeclare_enumeration(*record, name);
  } else if (is_known_by_name_only) {  // pointers lead to it, and no kernel looks there
    add_definition(*record, fmt::format("{} {};\n", key_of(*record), record->getName().str()));
  } else {
    redeclare_struct(*record, name);
  }
  if (!is_template && !is_known_by_name_only && record->getTag() != llvm::dwarf::DW_TAG_enumeration_type)
    assert_layout(*record, name);
}

void TypeDeclarations::include_header_of(const std::string& file) {
  const std::string header = folders_.library_header(file);
  if (folders_.is_eigen(file)) {
    includes.insert(
        "core/math.h");  // fixes the alignment of Eigen's types, so it is how the host must come by them
  } else if (!header.empty()) {
    if (header.rfind("sparse/device/", 0) != 0) includes.insert(header);  // those are included anyway
  } else if (folders_.is_system(file)) {
    // This takes only a header that may be included as it is called: <complex>, not <bits/stl_pair.h>.
    const std::filesystem::path path(file);
    const std::string folder = path.parent_path().parent_path().filename();
    if (folder == "c++") includes.insert("<" + path.filename().string() + ">");
  } else {
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
  const std::vector<unsigned char>* const defaults = defaults_.find(record);
  if (defaults_.is_unknown(record))
    refuse(record, name, "must have default values that are known when it is compiled");
  check_initializers(record, name, defaults != nullptr);
  std::string text =
      fmt::format("struct {}{} {{\n", alignment_of(record.getAlignInBytes()), record.getName().str());
  for (const DIDerivedType* member : data_members(record)) {
    const Owner owner{fmt::format("{}::{}", name, member->getName().str()),
                      fmt::format("{}:{}", path_of(&record), member->getLine()), is_handle_argument(record)};
    const std::string type = name_of(member->getBaseType(), owner);
    std::optional<std::string> value = "";
    if (defaults != nullptr)
      value = default_text(*member->getBaseType(), type, defaults->data() + member->getOffsetInBits() / 8);
    if (!value) refuse(record, name, "must have no addresses, and no numbers of 128 bits, as default values");
    text += fmt::format("  {}{} {}{};\n", alignment_of(member->getAlignInBytes()), type,
                        member->getName().str(), *value);
  }
  if (!is_laid_out_plainly(record))
    refuse(record, name,
           "must be laid out as its members' types say, without packing, [[no_unique_address]] or types of "
           "another alignment than their own");
  add_definition(record, text + "};\n");
}

// The header has each member's default value as a constant.
void TypeDeclarations::check_initializers(const DICompositeType& record, const std::string& name,
                                          bool are_known) {
  bool has_any = has_hidden_defaults(record);
  for (const DIDerivedType* member : data_members(record)) {
    const std::optional<std::vector<std::string>> names = initializers_.names(*member);
    has_any = has_any || names.has_value();
    if (!names) continue;
    for (const std::string& used : *names)
      if (is_member(record, used))
        refuse(record, name,
               fmt::format("must have a default value of {} that does not follow from another member, {}",
                           member->getName().str(), used));
  }
  if (has_any && !are_known)
    refuse(record, name,
           "must be what a kernel takes, what it points to, or a field's value, if its members have default "
           "values");
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

// Adds the definition in the namespace that it is in.
void TypeDeclarations::add_definition(const DICompositeType& record, const std::string& text) {
  const std::string scope = scope_of(record.getScope()), file = path_of(&record);
  const std::string definition = in_namespace(scope, text);
  const bool may_come_again = folders_.is_kernel_header(file) && !record.isForwardDecl();
  if (may_come_again) {
    const std::string what = fmt::format("type {}{}", scope, record.getName().str());
    structs.push_back(shared_by_headers(what, file, llvm::MD5Hash(text), definition));
  } else {
    structs.push_back(definition);
  }
}

void TypeDeclarations::assert_layout(const DICompositeType& record, const std::string& name) {
  assertions.push_back(
      fmt::format("static_assert(sizeof({0}) == {1}, \"{0} differs between clang and the host compiler\");\n",
                  name, record.getSizeInBits() / 8));
  const bool is_class = record.getTag() == llvm::dwarf::DW_TAG_class_type;
  for (const DIDerivedType* member : data_members(record)) {
    const auto access = member->getFlags() & llvm::DINode::FlagAccessibility;
    const bool is_public = access == 0 ? !is_class : access == llvm::DINode::FlagPublic;
    if (!is_public || member->getName().empty() || member->isBitField()) continue;
    assertions.push_back(fmt::format("static_assert(offsetof({}, {}) == {});\n", name,
                                     member->getName().str(), member->getOffsetInBits() / 8));
  }
}

}  // namespace coppice::kernelgen
