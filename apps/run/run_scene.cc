// `coppice run` (see run_scene.h).
#include "apps/run/run_scene.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <csignal>
#include <optional>
#include <span>
#include <sstream>
#include <utility>

#include "apps/mpm/memory_need.h"
#include "apps/mpm/rank_solver.h"
#include "apps/mpm/solver.h"
#include "apps/output/output_folder.h"
#include "apps/output/progress.h"
#include "apps/output/size_text.h"
#include "apps/ranks/rank_job.h"
#include "apps/run/checkpoint_file.h"
#include "apps/run/frame_part.h"
#include "apps/run/frame_writer.h"
#include "core/error.h"
#include "core/log.h"
#include "core/start_ranks.h"
#include "core/stop_signals.h"
#include "sparse/function_memory.h"
#include "sparse/function_text.h"

namespace coppice {
namespace {

std::string_view device_name(cli::DeviceChoice choice) {
  switch (choice) {
    case cli::DeviceChoice::kAuto:
      return "auto";
    case cli::DeviceChoice::kCpu:
      return "cpu";
    case cli::DeviceChoice::kCuda:
      return "cuda";
    case cli::DeviceChoice::kSimt:
      return "simt";
  }
  return "auto";
}

// Returns a rank's share of the cores where others on this machine may use the same ones; else 0, for all
// that it may use.
int threads_of_rank(const Cluster& cluster) {
  struct Place {
    std::array<char, HOST_NAME_MAX + 1> host{};
    cpu_set_t cores;
    bool operator==(const Place& other) const {
      return host == other.host && CPU_EQUAL(&cores, &other.cores);
    }
  } own;
  CPU_ZERO(&own.cores);
  ::gethostname(own.host.data(), own.host.size() - 1);
  ::sched_getaffinity(0, sizeof own.cores, &own.cores);
  const std::vector<Place> all = cluster.wait_gather(own);
  const auto alike = static_cast<int>(std::count(all.begin(), all.end(), own));
  return alike < 2 ? 0 : std::max(1, CPU_COUNT(&own.cores) / alike);
}

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

uint64_t memory_bytes(mpm::Solver& solver) {
  uint64_t sum = solver.wait_memory_report().total_bytes();
  for (const auto& [name, bytes] : solver.buffer_bytes()) sum += bytes;
  return sum;
}

// The process' memory is the most that it ever had, libraries and pictures included.
void log_summary(mpm::Solver& solver, double milliseconds, const std::optional<Cluster>& ranks) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  log_info("{:.2f} s for {} steps of {} particles; {} of memory for the simulation, {} for the program",
           milliseconds / 1000, solver.steps(), solver.num_particles(), size_text(memory_bytes(solver)),
           size_text(static_cast<uint64_t>(usage.ru_maxrss) * 1024));
  if (!ranks) return;
  const Cluster::Traffic& traffic = ranks->traffic();
  log_info("{} ranks: the first one was {:.0f} % of the time in {} exchanges, and sent {}", ranks->n_ranks(),
           100 * traffic.seconds * 1000 / milliseconds, traffic.rounds, size_text(traffic.bytes_sent));
}

}  // namespace

IntrusivePtr<Device> make_device(const cli::RunOptions& options, int share) {
  if (options.threads == 0 && !options.deterministic) {
    IntrusivePtr<Device> device = Device::named(device_name(options.device));
    return share > 0 && device->name() == "cpu" ? Device::cpu({.threads = share}) : device;
  }
  if (options.device == cli::DeviceChoice::kCuda || options.device == cli::DeviceChoice::kSimt)
    throw Error(ErrorCode::kUsage, "--threads and --deterministic are for the cpu device; use --device cpu");
  return Device::cpu(
      {.threads = options.threads > 0 ? options.threads : share, .deterministic = options.deterministic});
}

cli::FunctionsText describe_functions(const cli::RunOptions& options) {
  const std::vector<Function> functions =
      mpm::Solver::create(make_device(options), options.scene)->functions();
  cli::FunctionsText text;
  for (const Function& f : functions) text.functions += print(f) + '\n';
  for (const Function& f : functions) text.explanation += explain(f) + '\n';
  text.graph = dot(functions);
  text.plan = memory_picture(functions);
  return text;
}

