// The simulation's loop (see simulation_thread.h).
#include "apps/viewer/simulation_thread.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/error.h"
#include "core/log.h"
#include "core/stop_signals.h"
#include "core/trace.h"

namespace coppice::viewer {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool is_finite(const render::PackedPoint& p) { return p.position.allFinite() && std::isfinite(p.value); }

// While there is one, Ctrl-C says that steps are finished before the program ends.
struct StepsUnderWay {
  StepsUnderWay() { StopSignals::let_finish("the steps under way"); }
  ~StepsUnderWay() { StopSignals::let_finish(""); }
};

// Whatever a program throws: its words, and a code.
Error error_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& e) {
    return {e.code(), e.what()};
  } catch (const std::bad_alloc&) {
    return {ErrorCode::kOutOfMemory, "out of memory"};
  } catch (const std::exception& e) {
    return {ErrorCode::kInternal, e.what()};
  } catch (...) {
    return {ErrorCode::kInternal, "something was thrown that is no std::exception"};
  }
}

}  // namespace

void be_nicer(int by) {
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), ::getpriority(PRIO_PROCESS, 0) + by);
}

SimulationThread::SimulationThread(Make make, SimulationThreadOptions options)
    : make_(std::move(make)), options_(std::move(options)), exchange_([this] {
        {
          const std::lock_guard lock(mutex_);
          has_changed_ = true;
        }
        work_.notify_one();
      }) {
  // A replay does what was done with the program's own kernels.
  if (options_.reloads_kernels && options_.replay.empty()) {
    kernels_.emplace([this] {
      {
        const std::lock_guard lock(mutex_);
        has_new_kernels_ = true;
      }
      work_.notify_one();
      if (options_.on_news) options_.on_news();
    });
  }
  thread_ = std::thread([this] { run(); });
}

SimulationThread::~SimulationThread() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  work_.notify_one();
  thread_.join();
}

bool SimulationThread::post(Command command) {
  {
    const std::lock_guard lock(mutex_);
    if (commands_.size() >= kMostCommands) return false;
    commands_.push_back(std::move(command));
  }
  work_.notify_one();
  return true;
}

SimulationStatus SimulationThread::status() const {
  // Asked here: a batch may take long.
  KernelReloadStatus kernels = kernels_ ? kernels_->status() : KernelReloadStatus();
  const std::lock_guard lock(mutex_);
  SimulationStatus status = status_;
  status.kernels = std::move(kernels);
  return status;
}

Reports SimulationThread::reports() const {
  const std::lock_guard lock(mutex_);
  return reports_;
}

bool SimulationThread::has_more() const { return !is_shown_ || is_answered_ || exchange_.has_ready(); }

std::vector<Parameter> SimulationThread::parameters() const {
  const std::lock_guard lock(mutex_);
  return parameters_;
}

template <class F>
void SimulationThread::update(F&& change) {
  {
    const std::lock_guard lock(mutex_);
    change(status_);
  }
  if (options_.on_news) options_.on_news();
}

void SimulationThread::refresh_parameters() {
  std::vector<Parameter> now = simulation_->parameters();
  const std::lock_guard lock(mutex_);
  parameters_ = std::move(now);
}

RunState SimulationThread::state() const {
  const std::lock_guard lock(mutex_);
  return status_.state;
}

void SimulationThread::note(uint64_t steps, const Command& command) {
  if (options_.journal) options_.journal(steps, command);
}

// A state that was computed since the last snapshot is not shown: nobody knows what is left of it.
void SimulationThread::fail(const char* doing, std::exception_ptr thrown) {
  const Error error = error_of(thrown);
  log_warning("{}: {}", doing, error.what());
  is_shown_ = true, must_show_ = false, steps_owed_ = 0;
  is_answered_ = due_entry(RunState::kFailed) != nullptr;  // before anybody reads that it has failed
  update([&](SimulationStatus& s) {
    s.state = RunState::kFailed, s.message = error.what(), s.error = error.code();
  });
}

void SimulationThread::refuse(const std::string& why) {
  log_warning("{}", why);
  update([&](SimulationStatus& s) {
    s.notice = why;
    if (is_replaying_ && s.replay_refused++ == 0) s.replay_refusal = why;
  });
}

