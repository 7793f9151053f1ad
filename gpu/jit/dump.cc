// Files of COPPICE_DUMP (see dump.h).
#include "gpu/jit/dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <system_error>
#include <utility>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/log.h"
#include "gpu/jit/specialization_key.h"

namespace coppice::jit {
namespace {

namespace fs = std::filesystem;

// Warns once per folder, however many kernels there are.
void warn_once(const fs::path& folder, const std::string& why) {
  static std::mutex mutex;
  static auto& warned = *new std::string;  // never destroyed: see host_target()
  {
    const std::lock_guard lock(mutex);
    if (std::exchange(warned, folder.string()) == folder.string()) return;
  }
  log_warning("COPPICE_DUMP: cannot write to {}: {}; kernels work, but are not dumped", folder.string(), why);
}

}  // namespace

fs::path dump_folder() {
  const char* folder = std::getenv("COPPICE_DUMP");
  return folder == nullptr ? fs::path() : fs::path(folder);
}

std::string dump_stem(const SpecializeRequest& request) {
  std::string id = request.id;
  std::replace(id.begin(), id.end(), '/', '_');
  if (!is_dumping()) return id;
  return fmt::format("{}-{}{}", id, specialization_key(request).hex().substr(0, 8),
                     request.options.simt ? "-simt" : "");
}

std::string dump_stem(const SpecializeRequest& request, PtxTarget target) {
  return fmt::format("{}-sm_{}", dump_stem(request), target.sm);
}

void dump_text(const std::string& stem, std::string_view suffix, std::string_view text) {
  const fs::path folder = dump_folder();
  if (folder.empty()) return;
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return warn_once(folder, error.message());
  try {
    AtomicFile file((folder / fmt::format("{}.{}", stem, suffix)).string());
    file.write(text);
    file.commit();
  } catch (const Error& e) {
    warn_once(folder, e.what());
  }
}

}  // namespace coppice::jit
