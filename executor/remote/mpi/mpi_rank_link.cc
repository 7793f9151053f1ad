// MpiRankLink.
#include "executor/remote/mpi/mpi_rank_link.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <utility>

#include "core/check.h"
#include "executor/remote/mpi/mpi_session.h"

namespace coppice::executor::remote {
namespace {

constexpr size_t kPartBytes = size_t{1} << 30;  // MPI counts by an int

// Calls each(data, bytes) for the parts of a message.
template <class Byte, class F>
void for_parts(Byte* data, size_t bytes, F each) {
  for (size_t at = 0; at < bytes; at += kPartBytes)
    each(data + at, static_cast<int>(std::min(kPartBytes, bytes - at)));
}

}  // namespace

MpiRankLink::MpiRankLink(MPI_Comm user) {
  check_mpi(MPI_Comm_dup(user, &comm_), "the communicator cannot be duplicated");
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  check_mpi(MPI_Comm_rank(comm_, &rank_), "the communicator has no ranks");
  check_mpi(MPI_Comm_size(comm_, &n_ranks_), "the communicator has no ranks");
}

MpiRankLink::~MpiRankLink() {
  // Others that still wait for this rank would make it wait in turn.
  int is_finalised = 0;
  MPI_Finalized(&is_finalised);
  if (std::uncaught_exceptions() == 0 && is_finalised == 0) MPI_Comm_free(&comm_);
}

std::vector<RankLink::Bytes> MpiRankLink::wait_exchange(std::vector<Bytes> parts) {
  const auto n = static_cast<size_t>(n_ranks_);
  COPPICE_CHECK(parts.size() == n, "an exchange has a part for each rank");
  std::vector<uint64_t> sizes(n), coming(n);
  for (size_t r = 0; r < n; ++r) sizes[r] = parts[r].size();
  check_mpi(MPI_Alltoall(sizes.data(), 1, MPI_UINT64_T, coming.data(), 1, MPI_UINT64_T, comm_),
            "an exchange has failed");
  std::vector<Bytes> come(n);
  std::vector<MPI_Request> requests;
  const auto add = [&](auto start) {
    requests.push_back(MPI_REQUEST_NULL);
    check_mpi(start(&requests.back()), "an exchange has failed");
  };
  for (size_t r = 0; r < n; ++r) {
    if (static_cast<int>(r) == rank_) continue;
    come[r].resize(coming[r]);
    for_parts(come[r].data(), come[r].size(), [&](std::byte* data, int size) {
      add([&](MPI_Request* to) {
        return MPI_Irecv(data, size, MPI_BYTE, static_cast<int>(r), 0, comm_, to);
      });
    });
  }
  for (size_t r = 0; r < n; ++r) {
    if (static_cast<int>(r) == rank_) continue;
    for_parts(parts[r].data(), parts[r].size(), [&](const std::byte* data, int size) {
      add([&](MPI_Request* to) {
        return MPI_Isend(data, size, MPI_BYTE, static_cast<int>(r), 0, comm_, to);
      });
    });
  }
  check_mpi(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE),
            "an exchange has failed");
  come[static_cast<size_t>(rank_)] = std::move(parts[static_cast<size_t>(rank_)]);
  return come;
}

}  // namespace coppice::executor::remote
