// Measures how long `coppice run SCENE --frames 0` takes: it loads the scene and every kernel, and stops.
//
// It takes the wall clock of a child process, from before it is started to after its end. Warm: the
// kernels lie compiled in the cache. Cold: an empty cache. The floor is the same program that only prints
// its version.
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <regex>

#include "benchmarks/benchmarks.h"
#include "benchmarks/child.h"
#include "benchmarks/measure.h"
#include "core/error.h"
#include "core/program_file.h"

namespace coppice::bench {
namespace {

// A folder for compiled kernels that goes with this object.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_((std::filesystem::temp_directory_path() / "coppice-bench-XXXXXX").string()) {
    if (::mkdtemp(path_.data()) == nullptr)
      throw Error(ErrorCode::kIo,
                  fmt::format("cannot create a folder like '{}': {}", path_, std::strerror(errno)));
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Start {
  double seconds = 0;
  int compiled = 0, cached = 0;  // kernels
};

// The number before `what` on the program's lines about kernels.
int count_in(const std::string& log, const std::string& what) {
  int count = 0;
  const std::regex pattern("kernels:[^\\n]*?([0-9]+) " + what);
  for (std::sregex_iterator match(log.begin(), log.end(), pattern), end; match != end; ++match)
    count += std::stoi((*match)[1]);
  return count;
}

Start start(const std::vector<std::string>& words, const std::string& cache) {
  std::vector<std::string> command{program_folder() / "coppice"};
  command.insert(command.end(), words.begin(), words.end());
  const ChildResult result = run_child(command, {{"COPPICE_CACHE_DIR", cache}, {"COPPICE_LOG", "info"}});
  if (result.exit_code != 0)
    throw Error(ErrorCode::kInternal, fmt::format("{} ended with exit code {}: {}", fmt::join(command, " "),
                                                  result.exit_code, last_line(result.errors)));
  return {result.seconds, count_in(result.errors, "compiled"), count_in(result.errors, "from the cache")};
}

// The median of several starts; a cold one empties the cache before each.
Start median_start(const std::vector<std::string>& words, const std::string& cache, int repetitions,
                   bool is_cold) {
  std::vector<double> seconds;
  Start last;
  for (int i = 0; i < repetitions; ++i) {
    if (is_cold) {
      for (const auto& entry : std::filesystem::directory_iterator(cache)) std::filesystem::remove_all(entry);
    }
    last = start(words, cache);
    seconds.push_back(last.seconds);
  }
  last.seconds = median(seconds);
  return last;
}

}  // namespace

void run_start(Report& report) {
  const Options& options = report.options();
  const std::string scene = options.tiny ? "water_2d" : "snow_3d";
  const std::vector<std::string> run{"run", scene, "--frames", "0"};
  report.begin("start of coppice run " + scene + " --frames 0");
  const TemporaryFolder cache;
  const Start cold = median_start(run, cache.path(), options.quick ? 1 : 3, true);
  const int repetitions = options.tiny ? 1 : options.quick ? 5 : 15;
  const Start warm = median_start(run, cache.path(), repetitions, false);
  Row row;
  row.unit = "s";
  row.floor = median_start({"--version"}, cache.path(), repetitions, false).seconds;
  row.name = "start/warm", row.ours = warm.seconds, row.target = ours_at_most(0.3);
  row.detail = fmt::format("{}, {} kernels from the cache, {} compiled", scene, warm.cached, warm.compiled);
  report.add(row);
  row.name = "start/cold", row.ours = cold.seconds, row.target.reset();
  row.detail = fmt::format("{}, {} kernels compiled", scene, cold.compiled);
  report.add(row);
}

}  // namespace coppice::bench
