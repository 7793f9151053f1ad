// How much machine code of kernels is mapped, as the system counts it.
#pragma once
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace coppice {

struct JitMappings {
  uint64_t code_bytes = 0;  // executable memory of no file
  uint64_t count = 0;       // of all mappings of the process
};

inline JitMappings jit_mappings() {
  JitMappings found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line); ++found.count) {
    uint64_t begin = 0, end = 0, inode = 0;
    char flags[5] = {};
    const int read = std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %*x %*s %" SCNu64, &begin, &end,
                                 flags, &inode);
    const bool is_named = line.find('[') != line.npos;  // the system's own
    if (read == 4 && flags[2] == 'x' && inode == 0 && !is_named) found.code_bytes += end - begin;
  }
  return found;
}

}  // namespace coppice