namespace {

cli::RunOutcome run_leading(const cli::RunOptions& options, const std::optional<Cluster>& ranks, int share,
                            const std::atomic<bool>& stop) {
  const scene::SceneConfig& scene = options.scene;
  const double begin_ms = now_ms();
  const SceneIdentity identity{scene, options.assignments};
  std::optional<OutputFolder> output;
  if (scene.time.frames > 0)
    output.emplace(options.output_folder.string(), options.overwrite, options.resumes);
  std::optional<mpm::Checkpoint> resumed;
  if (options.resumes) resumed = read_checkpoint(checkpoint_path(options.output_folder.string()), identity);
  const std::optional<int64_t> last_written = resumed ? std::optional<int64_t>(resumed->frame) : std::nullopt;
  if (resumed && output) output->keep_up_to(resumed->frame);
  IntrusivePtr<Device> device = make_device(options, share);
  // Mistakes in the scene come before the output folder is touched.
  std::unique_ptr<mpm::Solver> solver = mpm::Solver::create(device, scene, {.cluster = ranks});
  log_info("{}: {} particles, {} cells per side, about {} of memory, {} ({}){}", scene.name,
           solver->num_particles(), scene.grid.resolution,
           size_text(mpm::memory_need(scene, static_cast<double>(solver->num_particles())).device_bytes),
           device->name(), device->description(), ranks ? fmt::format(", {} ranks", ranks->n_ranks()) : "");
  solver->wait_ready();
  if (scene.time.frames == 0) return cli::RunOutcome::kFinished;

  FrameWriter writer(scene, *output, last_written);
  if (resumed) {
    solver->wait_restore(*resumed);
    log_info("going on behind frame {}", resumed->frame);
    resumed.reset();
  } else {
    StopSignals::let_finish("frame", 0);
    writer.write(*solver, solver->wait_stats(), 0.0);
  }
  std::ostringstream nowhere;
  ProgressOutput progress_output = stderr_progress_output();
  if (log_level() > LogLevel::kInfo) progress_output = {&nowhere, false, {}, progress_output.now_s};
  Progress progress(scene.time.frames, std::move(progress_output));
  int state_of = last_written ? solver->frame() : -1;  // the frame of the last checkpoint
  const auto write_state = [&] {
    write_checkpoint(checkpoint_path(output->path()), identity, solver->wait_checkpoint());
    state_of = solver->frame();
  };
  double previous_dt_s = 0;
  while (solver->frame() < scene.time.frames && !stop.load(std::memory_order_relaxed)) {
    StopSignals::let_finish("frame", solver->frame() + 1);
    const double start_ms = now_ms();
    solver->wait_advance_frame();
    const double milliseconds = now_ms() - start_ms;
    const mpm::FrameStats s = solver->wait_stats();
    if (previous_dt_s == 0 || s.dt_s < 0.5 * previous_dt_s || s.dt_s > 2 * previous_dt_s) {
      progress.clear_line();
      log_info("time step {:.3g} s from {}, {} steps a frame", s.dt_s, to_text(s.dt_bound), s.steps);
      previous_dt_s = s.dt_s;
    }
    writer.write(*solver, s, milliseconds);
    if (options.checkpoint_every > 0 && solver->frame() % options.checkpoint_every == 0) write_state();
    progress.update(solver->frame(), fmt::format("{} steps", s.steps));
  }
  if (options.checkpoint_every > 0 && state_of != solver->frame()) write_state();
  progress.finish();
  writer.finish();
  if (solver->frame() < scene.time.frames) {
    log_info("interrupted after frame {} of {}; frames 0 to {} are in {}", solver->frame(), scene.time.frames,
             solver->frame(), output->text());
    log_summary(*solver, now_ms() - begin_ms, ranks);
    return cli::RunOutcome::kInterrupted;
  }
  log_info("frames 0 to {} are in {}", solver->frame(), output->text());
  log_summary(*solver, now_ms() - begin_ms, ranks);
  return cli::RunOutcome::kFinished;
}

// Ranks beside the first say nothing, write their parts of a frame's files when the first has them do so, and
// leave it to the first to end.
void follow_first_rank(const cli::RunOptions& options, const Cluster& cluster, int share) {
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGHUP}) std::signal(signal, SIG_IGN);
  set_log_level(LogLevel::kError);
  FramePart part(options.scene);
  mpm::follow(
      make_device(options, share), options.scene,
      {.cluster = cluster, .act_together = [&](mpm::SolverPart& own, std::span<const std::byte> message) {
         part.wait_follow(own, message);
       }});
}

}  // namespace

cli::RunOutcome run_scene(const cli::RunOptions& options, const std::atomic<bool>& stop) {
  std::optional<RankJob> job;
  if (is_mpi_rank()) job.emplace();
  std::optional<Cluster> ranks;
  if (job && job->cluster().n_ranks() > 1) ranks = job->cluster();
  const int share = ranks ? threads_of_rank(*ranks) : 0;
  if (ranks && ranks->rank() != 0) {
    follow_first_rank(options, *ranks, share);
    return cli::RunOutcome::kFinished;
  }
  return run_leading(options, ranks, share, stop);
}

}  // namespace coppice
