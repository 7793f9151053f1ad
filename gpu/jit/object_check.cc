// Checks of ELF objects (see object_check.h).
#include "gpu/jit/object_check.h"

#include <fmt/format.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/Error.h>
#include <llvm/Support/MemoryBuffer.h>

namespace coppice::jit {
namespace {

using ElfFile = llvm::object::ELFObjectFile<llvm::object::ELF64LE>;

std::string check_entry(const llvm::object::ELFSymbolRef& symbol) {
  auto section = symbol.getSection();
  if (!section) return llvm::toString(section.takeError());
  const bool is_defined = *section != symbol.getObject()->section_end();
  if (!is_defined || !(*section)->isText() || symbol.getELFType() != llvm::ELF::STT_FUNC ||
      symbol.getBinding() != llvm::ELF::STB_GLOBAL)
    return "its entry is not a function that it defines";
  auto value = symbol.getValue();
  if (!value) return llvm::toString(value.takeError());
  return *value < (*section)->getSize() ? "" : "its entry lies outside of its code";
}

}  // namespace

std::string why_not_loadable(std::string_view object, const std::string& entry) {
  const llvm::MemoryBufferRef bytes(llvm::StringRef(object.data(), object.size()), "kernel");
  auto file = llvm::object::ObjectFile::createELFObjectFile(bytes);
  if (!file) return llvm::toString(file.takeError());
  const auto* elf = llvm::dyn_cast<ElfFile>(file->get());
  if (elf == nullptr || elf->getArch() != llvm::Triple::x86_64) return "it is not for x86-64";
  if (!elf->isRelocatableObject()) return "it is not a relocatable object";
  for (const llvm::object::ELFSymbolRef symbol : elf->symbols()) {
    auto name = symbol.getName();
    if (!name) return llvm::toString(name.takeError());
    if (*name == entry) return check_entry(symbol);
  }
  return fmt::format("it has no {}", entry);
}

}  // namespace coppice::jit
