// Default values of structs (see default_values.h).
#include "gpu/jit/default_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/ConstantFolding.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Module.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/Utils/Evaluator.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace coppice::kernelgen {
namespace {

using llvm::DICompositeType;
using llvm::DIType;

// Returns the type under names and qualifiers.
const DIType* plain(const DIType* type) {
  while (const auto* derived = llvm::dyn_cast_or_null<llvm::DIDerivedType>(type)) {
    const unsigned tag = derived->getTag();
    if (tag != llvm::dwarf::DW_TAG_typedef && tag != llvm::dwarf::DW_TAG_const_type &&
        tag != llvm::dwarf::DW_TAG_volatile_type && tag != llvm::dwarf::DW_TAG_restrict_type)
      break;
    type = derived->getBaseType();
  }
  return type;
}

// Padding has no value, and is 0 here; addresses have no bytes yet.
constexpr unsigned char kOfAddress = 0xff;
std::vector<unsigned char> bytes_of(llvm::Constant& constant, const llvm::DataLayout& layout) {
  std::vector<unsigned char> bytes(layout.getTypeAllocSize(constant.getType()));
  llvm::Type* const byte = llvm::Type::getInt8Ty(constant.getContext());
  for (size_t i = 0; i < bytes.size(); ++i) {
    const llvm::Constant* value =
        llvm::ConstantFoldLoadFromConst(&constant, byte, llvm::APInt(64, i), layout);
    const auto* number = llvm::dyn_cast_or_null<llvm::ConstantInt>(value);
    if (value == nullptr)  // a part of a pointer
      value = llvm::ConstantFoldLoadFromConst(&constant, llvm::PointerType::get(constant.getContext(), 0),
                                              llvm::APInt(64, i / 8 * 8), layout);
    if (number != nullptr)
      bytes[i] = static_cast<unsigned char>(number->getZExtValue());
    else if (value == nullptr || !llvm::isa<llvm::UndefValue, llvm::ConstantPointerNull>(value))
      bytes[i] = kOfAddress;
  }
  return bytes;
}

template <class T>
T read(const unsigned char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class T, class Bits>
std::string text_of_float(const unsigned char* bytes, const char* name, const char* suffix) {
  const T value = read<T>(bytes);
  if (!std::isfinite(value))
    return fmt::format("__builtin_bit_cast({}, {}{})", name, read<Bits>(bytes), sizeof(T) == 4 ? "u" : "ull");
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == text.npos) text += ".0";
  return text + suffix;
}

std::string text_of_integer(uint64_t bits, unsigned size, bool is_signed, const std::string& name) {
  if (!is_signed) return fmt::format("static_cast<{}>({}ull)", name, bits);
  const unsigned unused = 64 - 8 * size;
  const auto value = static_cast<int64_t>(bits << unused) >> unused;
  // The least of all has no literal.
  if (value == INT64_MIN) return fmt::format("static_cast<{}>(-9223372036854775807ll - 1)", name);
  return size == 4 ? fmt::format("{}", value) : fmt::format("static_cast<{}>({}ll)", name, value);
}

std::optional<std::string> text_of_number(const llvm::DIBasicType& number, const std::string& name,
                                          const unsigned char* bytes) {
  const auto size = static_cast<unsigned>(number.getSizeInBits() / 8);
  switch (number.getEncoding()) {
    case llvm::dwarf::DW_ATE_float:
      if (size == 4) return text_of_float<float, uint32_t>(bytes, "float", "f");
      if (size == 8) return text_of_float<double, uint64_t>(bytes, "double", "");
      return {};
    case llvm::dwarf::DW_ATE_boolean:
      return bytes[0] != 0 ? "true" : "false";
    case llvm::dwarf::DW_ATE_signed:
    case llvm::dwarf::DW_ATE_signed_char:
    case llvm::dwarf::DW_ATE_unsigned:
    case llvm::dwarf::DW_ATE_unsigned_char:
    case llvm::dwarf::DW_ATE_UTF: {
      if (size > 8) return {};
      uint64_t bits = 0;
      std::memcpy(&bits, bytes, size);
      const bool is_signed = number.getSignedness() == llvm::DIBasicType::Signedness::Signed;
      return text_of_integer(bits, size, is_signed, name);
    }
    default:
      return {};
  }
}

// Other types have defaults of their own, which this one replaces.
std::string text_of_bytes(const std::string& name, const unsigned char* bytes, size_t size) {
  const std::vector<unsigned> all(bytes, bytes + size);
  return fmt::format("coppice::detail::value_of_bytes<{}>({{{}}})", name, fmt::join(all, ", "));
}

bool holds_pointers(const DIType* type) {
  type = plain(type);
  if (const auto* derived = llvm::dyn_cast_or_null<llvm::DIDerivedType>(type))
    return derived->getTag() == llvm::dwarf::DW_TAG_pointer_type ||
           derived->getTag() == llvm::dwarf::DW_TAG_reference_type || holds_pointers(derived->getBaseType());
  const auto* record = llvm::dyn_cast_or_null<DICompositeType>(type);
  if (record == nullptr) return false;
  if (record->getTag() == llvm::dwarf::DW_TAG_array_type) return holds_pointers(record->getBaseType());
  return std::any_of(
      record->getElements().begin(), record->getElements().end(), [](const llvm::DINode* part) {
        const auto* member = llvm::dyn_cast<llvm::DIDerivedType>(part);
        return member != nullptr && !member->isStaticMember() && holds_pointers(member->getBaseType());
      });
}

// Arrays in arrays are one list of all items: braces may be left out.
std::optional<std::string> text_of_array(const DICompositeType& array, const std::string& name,
                                         const unsigned char* bytes) {
  const DIType& item = *plain(array.getBaseType());
  const size_t size = item.getSizeInBits() / 8, count = size == 0 ? 0 : array.getSizeInBits() / 8 / size;
  std::vector<std::string> items;
  for (size_t i = 0; i < count; ++i) {
    const std::optional<std::string> text =
        default_text(item, fmt::format("std::remove_all_extents_t<{}>", name), bytes + i * size);
    if (!text) return {};
    items.push_back(text->substr(3));
  }
  return fmt::format("{{{}}}", fmt::join(items, ", "));
}

// Returns the function that makes a variable what it is before a program's main(); null if there is none.
llvm::Function* maker_of(const llvm::GlobalVariable& variable) {
  for (const llvm::User* user : variable.users()) {
    const auto* const i = llvm::dyn_cast<llvm::Instruction>(user);
    if (i != nullptr && i->getFunction()->getSection() == ".text.startup")
      return const_cast<llvm::Function*>(i->getFunction());
  }
  return nullptr;
}

// Returns what code makes of a variable; null where LLVM cannot tell, as of calls of functions that are not
// there.
llvm::Constant* made_value(const llvm::GlobalVariable& variable) {
  llvm::Function* const maker = maker_of(variable);
  if (maker == nullptr) return const_cast<llvm::Constant*>(variable.getInitializer());
  const llvm::Module& module = *variable.getParent();
  const llvm::TargetLibraryInfoImpl library(llvm::Triple(module.getTargetTriple()));
  const llvm::TargetLibraryInfo functions(library);
  llvm::Evaluator evaluator(module.getDataLayout(), &functions);
  llvm::Constant* nothing = nullptr;
  if (!evaluator.EvaluateFunction(maker, nothing, llvm::SmallVector<llvm::Constant*, 0>())) return nullptr;
  for (const auto& [changed, value] : evaluator.getMutatedInitializers())
    if (changed == &variable) return value;
  return const_cast<llvm::Constant*>(variable.getInitializer());
}

}  // namespace

