// Reads the environment, and becomes mpiexec (see start_ranks.h).
#include "core/start_ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/program_file.h"

namespace coppice {
namespace {

// Returns the first of these that is a number.
std::optional<int> number_of(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* const text = std::getenv(name);
    int number = 0;
    if (text == nullptr) continue;
    const char* const end = text + std::strlen(text);
    if (const auto read = std::from_chars(text, end, number); read.ec == std::errc() && read.ptr == end)
      return number;
  }
  return std::nullopt;
}

}  // namespace

// Open MPI, MPICH's Hydra and Slurm's PMI, and whatever speaks PMIx.
std::optional<int> launched_rank() { return number_of({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}); }
std::optional<int> launched_ranks_here() {
  return number_of({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"});
}

bool are_ranks_here() {
  const std::optional<int> here = launched_ranks_here(),
                           all = number_of({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"});
  return here && here == all;
}

void start_ranks(int n_ranks, const char* const* argv) {
  if (n_ranks < 1)
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{} ranks are not at least one", n_ranks));
  // Open MPI reads these; other implementations need no word for it. What the user has set counts.
  for (const char* setting :
       {"OMPI_MCA_rmaps_base_oversubscribe", "OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"})
    ::setenv(setting, "1", 0);
  // Bound to a core, a rank's threads would take turns there.
  ::setenv("OMPI_MCA_hwloc_base_binding_policy", "none", 0);
  // So many seconds lie between the signal that asks ranks to end and the one that ends them: they may have a
  // frame to finish.
  ::setenv("OMPI_MCA_odls_base_sigkill_timeout", "3600", 0);
  std::string mpiexec = "mpiexec", option = "-n", number = std::to_string(n_ranks);
  std::string program = (program_folder() / program_file().filename()).string();
  std::vector<char*> words{mpiexec.data(), option.data(), number.data(), program.data()};
  for (const char* const* word = argv + 1; *word != nullptr; ++word)
    words.push_back(const_cast<char*>(*word));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  throw Error(ErrorCode::kUnavailable,
              fmt::format("cannot start {}: {} (Debian package openmpi-bin)", mpiexec, std::strerror(errno)));
}

}  // namespace coppice
