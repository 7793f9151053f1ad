// Medians, the copy's speed and the machine's description (see measure.h).
#include "benchmarks/measure.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <thread>

#include "apps/cli/system_info.h"
#include "benchmarks/child.h"
#include "benchmarks/peers/peak.h"
#include "core/error.h"
#include "core/program_file.h"
#include "gpu/jit/specializer.h"

namespace coppice::bench {
namespace {

// First line of a command's output; empty when there is none.
std::string output_of(const std::string& command) {
  std::string text;
  if (FILE* pipe = ::popen(command.c_str(), "r")) {
    char line[256];
    if (std::fgets(line, sizeof line, pipe) != nullptr) text = line;
    ::pclose(pipe);
  }
  return text.substr(0, text.find('\n'));
}

// The portable bundle has no repository, but a file that says what it was made of.
std::string commit_text() {
  std::ifstream of_bundle(program_folder() / "../share/doc/coppice/commit");
  if (std::string line; std::getline(of_bundle, line)) return line;
  const std::string in_tree = "git -C '" COPPICE_SOURCE_DIR "' ";
  const std::string commit = output_of(in_tree + "rev-parse --short=12 HEAD 2>/dev/null");
  if (commit.empty()) return "unknown";
  const bool is_clean = output_of(in_tree + "status --porcelain --untracked-files=no 2>/dev/null").empty();
  return is_clean ? commit : commit + " with changes";
}

// CPU time of all threads of this process.
double process_seconds() {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Seconds from the first thread's start to the last one's end, each doing its part. Threads read the clock
// themselves: on a busy machine whoever waits for them may be late.
double time_team(int threads, const std::function<void(size_t thread)>& part) {
  std::vector<std::thread> team;
  std::vector<Clock::time_point> begin(static_cast<size_t>(threads)), end(begin);
  std::barrier start(threads);
  for (size_t t = 0; t < begin.size(); ++t) {
    team.emplace_back([&, t] {
      start.arrive_and_wait();
      begin[t] = Clock::now();
      part(t);
      end[t] = Clock::now();
    });
  }
  for (std::thread& member : team) member.join();
  const Clock::duration all =
      *std::max_element(end.begin(), end.end()) - *std::min_element(begin.begin(), begin.end());
  return std::chrono::duration<double>(all).count();
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

std::vector<double> interleaved_medians(const std::vector<Contestant>& contestants, int repetitions) {
  for (const Contestant& c : contestants) c.run();
  std::vector<std::vector<double>> seconds(contestants.size());
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    for (size_t i = 0; i < contestants.size(); ++i) {
      const double start = process_seconds();
      contestants[i].run();
      seconds[i].push_back((process_seconds() - start) / contestants[i].calls);
    }
  }
  std::vector<double> medians;
  for (const std::vector<double>& s : seconds) medians.push_back(median(s));
  return medians;
}

double copy_bytes_per_s(int threads, size_t bytes) {
  static std::map<std::pair<int, size_t>, double> measured;
  const auto [entry, fresh] = measured.try_emplace({threads, bytes}, 0.0);
  if (!fresh) return entry->second;
  const size_t share = std::max<size_t>(bytes / static_cast<size_t>(threads) / 64 * 64, 64);
  const size_t total = share * static_cast<size_t>(threads);
  std::vector<char> from(total, 1), to(total, 2);
  const size_t rounds = std::clamp<size_t>((size_t{1} << 27) / total, 1, 1000);
  double best = 0;
  for (int repetition = 0; repetition < 7; ++repetition) {
    const double seconds = time_team(threads, [&](size_t t) {
      for (size_t round = 0; round < rounds; ++round) {
        std::memcpy(to.data() + share * t, from.data() + share * t, share);
        asm volatile("" : : "r"(to.data()) : "memory");  // every round counts
      }
    });
    best = std::max(best, 2.0 * static_cast<double>(total * rounds) / seconds);
  }
  return entry->second = best;
}

double peak_flops(int threads) {
  static std::map<int, double> measured;
  const auto [entry, fresh] = measured.try_emplace(threads, 0.0);
  if (!fresh) return entry->second;
  double best = 0;
  for (int repetition = 0; repetition < 15; ++repetition) {
    std::vector<double> operations(static_cast<size_t>(threads));
    std::vector<float> sinks(operations.size() * 16, 0.001f);  // a cache line each
    const double seconds =
        time_team(threads, [&](size_t t) { operations[t] = multiply_and_add(200'000, &sinks[16 * t]); });
    double sum = 0;
    for (const double n : operations) sum += n;
    best = std::max(best, sum / seconds);
  }
  return entry->second = best;
}

std::string machine_text() {
  std::string cpu = "unknown CPU";
  for (const cli::InfoLine& line : cli::system_info()) {
    if (line.name == "CPU") cpu = line.value;
  }
  double load = 0;  // of the last minute: others who compute here make every row slower
  if (::getloadavg(&load, 1) != 1) load = 0;
  const std::time_t now = std::time(nullptr);
  return fmt::format("{} ({}), {} threads, load {:.1f}, {:%Y-%m-%d}, commit {}", cpu, jit::host_target().cpu,
                     std::thread::hardware_concurrency(), load, fmt::gmtime(now), commit_text());
}

size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  size_t total = 0, resident = 0;
  if (!(file >> total >> resident))
    throw Error(ErrorCode::kIo, "cannot read /proc/self/statm, which tells how much memory is in use");
  return resident * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

size_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:"))
      return std::strtoull(line.c_str() + std::strlen("MemAvailable:"), nullptr, 10) * 1024;
  }
  throw Error(ErrorCode::kIo, "cannot read /proc/meminfo, which tells how much memory is left");
}

}  // namespace coppice::bench