// A command that failed in a session fails again; the journal then waits for the changes that were made
// there, and for the Reset.
const JournalEntry* SimulationThread::due_entry(RunState now) const {
  if (simulation_ == nullptr || must_show_ || next_replayed_ >= options_.replay.size()) return nullptr;
  const JournalEntry& next = options_.replay[next_replayed_];
  const bool is_step = std::holds_alternative<StepOnce>(next.command);
  if (now != RunState::kRunning && !(now == RunState::kFailed && !is_step)) return nullptr;
  return next.steps <= simulation_->steps() ? &next : nullptr;
}

int SimulationThread::batch_limit() const {
  auto most = static_cast<uint64_t>(options_.most_steps);
  if (steps_owed_ > 0) most = std::min(most, steps_owed_);
  // A replayed command is obeyed right behind the step that it was given at.
  if (next_replayed_ < options_.replay.size()) {
    const uint64_t at = options_.replay[next_replayed_].steps, done = simulation_->steps();
    if (at > done) most = std::min(most, at - done);
  }
  return static_cast<int>(most);
}

std::optional<SimulationThread::Clock::time_point> SimulationThread::due() const {
  if (simulation_ == nullptr || steps_owed_ > 0) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (status_.pace <= 0) return std::nullopt;
  const double wait_s = std::min((status_.time_s - pace_time_s_) / status_.pace, 3600.0);
  return pace_from_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(wait_s));
}

void SimulationThread::run() {
  name_this_thread_row("simulation");
  // This changes this thread alone, and those that are started from it.
  if (options_.nice != 0) be_nicer(options_.nice);
  for (LoadedKernels& standing : standing_kernels())
    note(0, KernelsLoaded{std::move(standing.file), std::move(standing.hash)});
  make();
  do show();
  while (run_once());
  simulation_.reset();  // on the thread that it was used on
}

void SimulationThread::make() {
  bool has_graphs = false;
  try {
    simulation_ = make_();
    COPPICE_CHECK(simulation_ != nullptr, "there is no simulation");
    refresh_parameters();
    has_graphs = !simulation_->graphs().empty();
  } catch (...) {
    simulation_.reset();
    return fail("the simulation cannot begin", std::current_exception());
  }
  StopSignals::let_finish("");  // from here on the program ends in good order
  is_shown_ = false;
  must_show_ = options_.shows_every_frame;
  update([&](SimulationStatus& s) {
    s.message.clear();
    s.has_memory = simulation_->has_memory();
    s.has_graphs = has_graphs;
    s.hands = simulation_->hands();
    s.pace = options_.pace, s.time_s = simulation_->time_s();
    s.state = options_.last_frame == 0 && options_.replay.empty() ? RunState::kEnded
              : options_.is_paused                                ? RunState::kPaused
                                                                  : RunState::kRunning;
  });
}

// Is called between two batches, when nobody launches anything.
void SimulationThread::poll_kernels() {
  if (!kernels_) return;
  try {
    for (LoadedKernels& loaded : kernels_->poll())
      note(simulation_ != nullptr ? simulation_->steps() : 0,
           KernelsLoaded{std::move(loaded.file), std::move(loaded.hash)});
  } catch (...) {
    fail("taking over changed kernels", std::current_exception());
  }
}

void SimulationThread::wait_for_work() {
  is_answered_ = state() == RunState::kFailed && due_entry(RunState::kFailed) != nullptr;
  const bool goes_on = (state() == RunState::kRunning && !must_show_) || due_entry(state()) != nullptr;
  const std::optional<Clock::time_point> when = due();
  std::unique_lock lock(mutex_);
  const auto is_there = [&] {
    return is_ending_ || !commands_.empty() || has_new_kernels_ || (has_changed_ && !is_shown_);
  };
  if (!goes_on) {
    batch_end_.reset();
    if (kernels_ && kernels_->is_pending())
      work_.wait_for(lock, std::chrono::milliseconds(20), is_there);
    else
      work_.wait(lock, is_there);
  } else if (when) {
    work_.wait_until(lock, *when, is_there);
  }
  has_changed_ = has_new_kernels_ = false;
}

