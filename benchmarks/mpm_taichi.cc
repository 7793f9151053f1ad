// The solver beside Taichi's mpm3d: the same fluid, particle count, grid, time step and
// threads, frame by frame in turns.
//
// Taichi's program (peers/mpm3d_taichi.py) runs in a child process. What differs is listed in
// docs/benchmarks.md.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "apps/mpm/emission.h"
#include "benchmarks/instructions.h"
#include "benchmarks/measure.h"
#include "benchmarks/mpm.h"
#include "benchmarks/peer_program.h"
#include "core/error.h"

namespace coppice::bench {
namespace {

constexpr double kDt = 8e-5;  // s, at every grid size
constexpr int kWallCells = 3;

struct Case {
  int grid;
  bool sorted;  // Taichi's particles by cell at first, which the workload does not ask for
  int steps;    // per timed frame
  int repetitions;
};

std::vector<Case> cases(const Options& options) {
  if (options.tiny) return {{24, false, 2, 1}};
  if (options.quick) return {{64, false, 10, 3}, {128, false, 4, 3}};
  return {{64, false, 25, 15}, {64, true, 25, 9}, {128, false, 25, 5}, {128, true, 25, 5}};
}

// The workload as a scene of ours. Taichi's walls stand three cells inside its unit box, ours around the
// domain.
scene::SceneConfig make_scene(const Case& c) {
  const double wall = static_cast<double>(kWallCells) / c.grid;
  const std::string text = fmt::format(
      "dim = 3\ngravity = [0, -9.8, 0]\n"
      "[domain]\nmin = [{0}, {0}, {0}]\nmax = [{1}, {1}, {1}]\n"
      "[grid]\nresolution = {2}\n"
      "[time]\nframes = 100000\nframe_dt_s = {3}\nmax_dt_s = {4}\ncfl = 0.9\n"
      "[walls]\nall = \"separate\"\nfriction = 0\n"
      "[[emitter]]\nshape = \"box\"\ncenter = [0.35, 0.35, 0.35]\nhalf_size = [0.2, 0.2, 0.2]\n"
      "particles_per_cell = 4\nmaterial = \"water\"\n"
      "water = {{ density_kg_m3 = 1.0, bulk_modulus_Pa = 400.0, gamma = 1.0 }}\n",
      wall, 1 - wall, c.grid - 2 * kWallCells, c.steps * kDt, kDt);
  scene::SceneConfig scene = scene::parse_scene(text, "mpm3d.toml");
  // Four particles per cell of 0.4^3 are more than n^3 / 4: the cube that holds just
  // so many, around the same middle.
  const auto wanted = static_cast<size_t>(c.grid) * c.grid * c.grid / 4;
  std::vector<float> distance;
  for (const Vec3f& p : mpm::emit_particles(scene).position)
    distance.push_back((p - Vec3f::Constant(0.35f)).cwiseAbs().maxCoeff());
  if (distance.size() <= wanted) return scene;
  std::nth_element(distance.begin(), distance.begin() + static_cast<ptrdiff_t>(wanted), distance.end());
  const float inside = *std::max_element(distance.begin(), distance.begin() + static_cast<ptrdiff_t>(wanted));
  const double half = 0.5 * (static_cast<double>(inside) + distance[wanted]);
  scene.emitters[0].half_size = Vec3d::Constant(half);
  return scene;
}

// Returns the mean downward speed. Single particles move otherwise in the two: our water presses where random
// places have made it too dense, Taichi's does not know of that.
double mean_fall(mpm::Solver& solver) {
  const mpm::ParticleSnapshot s = solver.wait_snapshot();
  double sum = 0;
  for (const Vec3f& v : s.velocity) sum -= v.y();
  return sum / static_cast<double>(s.velocity.size());
}

// A row without its prefix and floor, and what the floor depends on.
struct Measured {
  Row row;
  double step_bytes;
  uint64_t particles;
};

// One setup timed in turns. The peer's error becomes the reason of its absence.
class Comparison {
 public:
  Comparison(const Case& c, IntrusivePtr<Device> device, const std::optional<std::string>& python,
             std::string absent)
      : case_(c), scene_(make_scene(c)), absent_(std::move(absent)), device_(std::move(device)) {
    solver_ = mpm::Solver::create(device_, scene_);
    solver_->wait_ready();
    if (!python) return;
    try {
      taichi_ = std::make_unique<PeerProgram>(
          "taichi", *python, "mpm3d_taichi.py",
          std::vector<std::string>{"--arch", std::string(device_->name()), "--grid", std::to_string(c.grid),
                                   "--particles", std::to_string(solver_->num_particles()), "--threads",
                                   std::to_string(device_->threads()), "--order",
                                   c.sorted ? "sorted" : "random"});
    } catch (const Error& error) {
      absent_ = fmt::format("taichi absent: {}", error.what());
    }
  }

