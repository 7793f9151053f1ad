// Reports on what is watched (see instruments.h).
#include "apps/viewer/instruments.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "apps/viewer/function_graph.h"
#include "apps/viewer/tree_memory.h"
#include "core/error.h"
#include "core/log.h"
#include "core/trace.h"

namespace coppice::viewer {
namespace {

// Trees whose masks must be counted may take long to tell: asking is to cost 1 % of the time at most.
constexpr int kLeastTimesLonger = 100;

}  // namespace

Instruments::~Instruments() { end_trace(); }

void Instruments::end_trace() {
  if (std::exchange(has_trace_, false)) Trace::stop();
}

void Instruments::watch(const Watch& watch, Simulation* simulation) {
  const auto needs_time = [](const Watch& w) { return w.time || w.graphs; };
  if (needs_time(watch) != needs_time(watched_)) watch_time(needs_time(watch));
  if (!watch.memory) reports_.memory.reset();
  if (!watch.graphs) reports_.graphs.reset();
  watched_ = watch;
  has_warned_ = false;
  if (watch.graphs && simulation != nullptr) measure_graphs(*simulation);
  // Memory is measured even while the simulation is paused.
  if (watch.memory && simulation != nullptr) ask_for_memory(*simulation, Clock::now());
}

void Instruments::watch_time(bool is_watched) {
  profile_.clear();
  since_report_ = {};
  reports_.time.reset();
  end_trace();
  if (!is_watched) return;
  why_no_trace_.clear();
  try {
    Trace::start_live();
    has_trace_ = true;
  } catch (const Error& error) {
    why_no_trace_ = error.what();
  }
}

void Instruments::begin_anew(Simulation& simulation) {
  if (has_trace_) Trace::take();
  profile_.clear();
  since_report_ = {};
  reports_ = {};
  memory_due_ = {};
  graphs_.clear();
  watch(watched_, &simulation);
}

bool Instruments::add_batch(Simulation& simulation, const ProfiledTime& batch) {
  if (watched_ == Watch()) return false;
  const Clock::time_point now = Clock::now();
  const bool has_time = (watched_.time || watched_.graphs) && add_time(simulation, batch, now);
  if (has_time && watched_.graphs) measure_graphs(simulation);
  const bool has_memory = watched_.memory && now >= memory_due_ && ask_for_memory(simulation, now);
  return has_time || has_memory;
}

bool Instruments::add_time(const Simulation& simulation, const ProfiledTime& batch, Clock::time_point now) {
  since_report_.steps += batch.steps;
  since_report_.elapsed_s += batch.elapsed_s;
  since_report_.simulated_s += batch.simulated_s;
  if (since_report_.steps == 0 || std::chrono::duration<double>(now - reported_).count() < kReportPeriod_s)
    return false;
  reported_ = now;
  profile_.add(has_trace_ ? Trace::take() : TraceRecord(), std::exchange(since_report_, {}));
  TimeReport report = profile_.report();
  report.is_stream_ahead = simulation.device_name() == "cuda";
  report.why_not = why_no_trace_;
  reports_.time = std::make_shared<const TimeReport>(std::move(report));
  return true;
}

void Instruments::measure_graphs(const Simulation& simulation) {
  if (graphs_.empty()) graphs_ = simulation.graphs();
  auto measured = std::make_shared<std::vector<FunctionGraph>>(graphs_);
  for (FunctionGraph& graph : *measured)
    measure(graph, reports_.time ? reports_.time->timings : std::vector<Timing>());
  reports_.graphs = std::move(measured);
}

bool Instruments::ask_for_memory(Simulation& simulation, Clock::time_point now) {
  MemoryState state;
  std::string why_not;
  try {
    state = simulation.wait_memory();
  } catch (const std::exception& error) {
    why_not = error.what();
  } catch (...) {
    why_not = "something was thrown that is no std::exception";
  }
  const Clock::duration took = Clock::now() - now;
  state.asked_s = std::chrono::duration<double>(took).count();
  memory_due_ =
      now + std::max<Clock::duration>(
                std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(kReportPeriod_s)),
                kLeastTimesLonger * took);
  if (!why_not.empty()) {
    if (!std::exchange(has_warned_, true)) log_warning("memory cannot be told: {}", why_not);
    return false;
  }
  add_to_history(reports_.memory ? *reports_.memory : MemoryState(), state);
  reports_.memory = std::make_shared<const MemoryState>(std::move(state));
  return true;
}

}  // namespace coppice::viewer