bool SimulationThread::run_once() {
  wait_for_work();
  poll_kernels();
  for (;;) {
    Command command;
    const JournalEntry* const next = steps_owed_ > 0 ? nullptr : due_entry(state());
    {
      const std::lock_guard lock(mutex_);
      if (is_ending_) return false;
      if (next == nullptr && commands_.empty()) break;
      if (next != nullptr) {
        command = next->command, ++next_replayed_;
      } else {
        command = std::move(commands_.front());
        commands_.pop_front();
      }
    }
    obey(command, next != nullptr);
    if (next == nullptr) update([](SimulationStatus& s) { ++s.obeyed; });
    if (std::holds_alternative<StepOnce>(command)) break;  // its steps come before what was given behind it
  }
  const std::optional<Clock::time_point> when = due();
  if (state() == RunState::kRunning && !must_show_ && !(when && Clock::now() < *when)) advance();
  return true;
}

void SimulationThread::obey(const Command& command, bool is_replayed) {
  is_replaying_ = is_replayed;
  if (const auto* w = std::get_if<Watch>(&command)) {
    const bool can_ask = simulation_ != nullptr && state() != RunState::kFailed;
    return report([&] { return instruments_.watch(*w, can_ask ? simulation_.get() : nullptr), true; });
  }
  if (const auto* w = std::get_if<Want>(&command)) return obey(*w);
  if (std::holds_alternative<ReloadKernels>(command))
    return kernels_ ? kernels_->compile_now() : refuse("kernels are not reloaded here (--no-reload)");
  if (const auto* k = std::get_if<KernelsLoaded>(&command))
    return refuse(fmt::format("a changed {} was taken over behind step {}, which a replay cannot do", k->file,
                              simulation_ != nullptr ? simulation_->steps() : 0));
  if (simulation_ == nullptr) {
    if (std::holds_alternative<Reset>(command)) return make();  // which may go well now
    return refuse("the simulation has not begun; reset tries again");
  }
  if (const auto* p = std::get_if<Pause>(&command)) return obey(*p);
  if (const auto* s = std::get_if<StepOnce>(&command)) return obey(*s, is_replayed);
  if (std::holds_alternative<Reset>(command)) return reset(is_replayed);
  if (const auto* s = std::get_if<SetParameter>(&command)) return set(*s);
  if (const auto* e = std::get_if<Emit>(&command)) return act(*e);
  if (const auto* p = std::get_if<Push>(&command)) return act(*p);
  if (const auto* c = std::get_if<Cut>(&command)) return act(*c);
  if (const auto* b = std::get_if<SetBreakpoints>(&command)) return arm(*b);
  if (const auto* p = std::get_if<SetPace>(&command)) {
    pace_from_ = Clock::now(), pace_time_s_ = simulation_->time_s();
    update([&](SimulationStatus& s) { s.pace = p->pace > 0 ? std::clamp(p->pace, 1e-6, 1e6) : 0; });
  }
}

void SimulationThread::arm(const SetBreakpoints& breakpoints) {
  breakpoints_ = breakpoints;
  update([&](SimulationStatus& s) { s.breakpoints = breakpoints; });
}

void SimulationThread::obey(const Want& command) {
  if (command.wanted == wanted_) return;
  wanted_ = command.wanted;
  if (!options_.shows_every_frame && simulation_ != nullptr && state() != RunState::kFailed)
    is_shown_ = false;
}

void SimulationThread::obey(const Pause& command) {
  const RunState now = state();
  if (now == RunState::kFailed) return refuse("the simulation has failed; reset begins anew");
  if (now == RunState::kEnded)
    return command.is_paused ? void() : refuse("the last frame is reached; reset begins anew");
  steps_owed_ = 0;
  pace_from_ = Clock::now(), pace_time_s_ = simulation_->time_s();
  update([&](SimulationStatus& s) {
    s.state = command.is_paused ? RunState::kPaused : RunState::kRunning;
    s.message.clear(), s.notice.clear();
  });
}

void SimulationThread::obey(const StepOnce& command, bool is_replayed) {
  const RunState now = state();
  if (now == RunState::kFailed) return refuse("the simulation has failed; reset begins anew");
  if (now == RunState::kEnded) return refuse("the last frame is reached; reset begins anew");
  if (command.steps <= 0) return refuse(fmt::format("{} steps cannot be made", command.steps));
  steps_owed_ += static_cast<uint64_t>(command.steps);
  is_replayed_step_ = is_replayed;
  update([](SimulationStatus& s) { s.state = RunState::kRunning, s.message.clear(), s.notice.clear(); });
}

