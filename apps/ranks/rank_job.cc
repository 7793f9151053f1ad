// Loads the MPI plugin and calls it (see rank_job.h).
#include "apps/ranks/rank_job.h"

#include <fmt/format.h>

#include <array>
#include <exception>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "apps/plugins/plugin_library.h"
#include "apps/ranks/mpi/mpi_plugin.h"
#include "core/check.h"
#include "core/error.h"
#include "core/start_ranks.h"

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
    return wait_call(parts, [&](const Given& g, Taken& come, ErrorText& error) {
      return exchange_(g.data.data(), g.sizes.data(), room, &come, error.data(), error.size());
    });
  }
  std::vector<Bytes> wait_exchange_known(std::vector<Bytes> parts, std::span<const uint64_t> coming,
                                         std::span<uint32_t> most) override {
    return wait_call(parts, [&](const Given& g, Taken& come, ErrorText& error) {
      return exchange_known_(g.data.data(), g.sizes.data(), coming.data(), most.data(), most.size(), room,
                             &come, error.data(), error.size());
    });
  }

 private:
  struct Given {
    std::vector<const void*> data;
    std::vector<uint64_t> sizes;
  };
  using Taken = std::vector<Bytes>;

  static void* room(void* context, int rank, uint64_t bytes) {
    Bytes& part = (*static_cast<Taken*>(context))[static_cast<size_t>(rank)];
    part.resize(bytes);
    return part.data();
  }
  template <class F>
  Taken wait_call(const std::vector<Bytes>& parts, F call) const {
    COPPICE_CHECK(parts.size() == static_cast<size_t>(n_ranks_), "an exchange has a part for each rank");
    Given given;
    for (const Bytes& part : parts) given.data.push_back(part.data()), given.sizes.push_back(part.size());
    Taken come(parts.size());
    ErrorText error{};
    check(call(given, come, error), error);
    return come;
  }

  const int rank_, n_ranks_;
  decltype(&coppice_mpi_exchange) exchange_ = entry<decltype(coppice_mpi_exchange)>("coppice_mpi_exchange");
  decltype(&coppice_mpi_exchange_known) exchange_known_ =
      entry<decltype(coppice_mpi_exchange_known)>("coppice_mpi_exchange_known");
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
  if (const std::optional<int> launched = launched_ranks(); launched && *launched != n_ranks)
    throw Error(
        ErrorCode::kUnavailable,
        fmt::format("the launcher has started {} ranks, and MPI knows of {}: it is of another MPI than the "
                    "plugin's",
                    *launched, n_ranks));
  cluster_.emplace(std::make_shared<PluginLink>(rank, n_ranks));
}

RankJob::~RankJob() {
  if (std::uncaught_exceptions() > n_exceptions_) return;
  entry<decltype(coppice_mpi_end)>("coppice_mpi_end")();
}

}  // namespace coppice
