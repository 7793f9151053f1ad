// coppice-bench-mpm [--quick] [--json FILE]: particle-steps per second of the shipped scenes at their default size.
//
// A particle-step is one particle advanced by one time step, sorting and grid included. Per scene: frames to warm up,
// then timed frames, of which the median counts; nothing is drawn or written. The floor beside it is what the memory
// allows: the bytes of particle state that a step must read and write (grid, tiles and sorting left out), moved at the
// speed of a copy by as many threads, measured in the same run. A 2-D scene's state may fit the last-level cache, where
// the floor of memory is no bound.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "apps/cli/assets.h"
#include "apps/cli/system_info.h"
#include "apps/mpm/solver.h"
#include "apps/mpm/solver_types.h"
#include "core/atomic_file.h"
#include "core/error.h"
#include "core/log.h"

namespace coppice {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

struct Options {
  bool quick = false;
  std::string json;  // empty: none
};

// Timed frames of one scene: until `seconds` are spent, but `least` of them unless that takes `longest_s`; `most` at most.
struct Budget {
  int warm_up, least, most;
  double seconds, longest_s;
};
constexpr Budget kQuick{1, 3, 25, 1.0, 2.5}, kFull{4, 9, 40, 12.0, 60.0};

struct Measurement {
  std::string scene;
  int dim = 3;
  uint64_t particles = 0;
  int frames = 0;                             // timed
  double steps_per_s = 0;                     // particle-steps per second, the median over frames
  double low = 0, high = 0;                   // the slowest and the fastest frame
  double bytes_per_step = 0;                  // of a particle, see step_bytes()
  std::map<std::string, double> stage_share;  // part of the streams' time, by stage
};

// Bytes of state that one step of one particle must read and write. The grid update is a barrier between two passes
// over the particles: the first reads position, velocity, affine matrix and stress; the second reads position and the
// material's state, and writes all but mass and group.
template <int D>
double step_bytes(mpm::MaterialKind kind) {
  using A = mpm::Attribute<D>;
  constexpr int position = D, velocity = D, affine = A::kDeformation - A::kAffine,
                stress = A::kGroup - A::kStress;
  const bool is_water = kind == mpm::MaterialKind::kWater, is_jelly = kind == mpm::MaterialKind::kJelly;
  const int state = (is_water ? 0 : A::kScalar - A::kDeformation) + (is_jelly ? 0 : A::kStress - A::kScalar);
  const int scatter_reads = position + velocity + affine + stress;
  const int gather_reads = position + state;
  const int gather_writes = position + velocity + affine + state + stress;
  return static_cast<double>(sizeof(float)) * (scatter_reads + gather_reads + gather_writes);
}

// The mean over the particles.
double scene_step_bytes(const scene::SceneConfig& scene, mpm::Solver& solver) {
  std::vector<double> of_material;
  for (const scene::MaterialParameters& m : scene.materials) {
    const mpm::MaterialKind kind = scene::kind_of_material(m);
    of_material.push_back(scene.dim == 3 ? step_bytes<3>(kind) : step_bytes<2>(kind));
  }
  const mpm::ParticleSnapshot particles = solver.wait_snapshot();
  double sum = 0;
  for (const uint8_t material : particles.material) sum += of_material[material];
  return sum / static_cast<double>(particles.material.size());
}

// Bytes read plus bytes written per second by a copy on `threads` threads, the best of several.
double copy_bytes_per_s(int threads) {
  constexpr size_t kBytes = size_t{1} << 28;  // far beyond the caches
  const size_t share = kBytes / static_cast<size_t>(threads) / 64 * 64;
  std::vector<char> from(kBytes, 1), to(kBytes, 2);
  double best = 0;
  for (int repetition = 0; repetition < 7; ++repetition) {
    std::vector<std::thread> team;
    std::barrier start(threads + 1), end(threads + 1);
    for (int t = 0; t < threads; ++t) {
      team.emplace_back([&, at = share * static_cast<size_t>(t)] {
        start.arrive_and_wait();
        std::memcpy(to.data() + at, from.data() + at, share);
        end.arrive_and_wait();
      });
    }
    start.arrive_and_wait();
    const Clock::time_point begin = Clock::now();
    end.arrive_and_wait();
    const double seconds = seconds_since(begin);
    for (std::thread& member : team) member.join();
    best = std::max(best, 2.0 * static_cast<double>(share) * threads / seconds);
  }
  return best;
}

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
  std::map<std::string, double> shares() const {
    std::map<std::string, double> shares;
    for (const auto& [stage, ms] : ms_) shares[stage] = ms / total_ms_;
    return shares;
  }

 private:
  std::map<std::string, double> ms_;
  double total_ms_ = 0;
};

// Times frames of a scene. The stage shares cover the warm-up too.
Measurement measure(const std::filesystem::path& file, const Budget& budget, int& threads) {
  const scene::SceneConfig scene = scene::load_scene(file);
  StageTimes stages;
  Measurement m{.scene = scene.name, .dim = scene.dim};
  set_log_sink([&stages](LogLevel, std::string_view line) { stages.add_line(line); });
  {
    const IntrusivePtr<Device> device = Device::cpu();
    threads = device->threads();
    const std::unique_ptr<mpm::Solver> solver = mpm::Solver::create(device, scene);
    solver->wait_ready();
    for (int frame = 0; frame < budget.warm_up; ++frame) solver->wait_advance_frame();
    m.particles = solver->num_particles();
    m.bytes_per_step = scene_step_bytes(scene, *solver);
    std::vector<double> rates;
    const Clock::time_point begin = Clock::now();
    const int most = std::min(budget.most, scene.time.frames - budget.warm_up);
    const auto is_enough = [&] {
      return seconds_since(begin) > (m.frames < budget.least ? budget.longest_s : budget.seconds);
    };
    while (m.frames == 0 || (m.frames < most && !is_enough())) {
      const Clock::time_point start = Clock::now();
      solver->wait_advance_frame();
      const double seconds = seconds_since(start);
      rates.push_back(static_cast<double>(m.particles * solver->wait_stats().steps) / seconds);
      ++m.frames;
    }
    m.steps_per_s = median(rates);
    m.low = *std::min_element(rates.begin(), rates.end());
    m.high = *std::max_element(rates.begin(), rates.end());
  }
  set_log_sink({});
  m.stage_share = stages.shares();
  return m;
}

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

