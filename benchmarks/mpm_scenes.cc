// Particle-steps per second of the shipped scenes at their default size.
//
// A particle-step is one particle advanced by one time step, sorting and grid included. Per scene: frames to
// warm up, then timed frames, of which the median counts; nothing is drawn or written. The floor: see mpm.h.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <string_view>

#include "apps/cli/assets.h"
#include "benchmarks/measure.h"
#include "benchmarks/mpm.h"
#include "core/error.h"
#include "core/log.h"

namespace coppice::bench {
namespace {

// Timed frames of one scene: until `seconds` are spent, but `least` of them unless that
// takes `longest_s`; `most` at most.
struct Budget {
  int warm_up, least, most;
  double seconds, longest_s;
};
constexpr Budget kTiny{0, 1, 1, 0, 0}, kQuick{1, 3, 25, 0.3, 0.6}, kFull{4, 9, 40, 12.0, 60.0};

// The stage that an operation of the solver's stream belongs to.
std::string stage_of(std::string_view operation) {
  constexpr std::array<std::pair<std::string_view, const char*>, 3> kStages{
      {{"particles_to_grid", "scatter"}, {"grid_to_particles", "gather"}, {"update_grid", "grid"}}};
  for (const auto& [part, stage] : kStages) {
    if (operation.find(part) != std::string_view::npos) return stage;
  }
  return "other";  // sorting, activation, bookkeeping
}

// Adds up the lines "profile: MS ms N calls US us each  NAME" that a stream logs at its end.
class StageTimes {
 public:
  void add_line(std::string_view line) {
    if (!line.starts_with("profile:")) return;
    const double ms = std::strtod(line.data() + std::strlen("profile:"), nullptr);
    const size_t name = line.rfind("  ");
    if (name == std::string_view::npos) return;
    ms_[stage_of(line.substr(name + 2))] += ms;
    total_ms_ += ms;
  }
  // "scatter 30 %, grid 10 %, gather 50 %, other 10 %"
  std::string text() const {
    std::string text;
    for (const char* stage : {"scatter", "grid", "gather", "other"}) {
      const auto found = ms_.find(stage);
      text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", stage,
                          found == ms_.end() ? 0.0 : 100 * found->second / total_ms_);
    }
    return text;
  }

 private:
  std::map<std::string, double> ms_;
  double total_ms_ = 0;
};

// Restores the log's sink and the profile's switch.
class Profiling {
 public:
  explicit Profiling(StageTimes& times) {
    ::setenv("COPPICE_PROFILE", "1", 1);  // two clock readings per launch
    set_log_sink([&times](LogLevel, std::string_view line) { times.add_line(line); });
  }
  ~Profiling() {
    set_log_sink({});
    ::unsetenv("COPPICE_PROFILE");
  }
};

// Times frames of a scene. The stage shares cover the warm-up too.
Row measure(const std::filesystem::path& file, const Budget& budget) {
  const scene::SceneConfig scene = scene::load_scene(file);
  StageTimes stages;
  std::vector<double> rates;
  uint64_t particles = 0;
  int threads = 0;
  double bytes = 0;
  {
    const Profiling profiling(stages);
    const IntrusivePtr<Device> device = Device::cpu();
    threads = device->threads();
    const std::unique_ptr<mpm::Solver> solver = mpm::Solver::create(device, scene);
    solver->wait_ready();
    for (int frame = 0; frame < budget.warm_up; ++frame) solver->wait_advance_frame();
    particles = solver->num_particles();
    bytes = particle_step_bytes(scene, *solver);
    const Clock::time_point begin = Clock::now();
    const int most = std::min(budget.most, scene.time.frames - budget.warm_up);
    const auto is_enough = [&] {
      const bool few = static_cast<int>(rates.size()) < budget.least;
      return seconds_since(begin) > (few ? budget.longest_s : budget.seconds);
    };
    while (rates.empty() || (static_cast<int>(rates.size()) < most && !is_enough())) {
      const Clock::time_point start = Clock::now();
      solver->wait_advance_frame();
      const double seconds = seconds_since(start);
      rates.push_back(static_cast<double>(particles * solver->wait_stats().steps) / seconds);
    }
  }
  Row row;
  row.name = "mpm/" + scene.name, row.unit = "particle-steps/s";
  row.ours = median(rates);
  row.floor = mpm_floor(scene.dim, bytes, particles, threads);
  const auto [low, high] = std::minmax_element(rates.begin(), rates.end());
  row.detail = fmt::format("{} particles, {} threads, {} frames {:.2f}..{:.2f} M, {:.0f} B/step; {}",
                           particles, threads, rates.size(), *low / 1e6, *high / 1e6, bytes, stages.text());
  return row;
}

}  // namespace

void run_mpm_scenes(Report& report) {
  const std::vector<std::filesystem::path> files = cli::list_scene_files();
  if (files.empty())
    throw Error(ErrorCode::kNotFound, "no scenes to measure; COPPICE_ASSETS can name the assets folder");
  const Options& options = report.options();
  for (const std::filesystem::path& file : files) {
    if (options.tiny && file.stem() != "water_2d") continue;
    report.begin("mpm, scene " + file.stem().string());
    report.add(measure(file, options.tiny ? kTiny : options.quick ? kQuick : kFull));
  }
}

}  // namespace coppice::bench
