// COPPICE_PTX_FOLDER (see ptx_recorder.h).
#include "gpu/jit/ptx_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "core/atomic_file.h"
#include "core/error.h"
#include "gpu/jit/specialization_key.h"

namespace coppice::jit {
namespace {

namespace fs = std::filesystem;

// Returns whether the key is the smallest of all keys of this kernel that the process met, whatever device
// asked.
bool is_smallest_key(const std::string& id, const std::string& key) {
  static std::mutex mutex;
  static auto& smallest = *new std::map<std::string, std::string>;  // never destroyed: see host_target()
  const std::lock_guard lock(mutex);
  const auto [known, is_first] = smallest.try_emplace(id, key);
  if (is_first) return true;
  if (key >= known->second) return false;
  known->second = key;
  return true;
}

class PtxRecorder final : public CodeBackend {
 public:
  PtxRecorder(std::unique_ptr<CodeBackend> backend, fs::path folder)
      : backend_(std::move(backend)), folder_(std::move(folder)) {}
  std::string compile(const SpecializeRequest& request) override { return backend_->compile(request); }
  std::string why_not_loadable(const std::string& image, const SpecializeRequest& request) override {
    return backend_->why_not_loadable(image, request);
  }
  // All kernels come by here, those from the disk cache, too.
  IntrusivePtr<LoadedCode> load(const std::string& image, const SpecializeRequest& request) override {
    SpecializeRequest gpu = request;
    gpu.options.simt = gpu.options.step = false;
    const std::string key = specialization_key(gpu, ptx_key_context({.sm = 90})).hex().substr(0, 8);
    record(gpu, key, is_smallest_key(gpu.id, key));
    return backend_->load(image, request);
  }

 private:
  void record(const SpecializeRequest& request, const std::string& key, bool for_each_target) const {
    std::string id = request.id;
    std::replace(id.begin(), id.end(), '/', '_');
    const auto stem = [&](int sm) { return (folder_ / fmt::format("{}-{}-sm_{}", id, key, sm)).string(); };
    std::vector<PtxTarget> targets;
    for (const int sm : {75, 80, 90}) {
      if (sm < 90 && !for_each_target) continue;
      if (!fs::exists(stem(sm) + ".ptx") && !fs::exists(stem(sm) + ".refused")) targets.push_back({.sm = sm});
    }
    if (targets.empty()) return;
    compile_ptx_of_each(
        request, targets,
        [&](int sm, const std::string& text) {
          write(stem(sm) + ".ptx",
                fmt::format("// {}: {} bytes of shared memory\n{}", request.id, request.shared_bytes, text));
        },
        [&](int sm, const std::string& message) { write(stem(sm) + ".refused", message + "\n"); });
  }
  void write(const std::string& path, const std::string& text) const {
    std::error_code error;
    fs::create_directories(folder_, error);  // what is wrong with it, the file says
    AtomicFile file(path);
    file.write(text);
    file.commit();
  }

  const std::unique_ptr<CodeBackend> backend_;
  const fs::path folder_;
};

}  // namespace

std::unique_ptr<CodeBackend> with_ptx_recorded(std::unique_ptr<CodeBackend> backend) {
  const char* folder = std::getenv("COPPICE_PTX_FOLDER");
  if (folder == nullptr || *folder == '\0') return backend;
  return std::make_unique<PtxRecorder>(std::move(backend), folder);
}

}  // namespace coppice::jit
