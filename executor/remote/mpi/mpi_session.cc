// MpiSession and start_ranks().
#include "executor/remote/mpi/mpi_session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "core/error.h"
#include "core/log.h"
#include "core/program_file.h"
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

bool is_mpi_rank() {
  // Open MPI, MPICH's Hydra and Slurm's PMI, and whatever speaks PMIx.
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

void start_ranks(int n_ranks, char** argv) {
  if (n_ranks < 1)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{} ranks are not at least one", n_ranks));
  // Open MPI reads these; other implementations need no word for it. What the user has set counts.
  for (const char* setting :
       {"OMPI_MCA_rmaps_base_oversubscribe", "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"})
    ::setenv(setting, "1", 0);
  // Bound to a core, a rank's progress thread and its queue's threads would take turns there.
  ::setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 0);
  std::string mpiexec = "mpiexec", option = "-n", number = std::to_string(n_ranks);
  std::string program = (program_folder() / program_file().filename()).string();
  std::vector<char*> words{mpiexec.data(), option.data(), number.data(), program.data()};
  for (char** word = argv + 1; *word != nullptr; ++word) words.push_back(*word);
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  throw Error(ErrorCode::kUnavailable,
              fmt::format("cannot start {}: {} (Debian package openmpi-bin)", mpiexec, std::strerror(errno)));
}

}  // namespace coppice::executor::remote
