// Ranks of a job work on one thing together: each sends bytes to each, and waits for what the others send.
//
// LocalRanks (core/local_ranks.h) are threads of one process, MpiRankLink
// (executor/remote/mpi/mpi_rank_link.h) those of an MPI communicator.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace coppice {

class RankLink {
 public:
  using Bytes = std::vector<std::byte>;

  virtual ~RankLink() = default;
  virtual int rank() const = 0;
  virtual int n_ranks() const = 0;
  // All ranks call it together, as often as one another: parts[r] goes to rank r, and what each has sent to
  // this one is returned, by rank. Blocks until all have called. One thread at a time. Errors: kUnavailable
  // when another rank has given up, or the link fails; then no rank can go on.
  virtual std::vector<Bytes> wait_exchange(std::vector<Bytes> parts) = 0;
  // The same in one round of messages, between those ranks alone that have something for each other, where
  // each knows how many bytes come from whom: sizes[r] from rank r. Beside it each of `most`, as many on all
  // ranks, becomes the largest that any rank gives.
  virtual std::vector<Bytes> wait_exchange_known(std::vector<Bytes> parts, std::span<const uint64_t> sizes,
                                                 std::span<uint32_t> most);
};

}  // namespace coppice
