// Remote references over MPI, beside bare MPI between the same ranks in the same run: the ranks are another
// program's (remote_ranks.cc), which mpiexec starts.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

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

std::vector<Line> wait_lines(const Job& job, const std::filesystem::path& program, int rounds) {
  // Ranks may be root's and more than cores, and none is bound to a core, which its threads would share.
  Environment environment{{"OMPI_ALLOW_RUN_AS_ROOT", "1"},
                          {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"},
                          {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                          {"OMPI_MCA_hwloc_base_binding_policy", "none"}};
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
  if (const int code = child.wait(); code != 0)
    throw Error(ErrorCode::kUnavailable,
                fmt::format("the ranks ended with exit code {}: {}", code, last_line(child.errors())));
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
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kIo) throw;
    report.begin(fmt::format("remote: no rows, since {} (Debian package openmpi-bin)", error.message()));
  }
}

}  // namespace coppice::bench
