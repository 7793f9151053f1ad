// Time spent per operation name (see launch_profile.h).
#include "gpu/launch_profile.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/log.h"

namespace coppice {

LaunchProfile::LaunchProfile() {
  const char* value = std::getenv("COPPICE_PROFILE");
  is_on_ = value != nullptr && *value != 0;
}

LaunchProfile::~LaunchProfile() {
  std::vector<std::pair<std::string, Row>> sorted(rows_.begin(), rows_.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.second.time > b.second.time; });
  for (const auto& [name, row] : sorted) {
    const double ms = std::chrono::duration<double, std::milli>(row.time).count();
    log_info("profile: {:10.1f} ms {:9} calls {:9.1f} us each  {}", ms, row.calls,
             1e3 * ms / static_cast<double>(row.calls), name);
  }
}

void LaunchProfile::add(std::string_view name, std::chrono::steady_clock::duration time) {
  auto row = rows_.find(name);
  if (row == rows_.end()) row = rows_.emplace(std::string(name), Row{}).first;
  ++row->second.calls;
  row->second.time += time;
}

}  // namespace coppice
