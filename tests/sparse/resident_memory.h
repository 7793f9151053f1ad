// How much memory the process has in use, as the system counts it.
#pragma once
#include <unistd.h>

#include <cstdint>
#include <fstream>

namespace coppice {

// Sanitizers keep what was freed, and a shadow of it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kFreedMemoryStays = true;
#else
inline constexpr bool kFreedMemoryStays = false;
#endif

inline uint64_t resident_bytes() {
  uint64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace coppice