void SimulationThread::reset(bool is_replayed) {
  const uint64_t before = simulation_->steps();
  try {
    simulation_->wait_reset();
    refresh_parameters();
  } catch (...) {
    return refuse(fmt::format("not reset: {}", error_of(std::current_exception()).what()));
  }
  note(before, Reset());
  batch_end_.reset();  // making it anew was no step
  const bool runs = is_replayed || (state() == RunState::kRunning && steps_owed_ == 0);
  steps_owed_ = 0, is_shown_ = false, must_show_ = options_.shows_every_frame;
  pace_from_ = Clock::now(), pace_time_s_ = 0;
  update([&](SimulationStatus& s) {
    s.steps = s.frames = 0, s.time_s = 0, s.message.clear(), s.notice.clear();
    s.hands = simulation_->hands();
    s.reset = s.obeyed + (is_replayed ? 0 : 1);
    s.state = runs ? RunState::kRunning : RunState::kPaused;
  });
  report([&] { return instruments_.begin_anew(*simulation_), true; });
}

void SimulationThread::set(const SetParameter& command) {
  try {
    simulation_->wait_set(command.path, command.value);
    refresh_parameters();
  } catch (...) {
    // A mistake of whoever typed it: nothing has changed, and the simulation goes on.
    return refuse(error_of(std::current_exception()).what());
  }
  note(simulation_->steps(), command);
  if (!options_.shows_every_frame && state() != RunState::kFailed) is_shown_ = false;
  pace_from_ = Clock::now(), pace_time_s_ = simulation_->time_s();  // which a timeline may have changed
  update([&](SimulationStatus& s) { s.time_s = simulation_->time_s(), s.notice.clear(); });
}

template <class Act>
void SimulationThread::act(const Act& command) {
  if (state() == RunState::kFailed) return refuse("the simulation has failed; reset begins anew");
  try {
    simulation_->wait_act(command);
  } catch (...) {
    return refuse(error_of(std::current_exception()).what());
  }
  note(simulation_->steps(), command);
  batch_end_.reset();  // the hand's time is no step's
  if (!options_.shows_every_frame) is_shown_ = false;
  update([](SimulationStatus& s) { s.notice.clear(); });
}

void SimulationThread::advance() {
  const Clock::time_point start = Clock::now();
  const uint64_t before = simulation_->steps();
  const double before_s = simulation_->time_s();
  const bool is_owed = steps_owed_ > 0;
  const int limit = batch_limit();
  bool is_frame = false;
  try {
    const StepsUnderWay steps;
    is_frame = simulation_->wait_advance(limit);
  } catch (...) {
    return fail("the simulation failed", std::current_exception());
  }
  const uint64_t made = simulation_->steps() - before;
  // The journal gets as many steps as were made: a batch may end before its limit.
  if (is_owed && made > 0) note(before, StepOnce{static_cast<int>(made)});
  const double took_s = seconds_since(start);
  measure(made, simulation_->time_s() - before_s, start);
  ran_s_ += took_s, window_s_ += took_s, window_steps_ += made;
  if (is_frame || !options_.shows_every_frame) is_shown_ = false;
  must_show_ |= is_frame && options_.shows_every_frame;
  steps_owed_ -= std::min(made, steps_owed_);
  RunState now;
  {
    const std::lock_guard lock(mutex_);
    SimulationStatus& s = status_;
    s.steps = simulation_->steps(), s.time_s = simulation_->time_s(), s.frames += is_frame;
    if (window_s_ >= 0.5 || s.steps_per_s == 0) {
      s.steps_per_s = window_s_ > 0 ? static_cast<double>(window_steps_) / window_s_ : 0;
      window_s_ = 0, window_steps_ = 0;
    }
    // Behind a stall it does not catch up: the pace is the most that is wanted at any time.
    if (s.pace > 0 && seconds_since(pace_from_) > (s.time_s - pace_time_s_) / s.pace)
      pace_from_ = Clock::now(), pace_time_s_ = s.time_s;
    const bool is_last = options_.last_frame >= 0 && s.frames >= static_cast<uint64_t>(options_.last_frame);
    if (is_last && next_replayed_ >= options_.replay.size()) s.state = RunState::kEnded;
    if (is_owed && steps_owed_ == 0 && !is_replayed_step_ && s.state == RunState::kRunning)
      s.state = RunState::kPaused;
    now = s.state;
  }
  if (now == RunState::kEnded) steps_owed_ = 0;
  if (now != RunState::kEnded) check_breakpoints();
  if (now != RunState::kRunning && options_.on_news) options_.on_news();
}

