// Finds the program's file by where the program is mapped.
#include "core/program_file.h"

#include <link.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

namespace coppice {
namespace {

namespace fs = std::filesystem;

// The program is the first object that the loader tells of.
int take_first(dl_phdr_info* object, size_t, void* address) {
  *static_cast<uintptr_t*>(address) = reinterpret_cast<uintptr_t>(object->dlpi_phdr);
  return 1;
}

fs::path find_program_file() {
  uintptr_t address = 0;
  ::dl_iterate_phdr(&take_first, &address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::string access, offset, device, inode, path;
    words >> std::hex >> begin >> dash >> end >> access >> offset >> device >> inode >> std::ws;
    std::getline(words, path);
    if (begin <= address && address < end) return path;
  }
  return {};
}

}  // namespace

const fs::path& program_file() {
  static const fs::path& file =
      *new fs::path(find_program_file());  // never destroyed: threads may outlive main()
  return file;
}

fs::path program_folder() {
  const fs::path folder = program_file().parent_path();
  std::error_code status;
  const bool is_bundle = folder.filename() == "libexec" && fs::exists(folder / "launcher", status);
  return is_bundle ? folder.parent_path() / "bin" : folder;
}

}  // namespace coppice
