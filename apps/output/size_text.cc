// Writes numbers of bytes (see size_text.h).
#include "apps/output/size_text.h"

#include <fmt/format.h>

#include <array>

namespace coppice {

std::string size_text(uint64_t size_bytes) {
  if (size_bytes < 1024) return fmt::format("{} B", size_bytes);
  constexpr std::array kUnits{"KiB", "MiB", "GiB", "TiB"};
  double size = static_cast<double>(size_bytes) / 1024;
  size_t unit = 0;
  for (; size >= 1024 && unit + 1 < kUnits.size(); ++unit) size /= 1024;
  return fmt::format("{:.1f} {}", size, kUnits[unit]);
}

}  // namespace coppice
