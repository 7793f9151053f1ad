// Reads the environment, and runs mpiexec (see start_ranks.h).
#include "core/start_ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
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

constexpr int kStopping[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};
// Handlers have no other way to know.
std::atomic<pid_t> launcher{0};
std::atomic<int> n_signals{0};

extern "C" void tell_launcher(int) {
  const int saved_errno = errno;
  if (const pid_t pid = launcher.load(); pid > 0)
    ::kill(pid, n_signals.fetch_add(1) == 0 ? SIGUSR1 : SIGTERM);
  errno = saved_errno;
}

// Becomes the launcher, in a process group of its own: Ctrl-C at the terminal comes to its parent alone.
// Writes the error's number to `told` where it cannot.
[[noreturn]] void become_launcher(const std::vector<char*>& words, const sigset_t& signals, pid_t parent,
                                  int told) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);  // it has ended meanwhile
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  ::execvp(words[0], words.data());
  const int reason = errno;
  [[maybe_unused]] const ssize_t written = ::write(told, &reason, sizeof reason);
  ::_exit(127);
}

int wait_for_launcher(const std::vector<char*>& words) {
  int ends[2];
  sigset_t stopping, before;
  ::sigemptyset(&stopping);
  for (const int signal : kStopping) ::sigaddset(&stopping, signal);
  // A signal that comes before the launcher is known waits until it is.
  ::sigprocmask(SIG_BLOCK, &stopping, &before);
  const pid_t parent = ::getpid();
  const pid_t pid = ::pipe2(ends, O_CLOEXEC) == 0 ? ::fork() : -1;
  if (pid < 0)
    throw Error(ErrorCode::kUnavailable, fmt::format("cannot start mpiexec: {}", std::strerror(errno)));
  if (pid == 0) become_launcher(words, before, parent, ends[1]);
  ::close(ends[1]);
  int reason = 0;
  const bool has_failed = ::read(ends[0], &reason, sizeof reason) > 0;
  ::close(ends[0]);
  launcher = pid;
  struct sigaction action {};
  action.sa_handler = tell_launcher;
  for (const int signal : kStopping) {
    struct sigaction old {};
    ::sigaction(signal, nullptr, &old);
    if (signal != SIGHUP || old.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);  // nohup
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  launcher = 0;
  if (has_failed)
    throw Error(ErrorCode::kUnavailable,
                fmt::format("cannot start mpiexec: {} (Debian package openmpi-bin)", std::strerror(reason)));
  return status;
}

}  // namespace

// Open MPI, MPICH's Hydra and Slurm's PMI, and whatever speaks PMIx.
std::optional<int> launched_rank() { return number_of({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}); }
std::optional<int> launched_ranks_here() {
  return number_of({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"});
}

std::optional<int> launched_ranks() {
  return number_of({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"});
}
bool are_ranks_here() {
  const std::optional<int> here = launched_ranks_here(), all = launched_ranks();
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
  std::string mpiexec = "mpiexec", option = "-n", number = std::to_string(n_ranks);
  std::string program = (program_folder() / program_file().filename()).string();
  std::vector<char*> words{mpiexec.data(), option.data(), number.data(), program.data()};
  for (const char* const* word = argv + 1; *word != nullptr; ++word)
    words.push_back(const_cast<char*>(*word));
  words.push_back(nullptr);
  const int status = wait_for_launcher(words);
  std::exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

}  // namespace coppice