  Measured run() {
    const uint64_t n = solver_->num_particles();
    solver_->wait_advance_frame();
    std::vector<double> ours, theirs;
    if (taichi_) time_taichi(case_.steps - 1, theirs);  // to warm up; it took one step to compile
    theirs.clear();
    for (int r = 0; r < case_.repetitions; ++r) {
      const Clock::time_point start = Clock::now();
      solver_->wait_advance_frame();
      const double seconds = seconds_since(start);
      ours.push_back(static_cast<double>(n * solver_->wait_stats().steps) / seconds);
      if (taichi_) time_taichi(case_.steps, theirs);
    }
    Row row;
    row.name = fmt::format("taichi_{}{}", case_.grid, case_.sorted ? "_sorted" : "");
    row.unit = "particle-steps/s";
    row.ours = median(ours);
    if (!case_.sorted) row.target = ratio_at_least(4);
    const bool has_threads = device_->name() == "cpu";
    row.detail = fmt::format("{} particles, grid {}^3, dt {}, {}{} x {} steps", n, case_.grid, kDt,
                             has_threads ? fmt::format("{} threads, ", device_->threads()) : "",
                             case_.repetitions, case_.steps);
    row.peer_name = absent_;
    if (taichi_ && !theirs.empty()) {
      row.peer = median(theirs);
      row.peer_name = fmt::format("taichi 1.7.4, particles {} at first", case_.sorted ? "sorted" : "random");
      check_same(row.detail);
    }
    return {row, particle_step_bytes(3, scene::MaterialKind::kWater), n};
  }

 private:
  // A peer that dies is absent from then on.
  void time_taichi(int steps, std::vector<double>& rates) {
    try {
      rates.push_back(static_cast<double>(solver_->num_particles()) * steps /
                      taichi_->ask_number(fmt::format("steps {}", steps), "seconds"));
    } catch (const Error& error) {
      absent_ = fmt::format("taichi absent: {}", error.what());
      taichi_.reset();
    }
  }
  // Both fall alike, or they do not compute the same.
  void check_same(std::string& detail) {
    const double ours = mean_fall(*solver_), theirs = taichi_->ask_number("state", "fall");
    detail += fmt::format(", falling with {:.4f} and {:.4f} m/s", ours, theirs);
    if (!(std::abs(ours - theirs) <= 0.03 * theirs))
      throw Error(ErrorCode::kInternal,
                  fmt::format("mpm: after {} steps our particles fall with {:.4f} m/s on average "
                              "and taichi's with {:.4f}",
                              (case_.repetitions + 1) * case_.steps, ours, theirs));
  }

  Case case_;
  scene::SceneConfig scene_;
  std::string absent_;
  IntrusivePtr<Device> device_;
  std::unique_ptr<mpm::Solver> solver_;
  std::unique_ptr<PeerProgram> taichi_;
};

}  // namespace

// One thread, so that nothing spins: instructions per particle-step of the same workload.
double work_on_mpm(const std::string&, const WorkCounter& counter) {
  constexpr int kSteps = 4, kCalls = 2;
  const auto solver = mpm::Solver::create(Device::cpu(1), make_scene({32, false, kSteps, 1}));
  solver->wait_ready();
  counter.count([&] { solver->wait_advance_frame(); }, kCalls);
  return static_cast<double>(solver->num_particles()) * kSteps * kCalls;
}

namespace {

// Nothing where it is left out: its kernels take ten seconds to compile, and it has no emulated GPU.
std::optional<std::string> python_for(const Options& options, std::string_view device, std::string& absent) {
  absent = "taichi left out";
  if (options.tiny || (device != "cpu" && device != "cuda")) return {};
  return find_peer_python("taichi", absent);
}

}  // namespace

void run_mpm_beside_taichi(Report& report, const IntrusivePtr<Device>& device, double copied_bytes_per_s) {
  const Options& options = report.options();
  std::string absent;
  const std::optional<std::string> python = python_for(options, device->name(), absent);
  std::vector<Case> all{{256, false, 25, 7}, {256, true, 25, 7}};
  if (options.quick) all = {options.tiny ? Case{24, false, 2, 1} : Case{64, false, 10, 3}};
  for (const Case& c : all) {
    if (c.sorted && !python) continue;
    const Measured measured = Comparison(c, device, python, absent).run();
    Row row = measured.row;
    row.name = "gpu/" + row.name, row.floor = copied_bytes_per_s / measured.step_bytes;
    row.target.reset();
    report.add(std::move(row));
  }
}

void run_mpm_beside_taichi(Report& report) {
  std::string absent;
  const std::optional<std::string> python = python_for(report.options(), "cpu", absent);
  std::optional<double> instructions;
  for (const Case& c : cases(report.options())) {
    if (c.sorted && !python) continue;
    report.begin(fmt::format("mpm, grid {}^3{}", c.grid, c.sorted ? ", taichi's particles sorted" : ""));
    const IntrusivePtr<Device> device = Device::cpu();
    const Measured measured = Comparison(c, device, python, absent).run();
    Row row = measured.row;
    row.name = "mpm/" + row.name;
    row.floor = mpm_floor(3, measured.step_bytes, measured.particles, device->threads());
    if (report.options().instructions && !c.sorted) {
      if (!instructions) instructions = wait_instructions("mpm/taichi/0");
      row.instructions = instructions;
    }
    report.add(std::move(row));
  }
}

}  // namespace coppice::bench
