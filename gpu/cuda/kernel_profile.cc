// Measures what each kernel costs on a GPU (see kernel_profile.h).
#include "gpu/cuda/kernel_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <system_error>
#include <vector>

#include "core/atomic_file.h"
#include "core/error.h"
#include "core/log.h"

namespace coppice::cuda {
namespace {

constexpr char kColumns[] =
    "kernel\tlaunches\ttotal_us\tleast_us\tmost_us\tregisters\tstack_bytes\tshared_bytes\tblocks_per_"
    "multiprocessor\t"
    "occupancy_percent\tbytes\n";

std::string file_name() {
  static std::atomic<int> devices{0};
  const int number = ++devices;
  return number == 1 ? "kernels.tsv" : fmt::format("kernels-{}.tsv", number);
}

}  // namespace

std::unique_ptr<KernelProfile> KernelProfile::from_environment() {
  const char* folder = std::getenv("COPPICE_GPU_PROFILE");
  if (folder == nullptr || *folder == 0) return nullptr;
  return std::make_unique<KernelProfile>(folder);
}

KernelProfile::KernelProfile(std::filesystem::path folder)
    : folder_(std::move(folder)), file_name_(file_name()) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error)
    log_warning("COPPICE_GPU_PROFILE: cannot make {}: {}; nothing is kept of kernels", folder_.string(),
                error.message());
}

KernelProfile::~KernelProfile() { write(); }

void KernelProfile::add(std::string_view name, double ms, uint64_t bytes, const KernelResources& resources) {
  const std::lock_guard lock(mutex_);
  auto found = rows_.find(name);
  if (found == rows_.end()) found = rows_.emplace(std::string(name), Row{}).first;
  Row& row = found->second;
  row.least_ms = row.launches == 0 ? ms : std::min(row.least_ms, ms);
  row.most_ms = std::max(row.most_ms, ms);
  ++row.launches;
  row.total_ms += ms;
  row.bytes += bytes;
  row.resources = resources;
  has_news_ = true;
  if (std::chrono::steady_clock::now() - written_ > std::chrono::milliseconds(500)) write_rows();
}

// The text is appended in one piece: other processes may write into the same folder.
void KernelProfile::add_log(std::string_view kernel, bool is_loaded, std::string_view text) {
  const std::lock_guard lock(mutex_);
  std::ofstream file(folder_ / "jit.log", std::ios::app);
  file << fmt::format("== kernel {}: {}\n{}{}", kernel, is_loaded ? "loaded" : "refused", text,
                      text.empty() || text.back() == '\n' ? "" : "\n")
       << std::flush;
}

void KernelProfile::write() {
  const std::lock_guard lock(mutex_);
  if (has_news_) write_rows();
}

void KernelProfile::write_rows() {
  written_ = std::chrono::steady_clock::now();
  has_news_ = false;
  std::vector<const std::pair<const std::string, Row>*> sorted;
  for (const auto& entry : rows_) sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* a, const auto* b) { return a->second.total_ms > b->second.total_ms; });
  std::string text = kColumns;
  for (const auto* entry : sorted) {
    const auto& [name, row] = *entry;
    const KernelResources& r = row.resources;
    text += fmt::format("{}\t{}\t{:.1f}\t{:.1f}\t{:.1f}\t{}\t{}\t{}\t{}\t{}\t{}\n", name, row.launches,
                        1e3 * row.total_ms, 1e3 * row.least_ms, 1e3 * row.most_ms, r.registers, r.stack_bytes,
                        r.shared_bytes, r.blocks, r.occupancy_percent, row.bytes);
  }
  try {
    AtomicFile file((folder_ / file_name_).string());
    file.write(text);
    file.commit();
  } catch (const Error& error) {
    log_warning("COPPICE_GPU_PROFILE: {}", error.what());
  }
}

}  // namespace coppice::cuda