std::string machine_text(int threads) {
  std::string cpu = "unknown CPU";
  for (const cli::InfoLine& line : cli::system_info()) {
    if (line.name == "CPU") cpu = line.value;
  }
  const std::string in_tree = "git -C '" COPPICE_SOURCE_DIR "' ";
  std::string commit = output_of(in_tree + "rev-parse --short=12 HEAD 2>/dev/null");
  if (commit.empty())
    commit = "unknown";
  else if (!output_of(in_tree + "status --porcelain --untracked-files=no 2>/dev/null").empty())
    commit += " with changes";
  double load = 0;  // of the last minute: others who compute here make every row slower
  if (::getloadavg(&load, 1) != 1) load = 0;
  return fmt::format("{} ({}), {} threads, load {:.1f}, commit {}", cpu, jit::host_target().cpu, threads,
                     load, commit);
}

double floor_steps_per_s(const Measurement& m, double copy) { return copy / m.bytes_per_step; }

void print_head(const std::string& machine, double copy) {
  fmt::print("machine: {}\ncopy: {:.1f} GB/s read and written\n\n", machine, copy / 1e9);
  fmt::print("{:<10} {:>9} {:>7} {:>10} {:>15} {:>9} {:>7} {:>10} {:>6}  {}\n", "scene", "particles",
             "frames", "Mpsteps/s", "low..high", "ns*core", "B/step", "floor M/s", "share",
             "scatter grid gather other");
}

void print_row(const Measurement& m, double copy, int threads) {
  const auto percent = [&](const char* stage) {
    const auto found = m.stage_share.find(stage);
    return fmt::format("{:.0f}%", found == m.stage_share.end() ? 0.0 : 100 * found->second);
  };
  fmt::print(
      "{:<10} {:>9} {:>7} {:>10.2f} {:>15} {:>9.1f} {:>7.0f} {:>10.1f} {:>5.1f}%  {:>7} {:>4} {:>6} {:>5}\n",
      m.scene, m.particles, m.frames, m.steps_per_s / 1e6,
      fmt::format("{:.2f}..{:.2f}", m.low / 1e6, m.high / 1e6), 1e9 * threads / m.steps_per_s,
      m.bytes_per_step, floor_steps_per_s(m, copy) / 1e6, 100 * m.steps_per_s / floor_steps_per_s(m, copy),
      percent("scatter"), percent("grid"), percent("gather"), percent("other"));
  std::fflush(stdout);
}

// `ratio` is ours / peer, so it is null as long as no peer runs beside us.
void write_json(AtomicFile& file, const std::vector<Measurement>& rows, double copy) {
  std::string text = "[\n";
  for (const Measurement& m : rows) {
    text += fmt::format(
        "  {{\"name\": \"mpm/{}\", \"ours\": {:.6g}, \"peer\": null, \"unit\": \"particle-steps/s\", "
        "\"ratio\": null, \"floor\": {:.6g}}}{}\n",
        m.scene, m.steps_per_s, floor_steps_per_s(m, copy), &m == &rows.back() ? "" : ",");
  }
  file.write(text + "]\n");
  file.commit();
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--quick")
      options.quick = true;
    else if (word == "--json" && i + 1 < argc)
      options.json = argv[++i];
    else
      throw Error(ErrorCode::kUsage, "usage: coppice-bench-mpm [--quick] [--json FILE]");
  }
  return options;
}

void run(const Options& options) {
  ::setenv("COPPICE_PROFILE", "1", 1);  // streams tell the stages' shares; two clock readings per launch
  const std::vector<std::filesystem::path> files = cli::list_scene_files();
  if (files.empty())
    throw Error(ErrorCode::kNotFound, "no scenes to measure; COPPICE_ASSETS can name the assets folder");
  std::optional<AtomicFile> json;  // now, so that a folder that is not there is told before the work is done
  if (!options.json.empty()) json.emplace(options.json);
  int threads = Device::cpu()->threads();
  const double copy = copy_bytes_per_s(threads);
  print_head(machine_text(threads), copy);
  std::vector<Measurement> rows;
  for (const std::filesystem::path& file : files) {
    rows.push_back(measure(file, options.quick ? kQuick : kFull, threads));
    print_row(rows.back(), copy, threads);
  }
  fmt::print(
      "\nMpsteps/s: million particle-steps per second, the median frame. ns*core: time of all cores for "
      "one.\n"
      "floor: B/step at the speed of the copy; share: of that floor. Stages: share of the stream's time.\n");
  if (json) write_json(*json, rows, copy);
}

}  // namespace
}  // namespace coppice

int main(int argc, char** argv) {
  try {
    coppice::run(coppice::parse(argc, argv));
    return 0;
  } catch (const coppice::Error& error) {
    std::fprintf(stderr, "coppice-bench-mpm: error: %s\n", error.what());
    return error.code() == coppice::ErrorCode::kUsage ? 2 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "coppice-bench-mpm: error: %s\n", error.what());
    return 1;
  }
}
