// The entry points of libcoppice_mpi_ranks.so: they alone call MPI.
#include "apps/ranks/mpi/mpi_plugin.h"

#include <cstdio>
#include <cstring>
#include <exception>
#include <span>
#include <vector>

#include "executor/remote/mpi/mpi_rank_link.h"
#include "executor/remote/mpi/mpi_session.h"

namespace {

namespace remote = coppice::executor::remote;

struct Job {
  remote::MpiSession session;
  remote::MpiRankLink link{session.world()};
};
// It is never destroyed but by coppice_mpi_end(): the program may end in the middle of everything.
Job* job = nullptr;

// Runs f, and turns what it throws into one line.
template <class F>
int told(char* error, size_t error_bytes, F f) {
  try {
    f();
    return 0;
  } catch (const std::exception& failed) {
    std::snprintf(error, error_bytes, "%s", failed.what());
  }
  return 1;
}

std::vector<coppice::RankLink::Bytes> taken(const void* const* parts, const uint64_t* sizes) {
  std::vector<coppice::RankLink::Bytes> bytes;
  for (int r = 0; r < job->link.n_ranks(); ++r) {
    const auto* const from = static_cast<const std::byte*>(parts[r]);
    bytes.emplace_back(from, from + sizes[r]);
  }
  return bytes;
}
void give(const std::vector<coppice::RankLink::Bytes>& come, CoppiceMpiRoom room, void* context) {
  for (size_t r = 0; r < come.size(); ++r) {
    void* const to = room(context, static_cast<int>(r), come[r].size());
    if (!come[r].empty()) std::memcpy(to, come[r].data(), come[r].size());
  }
}

}  // namespace

#define COPPICE_MPI_EXPORT __attribute__((visibility("default")))

COPPICE_MPI_EXPORT int coppice_mpi_abi_version(void) { return COPPICE_MPI_ABI_VERSION; }

COPPICE_MPI_EXPORT int coppice_mpi_begin(int* rank, int* n_ranks, char* error, size_t error_bytes) {
  return told(error, error_bytes, [&] {
    job = new Job;
    *rank = job->link.rank(), *n_ranks = job->link.n_ranks();
  });
}

COPPICE_MPI_EXPORT int coppice_mpi_exchange(const void* const* parts, const uint64_t* sizes,
                                            CoppiceMpiRoom room, void* context, char* error,
                                            size_t error_bytes) {
  return told(error, error_bytes, [&] { give(job->link.wait_exchange(taken(parts, sizes)), room, context); });
}

COPPICE_MPI_EXPORT int coppice_mpi_exchange_known(const void* const* parts, const uint64_t* sizes,
                                                  const uint64_t* coming, uint32_t* most, size_t n_most,
                                                  CoppiceMpiRoom room, void* context, char* error,
                                                  size_t error_bytes) {
  return told(error, error_bytes, [&] {
    const std::span known(coming, static_cast<size_t>(job->link.n_ranks()));
    give(job->link.wait_exchange_known(taken(parts, sizes), known, {most, n_most}), room, context);
  });
}

COPPICE_MPI_EXPORT void coppice_mpi_end(void) {
  delete job;
  job = nullptr;
}