DefaultValues::DefaultValues(const llvm::Module& debug) {
  for (const llvm::GlobalVariable& global : debug.globals()) {
    if (!global.hasInitializer()) continue;
    llvm::SmallVector<llvm::DIGlobalVariableExpression*, 1> infos;
    global.getDebugInfo(infos);
    for (const llvm::DIGlobalVariableExpression* info : infos) {
      const llvm::DIDerivedType* const member = info->getVariable()->getStaticDataMemberDeclaration();
      const auto* of =
          member == nullptr ? nullptr : llvm::dyn_cast_or_null<DICompositeType>(member->getScope());
      if (of == nullptr || member->getName() != "kValue") continue;
      const bool is_made = of->getName().starts_with("MadeDefaultOf<");
      const auto* record = llvm::dyn_cast_or_null<DICompositeType>(plain(info->getVariable()->getType()));
      if (record == nullptr || (!is_made && !of->getName().starts_with("DefaultOf<"))) continue;
      llvm::Constant* const value =
          is_made ? made_value(global) : const_cast<llvm::Constant*>(global.getInitializer());
      if (value == nullptr)
        unknown_.insert(record);
      else
        bytes_[record] = bytes_of(*value, debug.getDataLayout());
    }
  }
}

const std::vector<unsigned char>* DefaultValues::find(const DICompositeType& record) const {
  const auto found = bytes_.find(&record);
  return found == bytes_.end() ? nullptr : &found->second;
}

std::optional<std::string> default_text(const DIType& type, const std::string& name,
                                        const unsigned char* bytes) {
  const DIType& of = *plain(&type);
  const size_t size = of.getSizeInBits() / 8;
  const auto begin = [](std::optional<std::string> text) {
    return text ? std::optional(" = " + *text) : std::nullopt;
  };
  if (holds_pointers(&of)) {
    const bool is_null = std::all_of(bytes, bytes + size, [](unsigned char b) { return b == 0; });
    return is_null ? std::optional<std::string>(" = {}") : std::nullopt;
  }
  if (const auto* number = llvm::dyn_cast<llvm::DIBasicType>(&of))
    return begin(text_of_number(*number, name, bytes));
  const auto* record = llvm::dyn_cast<DICompositeType>(&of);
  if (record == nullptr) return {};
  if (record->getTag() == llvm::dwarf::DW_TAG_array_type) return begin(text_of_array(*record, name, bytes));
  if (record->getTag() == llvm::dwarf::DW_TAG_enumeration_type) {
    uint64_t bits = 0;
    std::memcpy(&bits, bytes, std::min<size_t>(size, 8));
    return " = " + text_of_integer(bits, static_cast<unsigned>(size), false, name);
  }
  return " = " + text_of_bytes(name, bytes, size);
}

}  // namespace coppice::kernelgen
