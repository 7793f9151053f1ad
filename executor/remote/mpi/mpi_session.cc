// MpiSession.
#include "executor/remote/mpi/mpi_session.h"

#include <fmt/format.h>

#include <exception>

#include "core/error.h"
#include "core/log.h"
#include "executor/remote/mpi/mpi_transport.h"

namespace coppice::executor::remote {

std::string mpi_error_text(int error) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(error, text, &length) != MPI_SUCCESS) return fmt::format("error {}", error);
  return {text, static_cast<size_t>(length)};
}

void check_mpi(int error, const char* what) {
  if (error == MPI_SUCCESS) return;
  throw Error(ErrorCode::kUnavailable, fmt::format("MPI: {}: {}", what, mpi_error_text(error)));
}

MpiSession::MpiSession() {
  int is_initialised = 0;
  MPI_Initialized(&is_initialised);
  if (is_initialised == 0) {
    int level = MPI_THREAD_SINGLE;
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &level), "it cannot be initialised");
    is_ours_ = true;
  }
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  rank_ = static_cast<WorkerId>(rank);
  n_ranks_ = static_cast<WorkerId>(size);
}

MpiSession::~MpiSession() {
  if (!is_ours_) return;
  // An error that only this rank has: the others may be waiting for it, and the launcher ends them when
  // this one ends without a word.
  if (std::uncaught_exceptions() > n_exceptions_) return;
  if (MpiTransport::n_abandoned() > 0) {
    log_warning("MPI: rank {} does not finalise it, since a transport has not ended with its peers", rank_);
    return;
  }
  MPI_Finalize();
}

}  // namespace coppice::executor::remote
