// Limits how many oneTBB workers the process may have: as many as all arenas with a claim need together.
//
// oneTBB starts one worker less than there are cores unless told to, and of several
// tbb::global_control objects the smallest counts: an arena that raised the limit for itself would
// lower it for a larger one. Thread-safe.
#pragma once

namespace coppice {

class WorkerClaim {
 public:
  explicit WorkerClaim(int workers);  // without threads that enter an arena themselves
  ~WorkerClaim();
  WorkerClaim(const WorkerClaim&) = delete;
  WorkerClaim& operator=(const WorkerClaim&) = delete;

 private:
  int workers_;
};

}  // namespace coppice
