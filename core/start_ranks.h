// Ranks of a job as processes: which of them this one is, and a program that starts its own.
//
//   if (!launched_rank()) start_ranks(4, argv);        // the program again, four times, by mpiexec
//
// Neither needs MPI to be linked: they ask the environment, and start a program.
#pragma once
#include <optional>

namespace coppice {

// Returns this process's number where a launcher (mpirun, mpiexec, srun with PMI) has started it as a rank,
// and how many ranks there are on this machine, where the launcher says so. Before MPI is initialised.
std::optional<int> launched_rank();
std::optional<int> launched_ranks();  // of the whole job
std::optional<int> launched_ranks_here();
// Returns whether all ranks are on this machine, as far as the launcher says.
bool are_ranks_here();
inline bool is_mpi_rank() { return launched_rank().has_value(); }

// Runs `mpiexec -n N` of the same program with the same arguments, on this machine, and ends as it ends; as
// many ranks as are wanted run there, whatever the number of cores, and none is bound to a core. They read
// nothing from standard input. The first Ctrl-C, SIGTERM, SIGUSR1 or SIGHUP comes to the ranks as SIGUSR1, at
// which they may finish something (core/stop_signals.h); at the second one mpiexec ends them. Does not
// return. Errors: kUnavailable, when there is no mpiexec; kInvalidArgument for fewer ranks than one.
[[noreturn]] void start_ranks(int n_ranks, const char* const* argv);

}  // namespace coppice
