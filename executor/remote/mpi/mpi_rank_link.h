// Ranks of an MPI communicator, for what runs on all of them together (core/rank_link.h).
//
//   const MpiSession session;
//   const Cluster cluster(std::make_shared<MpiRankLink>(session.world()));
#pragma once
#include <mpi.h>

#include "core/rank_link.h"

namespace coppice::executor::remote {

// All ranks make it and destroy it together. It calls MPI on the threads that wait, one at a time; where
// those are not the main thread, or others call MPI meanwhile, that is what MPI's thread level must allow.
class MpiRankLink final : public RankLink {
 public:
  // Duplicates the communicator, and does not use it otherwise. Errors: kUnavailable with MPI's words.
  explicit MpiRankLink(MPI_Comm user);
  ~MpiRankLink() override;
  MpiRankLink(const MpiRankLink&) = delete;
  MpiRankLink& operator=(const MpiRankLink&) = delete;

  int rank() const override { return rank_; }
  int n_ranks() const override { return n_ranks_; }
  // Sizes go first, then a message for each pair of ranks that has something to send, in parts of at most 1
  // GiB. Errors: kUnavailable with MPI's words. Where a rank has died, what comes of it is the launcher's:
  // Open MPI's mpiexec ends all others.
  std::vector<Bytes> wait_exchange(std::vector<Bytes> parts) override;
  std::vector<Bytes> wait_exchange_known(std::vector<Bytes> parts, std::span<const uint64_t> sizes,
                                         std::span<uint32_t> most) override;

 private:
  // Messages that are under way.
  class Requests {
   public:
    // `bytes`: what is to come, of a receive.
    template <class F>
    void add(F start, int bytes = -1);
    // Errors: kInternal, where less has come.
    void wait();

   private:
    std::vector<MPI_Request> all_;
    std::vector<int> bytes_;
  };
  // Sends parts, and receives as many bytes from each rank as said.
  std::vector<Bytes> wait_parts(std::vector<Bytes> parts, std::span<const uint64_t> sizes,
                                Requests& requests);

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, n_ranks_ = 1;
};

}  // namespace coppice::executor::remote
