// MPI for as long as an object lives.
//
//   int main(int argc, char** argv) {
//     if (!is_mpi_rank()) start_ranks(4, argv);        // core/start_ranks.h
//     const MpiSession session;
//     MpiTransport transport(session.world());         // mpi_transport.h
#pragma once
#include <mpi.h>

#include <exception>
#include <string>

#include "core/start_ranks.h"
#include "executor/remote/ids.h"

namespace coppice::executor::remote {

// Initialises MPI, unless the program has, and then finalises it at the end. There is one at a time, on the
// main thread; it outlives all transports. Where a transport did not end with its peers (mpi_transport.h),
// MPI is left as it is: MPI_Finalize() would wait for a rank that is dead. The process should end then. So
// it is where an exception goes past it, which other ranks do not know of.
class MpiSession {
 public:
  // MPI is asked for MPI_THREAD_MULTIPLE and may give less, which transports look at. Errors: kUnavailable,
  // where MPI returns at all: some implementations end the process.
  MpiSession();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  MPI_Comm world() const { return MPI_COMM_WORLD; }
  WorkerId rank() const { return rank_; }
  WorkerId n_ranks() const { return n_ranks_; }

 private:
  bool is_ours_ = false;
  const int n_exceptions_ = std::uncaught_exceptions();
  WorkerId rank_ = 0, n_ranks_ = 1;
};

// Returns MPI's own words for an error of its functions.
std::string mpi_error_text(int error);

// Throws kUnavailable with `what` and MPI's words, unless `error` is MPI_SUCCESS.
void check_mpi(int error, const char* what);

}  // namespace coppice::executor::remote
