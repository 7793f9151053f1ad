// Build ids by the loader's list of what it mapped (see build_identity.h).
#include "gpu/jit/build_identity.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "core/program_file.h"

namespace coppice::jit {
namespace {

struct Search {
  uintptr_t address = 0;
  std::string identity;
};

bool holds(const dl_phdr_info& object, uintptr_t address) {
  for (const ElfW(Phdr) & segment : std::span(object.dlpi_phdr, object.dlpi_phnum)) {
    const uintptr_t begin = object.dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && address - begin < segment.p_memsz) return true;
  }
  return false;
}

// Names and descriptions of notes are padded to the segment's alignment, which is 4 or 8.
std::string build_id_in(const std::byte* notes, size_t bytes, size_t alignment) {
  const auto padded = [&](size_t n) { return (n + alignment - 1) / alignment * alignment; };
  for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= bytes;) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes + at, sizeof note);
    const size_t name_at = at + sizeof note, value_at = name_at + padded(note.n_namesz);
    at = value_at + padded(note.n_descsz);
    if (value_at + note.n_descsz > bytes) break;
    if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof ELF_NOTE_GNU ||
        std::memcmp(notes + name_at, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) != 0)
      continue;
    std::string id;
    for (size_t i = 0; i < note.n_descsz; ++i) id += fmt::format("{:02x}", notes[value_at + i]);
    return id;
  }
  return {};
}

std::string build_id_of(const dl_phdr_info& object) {
  for (const ElfW(Phdr) & segment : std::span(object.dlpi_phdr, object.dlpi_phnum)) {
    if (segment.p_type != PT_NOTE) continue;
    const auto* notes = reinterpret_cast<const std::byte*>(object.dlpi_addr + segment.p_vaddr);
    std::string id = build_id_in(notes, segment.p_memsz, segment.p_align == 8 ? 8 : 4);
    if (!id.empty()) return id;
  }
  return {};
}

// The loader has no name for the program itself.
std::string file_identity(const dl_phdr_info& object) {
  const std::string path =
      object.dlpi_name != nullptr && *object.dlpi_name != '\0' ? object.dlpi_name : program_file().string();
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return path;
  return fmt::format("{} of {} bytes, {}.{:09}", path, status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}

int visit(dl_phdr_info* object, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  if (!holds(*object, search.address)) return 0;
  search.identity = build_id_of(*object);
  if (search.identity.empty()) search.identity = file_identity(*object);
  return 1;
}

}  // namespace

std::string build_identity(const void* address) {
  Search search{reinterpret_cast<uintptr_t>(address), {}};
  ::dl_iterate_phdr(&visit, &search);
  return search.identity;
}

}  // namespace coppice::jit
