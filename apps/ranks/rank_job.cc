// Loads the MPI plugin and calls it (see rank_job.h).
#include "apps/ranks/rank_job.h"

#include <fmt/format.h>

#include <array>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

#include "apps/plugins/plugin_library.h"
#include "apps/ranks/mpi/mpi_plugin.h"
#include "core/check.h"
#include "core/error.h"

namespace coppice {
namespace {

constexpr PluginKind kPlugin{.file_name = "libcoppice_mpi_ranks.so",
                             .name = "MPI",
                             .needs = "MPI",
                             .version_function = "coppice_mpi_abi_version",
                             .version = COPPICE_MPI_ABI_VERSION};

const PluginLibrary& plugin() {
  static const PluginLibrary library(kPlugin, PluginLibrary::candidates(kPlugin));
  return library;
}
template <class F>
F* entry(const char* name) {
  return reinterpret_cast<F*>(plugin().entry_point(name));
}

using ErrorText = std::array<char, 512>;
void check(int failed, const ErrorText& error) {
  if (failed != 0) throw Error(ErrorCode::kUnavailable, error.data());
}

class PluginLink final : public RankLink {
 public:
  PluginLink(int rank, int n_ranks) : rank_(rank), n_ranks_(n_ranks) {}
  int rank() const override { return rank_; }
  int n_ranks() const override { return n_ranks_; }

  std::vector<Bytes> wait_exchange(std::vector<Bytes> parts) override {
    COPPICE_CHECK(parts.size() == static_cast<size_t>(n_ranks_), "an exchange has a part for each rank");
    std::vector<const void*> data;
    std::vector<uint64_t> sizes;
    for (const Bytes& part : parts) data.push_back(part.data()), sizes.push_back(part.size());
    std::vector<Bytes> come(parts.size());
    const auto room = [](void* context, int rank, uint64_t bytes) -> void* {
      Bytes& part = (*static_cast<std::vector<Bytes>*>(context))[static_cast<size_t>(rank)];
      part.resize(bytes);
      return part.data();
    };
    ErrorText error{};
    check(exchange_(data.data(), sizes.data(), room, &come, error.data(), error.size()), error);
    return come;
  }

 private:
  const int rank_, n_ranks_;
  decltype(&coppice_mpi_exchange) exchange_ = entry<decltype(coppice_mpi_exchange)>("coppice_mpi_exchange");
};

}  // namespace

std::string why_no_ranks() { return plugin().is_loaded() ? "" : plugin().why_not(); }

RankJob::RankJob() : n_exceptions_(std::uncaught_exceptions()) {
  if (!plugin().is_loaded())
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("this process is a rank of an MPI job, and cannot join it: {}", plugin().why_not()));
  int rank = 0, n_ranks = 1;
  ErrorText error{};
  check(entry<decltype(coppice_mpi_begin)>("coppice_mpi_begin")(&rank, &n_ranks, error.data(), error.size()),
        error);
  cluster_.emplace(std::make_shared<PluginLink>(rank, n_ranks));
}

RankJob::~RankJob() {
  if (std::uncaught_exceptions() > n_exceptions_) return;
  entry<decltype(coppice_mpi_end)>("coppice_mpi_end")();
}

}  // namespace coppice
