// Particle-steps per second on a device, of two scenes that need no files: the sizes
// that published GPU solvers report.
//
// A block of fluid of 72 x 24 x 72 cells in 256^3 (gravity 4.9), and an elastic cube of 96^3 cells in
// 128^3; eight particles in each cell, time steps of 0.1 ms. Frames warm up, then the median frame counts,
// the host's wait for it included.
#include <fmt/format.h>

#include <algorithm>

#include "benchmarks/measure.h"
#include "benchmarks/mpm.h"
#include "core/error.h"

namespace coppice::bench {
namespace {

constexpr double kDt = 1e-4;  // s
constexpr double kWantedRate = 2e9;

struct FreeScene {
  const char* name;
  int grid;
  int first[3], cells[3];  // of the body
  double gravity;
  const char* material;
};

constexpr FreeScene kFluid{"mpm_1M",
                           256,
                           {92, 16, 92},
                           {72, 24, 72},
                           -4.9,
                           "material = \"water\"\nwater = { density_kg_m3 = 1000.0, bulk_modulus_Pa = 4.0e4, "
                           "gamma = 7.15 }\n"};
constexpr FreeScene kCube{
    "mpm_7M",
    128,
    {16, 16, 16},
    {96, 96, 96},
    -9.8,
    "material = \"jelly\"\njelly = { density_kg_m3 = 1000.0, youngs_modulus_Pa = 5.0e3, "
    "poisson_ratio = 0.4 }\n"};

scene::SceneConfig make_scene(const FreeScene& s, int shrink, int steps) {
  const int grid = std::max(s.grid / shrink, 8);
  std::string center, half;
  for (int axis = 0; axis < 3; ++axis) {
    const double cells = std::max(s.cells[axis] / shrink, 1), first = s.first[axis] / shrink;
    const char* comma = axis == 0 ? "" : ", ";
    center += fmt::format("{}{}", comma, (first + 0.5 * cells) / grid);
    half += fmt::format("{}{}", comma, 0.5 * cells / grid);
  }
  const std::string text = fmt::format(
      "dim = 3\ngravity = [0, {}, 0]\n[domain]\nmin = [0, 0, 0]\nmax = [1, 1, 1]\n[grid]\nresolution = {}\n"
      "[time]\nframes = 100000\nframe_dt_s = {}\nmax_dt_s = {}\ncfl = 0.9\n[walls]\nall = \"separate\"\n"
      "[[emitter]]\nshape = \"box\"\ncenter = [{}]\nhalf_size = [{}]\nparticles_per_cell = 8\n{}",
      s.gravity, grid, steps * kDt, kDt, center, half, s.material);
  return scene::parse_scene(text, std::string(s.name) + ".toml");
}

Row measure(const FreeScene& s, const Options& options, const IntrusivePtr<Device>& device,
            double copied_bytes_per_s) {
  const int shrink = options.tiny ? 32 : options.quick ? 4 : 1;
  const int steps = options.tiny ? 2 : options.quick ? 8 : 64;
  const int warm_up = options.tiny ? 0 : 2, most = options.tiny ? 1 : 7;
  constexpr double kLongest = 8;  // s, of the timed frames
  const scene::SceneConfig scene = make_scene(s, shrink, steps);
  const std::unique_ptr<mpm::Solver> solver = mpm::Solver::create(device, scene);
  solver->wait_ready();
  for (int frame = 0; frame < warm_up; ++frame) solver->wait_advance_frame();
  const auto particles = static_cast<double>(solver->num_particles());
  std::vector<double> rates;
  double spent = 0;
  while (static_cast<int>(rates.size()) < most && spent < kLongest) {
    const Clock::time_point start = Clock::now();
    solver->wait_advance_frame();
    const double seconds = seconds_since(start);
    spent += seconds;
    rates.push_back(particles * static_cast<double>(solver->wait_stats().steps) / seconds);
  }
  const double bytes = particle_step_bytes(3, scene::kind_of_material(scene.materials[0]));
  Row row;
  row.name = fmt::format("gpu/{}", s.name), row.unit = "particle-steps/s";
  row.ours = median(rates), row.floor = copied_bytes_per_s / bytes, row.target = ours_at_least(kWantedRate);
  row.detail = fmt::format("{:.0f} particles, {}^3 cells, {} frames of {} steps, {:.0f} B/step", particles,
                           scene.grid.resolution, rates.size(), solver->wait_stats().steps, bytes);
  return row;
}

}  // namespace

void run_mpm_on_device(Report& report, const IntrusivePtr<Device>& device, double copied_bytes_per_s) {
  for (const FreeScene* s : {&kFluid, &kCube}) {
    report.begin(fmt::format("gpu, {}", s->name));
    try {
      report.add(measure(*s, report.options(), device, copied_bytes_per_s));
    } catch (const Error& error) {
      report.add_failure(fmt::format("gpu/{}", s->name), error.what());
      device->default_stream().clear_error();
    }
  }
}

}  // namespace coppice::bench
