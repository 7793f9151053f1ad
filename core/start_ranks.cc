// Reads the environment, and runs mpiexec (see start_ranks.h).
#include "core/start_ranks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
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
#include "core/launcher_text.h"
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
// Handlers have no other way to tell.
std::atomic<int> n_signals{0};

extern "C" void note_signal(int) { n_signals.fetch_add(1); }

// Becomes the launcher, in a process group of its own: Ctrl-C at the terminal comes to its parent alone.
// Writes the error's number to `told` where it cannot.
[[noreturn]] void become_launcher(const std::vector<char*>& words, const sigset_t& signals, pid_t parent,
                                  int told, int text) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);  // it has ended meanwhile
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::dup2(text, STDERR_FILENO);
  ::sigprocmask(SIG_SETMASK, &signals, nullptr);
  ::execvp(words[0], words.data());
  const int reason = errno;
  [[maybe_unused]] const ssize_t written = ::write(told, &reason, sizeof reason);
  ::_exit(127);
}

// Shows what the launcher and the ranks say until they have ended. At the first signal the ranks are asked to
// end, again and again: those that are still being started would not hear of it. At the second one the
// launcher ends them.
int wait_for_end(pid_t pid, int text) {
  constexpr int kPauseMs = 50, kPausesPerSignal = 4;
  LauncherText words;
  const auto show = [](const std::string& lines) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, lines.data(), lines.size());
  };
  std::array<char, 4096> bytes;
  int status = 0, has_told = 0;
  bool is_open = true, has_ended = false;
  for (int pause = 0; is_open || !has_ended; ++pause) {
    const int told = n_signals.load();
    if (!has_ended && told == 1 && pause % kPausesPerSignal == 0) ::kill(pid, SIGUSR1);
    if (!has_ended && told > 1 && has_told <= 1) ::kill(pid, SIGTERM);
    has_told = told;
    pollfd end{.fd = text, .events = POLLIN, .revents = 0};
    if (is_open && ::poll(&end, 1, kPauseMs) > 0) {
      const ssize_t n = ::read(text, bytes.data(), bytes.size());
      if (n > 0) show(words.take({bytes.data(), static_cast<size_t>(n)}));
      is_open = n > 0 || (n < 0 && errno == EINTR);
    }
    if (!has_ended) has_ended = ::waitpid(pid, &status, is_open ? WNOHANG : 0) == pid;
  }
  show(words.rest());
  return status;
}

int wait_for_launcher(const std::vector<char*>& words) {
  int ends[2] = {-1, -1}, text[2] = {-1, -1};
  sigset_t stopping, before;
  ::sigemptyset(&stopping);
  for (const int signal : kStopping) ::sigaddset(&stopping, signal);
  // A signal that comes before it is counted waits until it is.
  ::sigprocmask(SIG_BLOCK, &stopping, &before);
  const pid_t parent = ::getpid();
  const bool has_pipes = ::pipe2(ends, O_CLOEXEC) == 0 && ::pipe2(text, O_CLOEXEC) == 0;
  const pid_t pid = has_pipes ? ::fork() : -1;
  if (pid < 0)
    throw Error(ErrorCode::kUnavailable, fmt::format("cannot start mpiexec: {}", std::strerror(errno)));
  if (pid == 0) become_launcher(words, before, parent, ends[1], text[1]);
  ::close(ends[1]), ::close(text[1]);
  int reason = 0;
  const bool has_failed = ::read(ends[0], &reason, sizeof reason) > 0;
  ::close(ends[0]);
  struct sigaction action {};
  action.sa_handler = note_signal;
  for (const int signal : kStopping) {
    struct sigaction old {};
    ::sigaction(signal, nullptr, &old);
    if (signal != SIGHUP || old.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);  // nohup
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  const int status = wait_for_end(pid, text[0]);
  ::close(text[0]);
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
  constexpr int kExitInterrupted = 130;  // also where ranks were ended before they could listen
  if (n_signals.load() > 0 && status != 0) std::exit(kExitInterrupted);
  std::exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

}  // namespace coppice
