// Remote references over MPI, beside bare MPI between the same ranks in the same run: the ranks are another
// program's (remote_ranks.cc), which mpiexec starts.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <string_view>

#include "benchmarks/benchmarks.h"
#include "benchmarks/child.h"
#include "core/error.h"
#include "core/program_file.h"

namespace coppice::bench {
namespace {

// One start of the ranks.
struct Job {
  const char* name;  // in front of its rows' names
  int n_ranks;
  const char *mode, *what;
  bool over_tcp;
  int calls;  // in a round
};
constexpr Job kJobs[] = {
    {"", 2, "threads", "latency", false, 100},    {"", 3, "threads", "share", false, 30},
    {"", 2, "threads", "flow", false, 1000},      {"driven_", 2, "driven", "latency", false, 100},
    {"driven_", 3, "driven", "share", false, 30}, {"driven_", 2, "driven", "flow", false, 1000},
    {"tcp_", 2, "threads", "latency", true, 50},  {"tcp_driven_", 2, "driven", "latency", true, 50}};

// A rank 0 prints this for a row.
struct Line {
  std::string name;
  double ours, peer, best, peers_best, packets, bytes;
  int peer_bytes;
};

// Ranks may be root's and more than cores, and none is bound to a core, which its threads would share.
Environment environment_of_ranks() {
  return {{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
          {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
          {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
          {"OMPI_MCA_hwloc_base_binding_policy", "none"}};
}

void wait_end(Child& child) {
  if (const int code = child.wait(); code != 0)
    throw Error(ErrorCode::kUnavailable,
                fmt::format("the ranks ended with exit code {}: {}", code, last_line(child.errors())));
}

std::vector<Line> wait_lines(const Job& job, const std::filesystem::path& program, int rounds) {
  Environment environment = environment_of_ranks();
  if (job.over_tcp) {
    environment["OMPI_MCA_btl"] = "tcp,self";
    environment["OMPI_MCA_btl_tcp_if_include"] = "lo";
  }
  Child child({"mpiexec", "-n", std::to_string(job.n_ranks), program, job.mode, job.what,
               std::to_string(rounds), std::to_string(job.calls)},
              environment);
  std::vector<Line> lines;
  while (const auto text = child.read_line()) {
    Line line;
    std::istringstream in(*text);
    if (in >> line.name >> line.ours >> line.peer >> line.best >> line.peers_best >> line.packets >>
        line.bytes >> line.peer_bytes)
      lines.push_back(line);
  }
  wait_end(child);
  return lines;
}

Row row_of(const Job& job, const Line& line) {
  Row row;
  row.name = fmt::format("remote/{}{}", job.name, line.name);
  row.ours = line.ours, row.peer = line.peer;
  row.unit = line.name == "calls" ? "calls/s" : line.name == "bytes_1MB" ? "B/s" : "us";
  const char* const way = job.over_tcp ? "TCP to itself" : "shared memory";
  row.peer_name =
      fmt::format("bare MPI, {}, messages of {} bytes, best {:.4g}", way, line.peer_bytes, line.peers_best);
  row.detail = fmt::format("best {:.4g}; {} ranks; rank 0: {:.3g} packets and {:.4g} bytes a call", line.best,
                           job.n_ranks, line.packets, line.bytes);
  // A median that is far from the best is that of the machine's other work: it shows no target met or missed.
  const bool is_disturbed = line.ours > 2 * line.best || line.peer > 2 * line.peers_best;
  if (!row.is_rate() && is_disturbed) row.detail += "; DISTURBED by other work on this machine";
  if (line.name == "remote_to_here" && !is_disturbed) row.target = ratio_at_most(3);
  return row;
}

// The MPM solver over ranks of one thread each, beside one rank alone.
Row wait_scaling(const char* kind, int n_ranks, const Options& options) {
  const int cells = options.tiny    ? 8
                    : options.quick ? 24
                                    : 40,
            steps = options.tiny ? 2 : 20,
            rounds = options.tiny    ? 1
                     : options.quick ? 3
                                     : 9;
  Child child({"mpiexec", "-n", std::to_string(n_ranks), program_folder() / "coppice-bench-solver-ranks",
               kind, std::to_string(cells), std::to_string(steps), std::to_string(rounds)},
              environment_of_ranks());
  Row row;
  row.name = fmt::format("remote/mpm_{}_{}", kind, n_ranks);
  row.unit = "particle steps/s";
  row.peer_name = std::string_view(kind) == "weak" ? "one rank with its part" : "one rank with all of it";
  while (const auto text = child.read_line()) {
    std::istringstream in(*text);
    std::string name;
    double alone = 0, share = 0, exchanges = 0, bytes = 0;
    uint64_t blocks = 0, particles = 0;
    if (!(in >> name >> row.ours >> alone >> share >> exchanges >> bytes >> blocks >> particles)) continue;
    row.peer = alone;
    row.detail = fmt::format(
        "{} ranks of one thread, {} particles in {} blocks; rank 0: {:.0f} % of the time in "
        "{:.3g} exchanges a step, {:.3g} bytes sent",
        n_ranks, particles, blocks, 100 * share, exchanges, bytes);
  }
  wait_end(child);
  return row;
}

}  // namespace

void run_remote(Report& report) {
  report.begin("remote");
  const std::filesystem::path program = program_folder() / "coppice-bench-ranks";
  if (!std::filesystem::exists(program)) {
    report.begin("remote: no rows, since this program was built without MPI (libopenmpi-dev, openmpi-bin)");
    return;
  }
  const Options& options = report.options();
  const int rounds = options.tiny ? 1 : options.quick ? 21 : 101;
  try {
    for (const Job& job : kJobs)
      for (const Line& line : wait_lines(job, program, rounds)) report.add(row_of(job, line));
    for (const int n_ranks : {2, 4})
      for (const char* kind : {"strong", "weak"}) report.add(wait_scaling(kind, n_ranks, options));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kIo) throw;
    report.begin(fmt::format("remote: no rows, since {} (Debian package openmpi-bin)", error.message()));
  }
}

}  // namespace coppice::bench
