// Memory of the machine and of its control groups (see machine_memory.h).
#include "core/machine_memory.h"

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>

namespace coppice {
namespace {

constexpr uint64_t kNoLimit = ~uint64_t{0};

// Reads a file that holds one number; "max", nonsense or no file is no limit.
uint64_t limit_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string text;
  uint64_t bytes = 0;
  if (!(in >> text)) return kNoLimit;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  return error == std::errc() && end == text.data() + text.size() ? bytes : kNoLimit;
}

// A group's limit holds for the groups in it, so that the least on the way up counts.
uint64_t limit_up_from(const std::filesystem::path& mount, std::filesystem::path group, const char* file) {
  uint64_t least = limit_in(mount / file);
  for (; group.has_relative_path(); group = group.parent_path())
    least = std::min(least, limit_in(mount / group.relative_path() / file));
  return least;
}

}  // namespace

uint64_t control_group_bytes(const std::filesystem::path& proc_cgroup, const std::filesystem::path& mount) {
  uint64_t least = kNoLimit;
  std::ifstream in(proc_cgroup);
  for (std::string line; std::getline(in, line);) {  // "number:controllers:/path"
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::filesystem::path group = line.substr(second + 1);
    if (controllers == ",,")
      least = std::min(least, limit_up_from(mount, group, "memory.max"));
    else if (controllers.find(",memory,") != std::string::npos)
      least = std::min(least, limit_up_from(mount / "memory", group, "memory.limit_in_bytes"));
  }
  return least;
}

uint64_t machine_memory_bytes() {
  static const uint64_t bytes = [] {
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    const uint64_t physical =
        pages > 0 && page > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) : kNoLimit;
    return std::min(physical, control_group_bytes("/proc/self/cgroup", "/sys/fs/cgroup"));
  }();
  return bytes;
}

void give_back_freed_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace coppice
