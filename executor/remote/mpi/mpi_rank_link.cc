// MpiRankLink.
#include "executor/remote/mpi/mpi_rank_link.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "executor/remote/mpi/mpi_session.h"

namespace coppice::executor::remote {
namespace {

constexpr const char* kFailed = "an exchange has failed";
constexpr size_t kPartBytes = size_t{1} << 30;  // MPI counts by an int

// Calls each(data, bytes) for the parts of a message.
template <class Byte, class F>
void for_parts(Byte* data, size_t bytes, F each) {
  for (size_t at = 0; at < bytes; at += kPartBytes)
    each(data + at, static_cast<int>(std::min(kPartBytes, bytes - at)));
}

}  // namespace

template <class F>
void MpiRankLink::Requests::add(F start, int bytes) {
  all_.push_back(MPI_REQUEST_NULL);
  bytes_.push_back(bytes);
  check_mpi(start(&all_.back()), kFailed);
}

void MpiRankLink::Requests::wait() {
  // Where ranks share cores, one that waits and keeps its core keeps others from what it waits for.
  constexpr int kPolls = 200, kYields = 2000;
  std::vector<MPI_Status> statuses(all_.size());
  for (int polls = 0;; ++polls) {
    int is_done = 0;
    check_mpi(MPI_Testall(static_cast<int>(all_.size()), all_.data(), &is_done, statuses.data()), kFailed);
    if (is_done != 0) break;
    if (polls > kPolls + kYields)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    else if (polls > kPolls)
      std::this_thread::yield();
  }
  for (size_t i = 0; i < all_.size(); ++i) {
    int bytes = 0;
    if (bytes_[i] >= 0) MPI_Get_count(&statuses[i], MPI_BYTE, &bytes);
    if (bytes_[i] >= 0 && bytes != bytes_[i])
      throw Error(ErrorCode::kInternal, "ranks are out of step: all give the same calls in the same order");
  }
  all_.clear(), bytes_.clear();
}

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
  Requests requests;
  requests.add([&](MPI_Request* to) {
    return MPI_Ialltoall(sizes.data(), 1, MPI_UINT64_T, coming.data(), 1, MPI_UINT64_T, comm_, to);
  });
  requests.wait();
  return wait_parts(std::move(parts), coming, requests);
}

std::vector<RankLink::Bytes> MpiRankLink::wait_exchange_known(std::vector<Bytes> parts,
                                                              std::span<const uint64_t> sizes,
                                                              std::span<uint32_t> most) {
  COPPICE_CHECK(parts.size() == static_cast<size_t>(n_ranks_) && sizes.size() == parts.size(),
                "an exchange has a part for each rank");
  Requests requests;
  requests.add([&](MPI_Request* to) {
    return MPI_Iallreduce(MPI_IN_PLACE, most.data(), static_cast<int>(most.size()), MPI_UINT32_T, MPI_MAX,
                          comm_, to);
  });
  return wait_parts(std::move(parts), sizes, requests);
}

std::vector<RankLink::Bytes> MpiRankLink::wait_parts(std::vector<Bytes> parts,
                                                     std::span<const uint64_t> sizes, Requests& requests) {
  // MPI may still write to what is under way when a wait has failed: it is never freed then.
  struct Room {
    std::vector<Bytes> parts, come;
  };
  auto room = std::make_unique<Room>();
  room->parts = std::move(parts);
  const auto n = static_cast<size_t>(n_ranks_);
  room->come.resize(n);
  try {
    for (size_t r = 0; r < n; ++r) {
      if (static_cast<int>(r) == rank_) continue;
      room->come[r].resize(sizes[r]);
      for_parts(room->come[r].data(), room->come[r].size(), [&](std::byte* data, int size) {
        requests.add(
            [&](MPI_Request* to) {
              return MPI_Irecv(data, size, MPI_BYTE, static_cast<int>(r), 0, comm_, to);
            },
            size);
      });
    }
    for (size_t r = 0; r < n; ++r) {
      if (static_cast<int>(r) == rank_) continue;
      for_parts(room->parts[r].data(), room->parts[r].size(), [&](const std::byte* data, int size) {
        requests.add([&](MPI_Request* to) {
          return MPI_Isend(data, size, MPI_BYTE, static_cast<int>(r), 0, comm_, to);
        });
      });
    }
    requests.wait();
  } catch (...) {
    [[maybe_unused]] const Room* const kept = room.release();
    throw;
  }
  room->come[static_cast<size_t>(rank_)] = std::move(room->parts[static_cast<size_t>(rank_)]);
  return std::move(room->come);
}

}  // namespace coppice::executor::remote
