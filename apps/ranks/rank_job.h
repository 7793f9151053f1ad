// The ranks of the job that this process is one of, for the program, which is not linked to MPI.
#pragma once
#include <optional>
#include <string>

#include "sparse/ranks/cluster.h"

namespace coppice {

// Joins the other ranks. One at a time, and never again. Thread-compatible.
class RankJob {
 public:
  // Errors: kUnavailable, where there is no plugin for MPI (why_no_ranks()), or MPI fails.
  RankJob();
  // Leaves the others in order, unless an exception goes past it: they may wait for this rank, and the
  // launcher ends them when it ends without a word.
  ~RankJob();
  RankJob(const RankJob&) = delete;
  RankJob& operator=(const RankJob&) = delete;

  const Cluster& cluster() const { return *cluster_; }

 private:
  int n_exceptions_;
  std::optional<Cluster> cluster_;
};

// Returns why a job of several ranks cannot be joined, or nothing.
std::string why_no_ranks();

}  // namespace coppice