void SimulationThread::measure(uint64_t steps, double simulated_s, Clock::time_point start) {
  const Clock::time_point now = Clock::now();
  const double elapsed_s = std::chrono::duration<double>(now - batch_end_.value_or(start)).count();
  batch_end_ = now;
  report([&] { return instruments_.add_batch(*simulation_, {steps, elapsed_s, simulated_s}); });
}

// If the simulation throws to its instruments, it fails as by any other error.
template <class F>
void SimulationThread::report(F&& measures) {
  try {
    if (!measures()) return;
  } catch (...) {
    return fail("measuring", std::current_exception());
  }
  const std::lock_guard lock(mutex_);
  reports_ = instruments_.reports();
}

void SimulationThread::show() {
  if (simulation_ == nullptr || is_shown_ || state() == RunState::kFailed) return;
  // While one is ready, another would only take its place: that is for where it stays the last.
  // A value that is not finite is looked for in each, also while nobody takes any.
  const bool may_replace =
      !options_.shows_every_frame && (state() != RunState::kRunning || breakpoints_.not_finite);
  if (exchange_.has_ready() && !may_replace) return;
  Snapshot* const snapshot = exchange_.begin_filling(may_replace && breakpoints_.not_finite);
  if (snapshot == nullptr) return;
  const Clock::time_point start = Clock::now();
  try {
    const TraceScope trace("view.pack");
    snapshot->wanted = wanted_;
    simulation_->wait_pack(*snapshot);
  } catch (...) {
    exchange_.abandon();
    return fail("packing what is shown", std::current_exception());
  }
  snapshot->steps = simulation_->steps(), snapshot->time_s = simulation_->time_s();
  snapshot->pack_s = seconds_since(start);
  packed_s_ += snapshot->pack_s;
  if (breakpoints_.not_finite) check_finite(*snapshot);
  exchange_.publish();
  is_shown_ = true, must_show_ = false;
  update([&](SimulationStatus& s) { s.pack_share = ran_s_ > 0 ? packed_s_ / (ran_s_ + packed_s_) : 0; });
}

void SimulationThread::check_finite(const Snapshot& shown) {
  SetBreakpoints left = breakpoints_;
  left.not_finite = false;
  for (const PointSet& set : shown.points) {
    const auto bad = std::find_if_not(set.points.begin(), set.points.end(), is_finite);
    if (bad == set.points.end()) continue;
    return reach(left, fmt::format("{} {} is not finite, at step {}", set.name, bad - set.points.begin(),
                                   shown.steps));
  }
  for (const VolumeSet& volume : shown.volumes) {
    const auto bad = std::ranges::find_if(volume.bricks.stats, [](const render::BrickStats& b) {
      return !std::isfinite(b.min) || !std::isfinite(b.max);
    });
    if (bad == volume.bricks.stats.end()) continue;
    const auto at = volume.bricks.origins[static_cast<size_t>(bad - volume.bricks.stats.begin())];
    return reach(left, fmt::format("{} is not finite in the cells from ({}, {}, {}) on, at step {}",
                                   volume.name, at.x, at.y, at.z, shown.steps));
  }
}

// Breakpoints that were reached are off then.
void SimulationThread::reach(const SetBreakpoints& left, std::string why) {
  const RunState now = state();
  if (now != RunState::kRunning && now != RunState::kPaused) return;
  breakpoints_ = left, steps_owed_ = 0;
  update([&](SimulationStatus& s) {
    s.breakpoints = left;
    s.state = RunState::kPaused, s.message = std::move(why);
  });
}

void SimulationThread::check_breakpoints() {
  SetBreakpoints left = breakpoints_;
  const uint64_t steps = simulation_->steps();
  std::string why;
  if (left.step && steps >= *left.step) {
    left.step.reset();
    why = fmt::format("step {} is reached", steps);
  }
  if (left.time_s && simulation_->time_s() >= *left.time_s) {
    why = fmt::format("{:.6g} s are reached, at step {}", *left.time_s, steps);
    left.time_s.reset();
  }
  if (left.max_speed_m_s && simulation_->max_speed_m_s() >= *left.max_speed_m_s) {
    left.max_speed_m_s.reset();
    why = fmt::format("something moves with {:.4g} m/s, at step {}", simulation_->max_speed_m_s(), steps);
  }
  if (!why.empty()) reach(left, std::move(why));
}

}  // namespace coppice::viewer
