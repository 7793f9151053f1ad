// The simulation's thread: commands between batches, snapshots without waiting, and errors that pause it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <future>
#include <limits>

#include "apps/viewer/simulation_thread.h"
#include "core/error.h"

namespace coppice::viewer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A test sees this of a simulation that lives on another thread.
struct Watched {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> calls;  // "advance 3", "reset", "set a=1", "pack"
  int let_go = 0;                  // batches that may begin; negative: all
  int waiting = 0;                 // 1 while a batch waits to be let go
  double non_finite_from = std::numeric_limits<double>::infinity();
  int throws_at = -1;  // batches before it throws
  bool breaks_before_it_throws = false, throws_a_number = false, refuses_reset = false;
  std::atomic<bool> has_no_device = false;
  bool has_volume = false;            // instead of points
  std::atomic<bool> is_slow = false;  // resets take a while
  uint64_t begun = 0;

  void note(std::string call) {
    const std::lock_guard lock(mutex);
    calls.push_back(std::move(call));
    changed.notify_all();
  }
  size_t count(std::string_view prefix) {
    const std::lock_guard lock(mutex);
    return static_cast<size_t>(std::count_if(calls.begin(), calls.end(),
                                             [&](const std::string& c) { return c.starts_with(prefix); }));
  }
  void let(int batches) {
    const std::lock_guard lock(mutex);
    let_go = batches < 0 ? batches : let_go + batches;
    changed.notify_all();
  }
};

class Counting final : public Simulation {
 public:
  explicit Counting(Watched& watched) : w_(watched) {}
  bool wait_advance(int most_steps) override {
    {
      std::unique_lock lock(w_.mutex);
      w_.waiting = 1, w_.changed.notify_all();
      w_.changed.wait(lock, [&] { return w_.let_go != 0; });
      if (w_.let_go > 0) --w_.let_go;
      w_.waiting = 0;
      if (static_cast<int>(w_.begun++) == w_.throws_at) {
        if (w_.throws_a_number) throw 42;
        if (w_.breaks_before_it_throws) steps_ += 1000;
        throw Error(ErrorCode::kNumeric, "velocities stopped being finite");
      }
    }
    steps_ += static_cast<uint64_t>(most_steps);
    w_.note("advance " + std::to_string(most_steps));
    return true;
  }
  void wait_reset() override {
    if (w_.refuses_reset) throw Error(ErrorCode::kUsage, "there is no way back");
    if (w_.is_slow) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    steps_ = 0, w_.note("reset");
  }
  void wait_pack(Snapshot& s) override {
    const bool is_bad = static_cast<double>(steps_) >= w_.non_finite_from;
    const float value = is_bad ? std::nanf("") : 1.0f,
                most = is_bad ? std::numeric_limits<float>::infinity() : 1.0f;
    if (w_.has_volume) {
      s.volumes.resize(1);
      s.volumes[0].name = "v";
      s.volumes[0].bricks.origins = {{0, 0, 0}, {8, 0, 16}};
      s.volumes[0].bricks.stats = {{0, 1, 1}, {-most, most, 2}};
      return w_.note("pack");
    }
    s.points.resize(1);
    s.points[0].name = "p";
    s.points[0].points.assign(3, {Vec3f::Constant(static_cast<float>(steps_)), value});
    w_.note("pack");
  }
  uint64_t steps() const override { return steps_; }
  double time_s() const override { return 0.5 * static_cast<double>(steps_); }
  double max_speed_m_s() const override { return static_cast<double>(steps_); }
  std::string device_name() const override {
    if (w_.has_no_device) throw std::runtime_error("it has no device");
    return "cpu";
  }
  std::vector<FunctionGraph> graphs() const override {
    if (w_.has_no_device) throw std::runtime_error("it has no functions");
    return {};
  }
  MemoryState wait_memory() override {
    MemoryState state;
    state.buffers.push_back({"of step " + std::to_string(steps_), 1});
    return state;
  }
  bool has_memory() const override { return true; }
  void wait_set(const std::string& path, const std::string& value) override {
    if (path == "bad") throw Error(ErrorCode::kUsage, "no key 'bad'");
    w_.note("set " + path + "=" + value);
  }

 private:
  Watched& w_;
  uint64_t steps_ = 0;
};

class SimulationThreads : public testing::Test {
 protected:
  void start(SimulationThreadOptions options = {}) {
    options.on_news = [this] {
      const std::lock_guard lock(watched_.mutex);
      watched_.changed.notify_all();
    };
    if (!options.journal) {
      options.journal = [this](uint64_t steps, const Command& c) {
        watched_.note("journal " + std::to_string(steps) + " " + std::to_string(c.index()));
      };
    }
    thread_.emplace([this] { return std::make_unique<Counting>(watched_); }, options);
  }
  void TearDown() override {
    watched_.let(-1);
    thread_.reset();
  }
  // Waits for what the other thread does; ten seconds are for ever.
  template <class F>
  bool eventually(F&& holds) {
    for (int i = 0; i < 1000; ++i) {
      if (holds()) return true;
      std::unique_lock lock(watched_.mutex);
      watched_.changed.wait_for(lock, std::chrono::milliseconds(10));
    }
    return false;
  }
  bool reaches(RunState state) {
    return eventually([&] { return thread_->status().state == state; });
  }
  bool reaches_step(uint64_t steps) {
    return eventually([&] { return thread_->status().steps == steps; });
  }

  Watched watched_;
  std::optional<SimulationThread> thread_;
};

TEST_F(SimulationThreads, ShowsTheBeginningBeforeTheFirstStep) {
  start({.is_paused = true});
  std::shared_ptr<const Snapshot> seen;
  ASSERT_TRUE(eventually([&] { return (seen = thread_->take()) != nullptr; }));
  EXPECT_EQ(seen->steps, 0u);
  EXPECT_EQ(thread_->status().state, RunState::kPaused);
  EXPECT_EQ(watched_.count("advance"), 0u);
}

TEST_F(SimulationThreads, StepsWhilePausedAndShowsEach) {
  start({.is_paused = true});
  watched_.let(-1);
  ASSERT_TRUE(thread_->post(StepOnce{1}));
  ASSERT_TRUE(reaches_step(1));
  ASSERT_TRUE(reaches(RunState::kPaused));
  std::shared_ptr<const Snapshot> seen;
  ASSERT_TRUE(eventually([&] {
    if (auto next = thread_->take()) seen = next;
    return seen != nullptr && seen->steps == 1;
  }));
  // More than a batch's steps come in several.
  ASSERT_TRUE(thread_->post(StepOnce{40}));
  ASSERT_TRUE(reaches_step(41));
  ASSERT_TRUE(reaches(RunState::kPaused));
  EXPECT_EQ(watched_.count("advance 32"), 1u);
  EXPECT_EQ(watched_.count("advance 8"), 1u);
}

// Seen to fail when a batch was packed while the viewer had one and another was ready.
TEST_F(SimulationThreads, GoesOnWithoutPackingWhileNobodyLooks) {
  start();
  watched_.let(-1);
  ASSERT_TRUE(eventually([&] { return watched_.count("advance") >= 50; }));
  EXPECT_EQ(watched_.count("pack"), 1u);
  const auto first = thread_->take();
  ASSERT_NE(first, nullptr);
  const size_t batches = watched_.count("advance");
  ASSERT_TRUE(eventually([&] { return watched_.count("advance") >= batches + 50; }));
  EXPECT_EQ(watched_.count("pack"), 2u);
}

TEST_F(SimulationThreads, ShowsWhereItPausedThoughSnapshotsWereOut) {
  start();
  watched_.let(-1);
  ASSERT_TRUE(eventually([&] { return watched_.count("advance") >= 5; }));
  std::shared_ptr<const Snapshot> held = thread_->take();
  ASSERT_TRUE(eventually([&] { return watched_.count("pack") >= 2; }));
  ASSERT_TRUE(thread_->post(Pause{true}));
  ASSERT_TRUE(reaches(RunState::kPaused));
  const uint64_t steps = thread_->status().steps;
  ASSERT_TRUE(eventually([&] {
    if (auto next = thread_->take()) held = next;
    return held->steps == steps;
  }));
}

TEST_F(SimulationThreads, NothingChangesWhatWasHandedOver) {
  start();
  watched_.let(-1);
  std::shared_ptr<const Snapshot> held;
  ASSERT_TRUE(eventually([&] { return (held = thread_->take()) != nullptr; }));
  const uint64_t steps = held->steps;
  for (int i = 0; i < 20; ++i) {
    std::shared_ptr<const Snapshot> next;
    ASSERT_TRUE(eventually([&] { return (next = thread_->take()) != nullptr; }));
    EXPECT_GT(next->steps, steps);
    EXPECT_EQ(next->points[0].points[0].position.x(), static_cast<float>(next->steps));
  }
  EXPECT_EQ(held->steps, steps);
  EXPECT_EQ(held->points[0].points[0].position.x(), static_cast<float>(steps));
}

TEST_F(SimulationThreads, WhatItThrowsPausesItAndResetBeginsAnew) {
  watched_.throws_at = 1;
  start();
  watched_.let(-1);
  ASSERT_TRUE(reaches(RunState::kFailed));
  EXPECT_THAT(thread_->status().message, HasSubstr("stopped being finite"));
  EXPECT_EQ(thread_->status().steps, 32u);  // the last good state
  // One can still look at it, and begin anew. The error that it failed with stays said.
  thread_->post(Pause{false});
  thread_->post(StepOnce{1});
  thread_->post(Reset());
  ASSERT_TRUE(reaches(RunState::kPaused));
  EXPECT_EQ(thread_->status().message, "");
  EXPECT_EQ(watched_.count("advance"), 1u);
  thread_->post(Pause{false});
  EXPECT_TRUE(eventually([&] { return watched_.count("advance") > 5; }));
}

TEST_F(SimulationThreads, WhatCannotBeginIsAnErrorNotAnEnd) {
  std::atomic<int> tries = 0;
  thread_.emplace([&]() -> std::unique_ptr<Simulation> {
    if (tries++ == 0) throw Error(ErrorCode::kNotFound, "no mesh bunny.obj");
    return std::make_unique<Counting>(watched_);
  });
  ASSERT_TRUE(reaches(RunState::kFailed));
  EXPECT_EQ(thread_->status().message, "no mesh bunny.obj");
  thread_->post(Reset());
  EXPECT_TRUE(reaches(RunState::kRunning));
}

TEST_F(SimulationThreads, RefusedParametersChangeNothing) {
  start({.is_paused = true});
  thread_->post(SetParameter{"bad", "1"});
  ASSERT_TRUE(eventually([&] { return !thread_->status().notice.empty(); }));
  EXPECT_EQ(thread_->status().notice, "no key 'bad'");
  EXPECT_EQ(thread_->status().state, RunState::kPaused);
  thread_->post(SetParameter{"a", "2"});
  ASSERT_TRUE(eventually([&] { return watched_.count("set a=2") == 1; }));
  EXPECT_TRUE(eventually([&] { return thread_->status().notice.empty(); }));
}

TEST_F(SimulationThreads, PausesAtBreakpoints) {
  watched_.let(-1);
  start({.is_paused = true, .most_steps = 1});
  struct Case {
    SetBreakpoints at;
    uint64_t steps;
    const char* message;
  };
  for (const Case& c :
       {Case{{.step = 5}, 5, "step 5 is reached"}, Case{{.time_s = 4.0}, 8, "4 s are reached"},
        Case{{.max_speed_m_s = 11.0}, 11, "moves with 11 m/s"}}) {
    SCOPED_TRACE(c.message);
    thread_->post(c.at);
    thread_->post(Pause{false});
    ASSERT_TRUE(eventually([&] { return !thread_->status().message.empty(); }));
    EXPECT_EQ(thread_->status().steps, c.steps);
    EXPECT_THAT(thread_->status().message, HasSubstr(c.message));
    EXPECT_EQ(thread_->status().state, RunState::kPaused);
    EXPECT_EQ(thread_->status().breakpoints, SetBreakpoints()) << "what was reached is forgotten";
    thread_->post(Pause{true});  // which takes the message away
    ASSERT_TRUE(eventually([&] { return thread_->status().message.empty(); }));
  }
}

TEST_F(SimulationThreads, KeepsTheBreakpointsThatWereNotReached) {
  watched_.let(-1);
  start({.is_paused = true, .most_steps = 1});
  const SetBreakpoints later{.time_s = 1e6, .not_finite = true};
  SetBreakpoints both = later;
  both.step = 3;
  thread_->post(both);
  ASSERT_TRUE(eventually([&] { return thread_->status().breakpoints == both; }));
  thread_->post(Pause{false});
  ASSERT_TRUE(eventually([&] { return !thread_->status().message.empty(); }));
  EXPECT_EQ(thread_->status().breakpoints, later);
}

TEST_F(SimulationThreads, PausesWhereSomethingIsNotFinite) {
  watched_.non_finite_from = 20;
  start({.is_paused = true, .shows_every_frame = true, .most_steps = 1});
  watched_.let(-1);
  thread_->post(SetBreakpoints{.not_finite = true});
  thread_->post(Pause{false});
  std::shared_ptr<const Snapshot> held;
  ASSERT_TRUE(eventually([&] {
    if (auto next = thread_->take()) held = next;
    return thread_->status().state == RunState::kPaused && !thread_->status().message.empty();
  }));
  EXPECT_EQ(thread_->status().message, "p 0 is not finite, at step 20");
}

// Also behind a step that was made alone, and in what is packed while paused.
TEST_F(SimulationThreads, SingleStepsReachBreakpoints) {
  watched_.non_finite_from = 6;
  watched_.let(-1);
  start({.is_paused = true, .most_steps = 32});
  const SetBreakpoints both{.step = 3, .not_finite = true};
  thread_->post(both);
  thread_->post(StepOnce{2});
  ASSERT_TRUE(reaches_step(2) && reaches(RunState::kPaused));
  EXPECT_EQ(thread_->status().breakpoints, both);
  thread_->post(StepOnce{1});
  ASSERT_TRUE(eventually([&] { return thread_->status().message == "step 3 is reached"; }));
  EXPECT_EQ(thread_->status().state, RunState::kPaused);
  EXPECT_FALSE(thread_->status().breakpoints.step);
  thread_->post(StepOnce{3});
  ASSERT_TRUE(eventually([&] { return thread_->status().message == "p 0 is not finite, at step 6"; }));
  EXPECT_EQ(thread_->status().breakpoints, SetBreakpoints());
}

// Nobody takes the second snapshot, as when the picture is frozen or the window is an icon.
TEST_F(SimulationThreads, FindsWhatIsNotFiniteInVolumesAndWhileNobodyLooks) {
  watched_.non_finite_from = 2000, watched_.has_volume = true;
  start({.is_paused = true, .most_steps = 1});
  std::shared_ptr<const Snapshot> held;
  ASSERT_TRUE(eventually([&] { return (held = thread_->take()) != nullptr; }));
  watched_.let(-1);
  thread_->post(SetBreakpoints{.not_finite = true});
  thread_->post(Pause{false});
  ASSERT_TRUE(eventually([&] { return !thread_->status().message.empty(); }));
  EXPECT_EQ(thread_->status().message, "v is not finite in the cells from (8, 0, 16) on, at step 2000");
  EXPECT_EQ(held->steps, 0u);
}

// A session that failed, was changed and begun anew, and failed again: the replay does all of it.
TEST_F(SimulationThreads, AReplayGoesOnBehindWhatFailed) {
  watched_.throws_at = 2, watched_.breaks_before_it_throws = true, watched_.is_slow = true;
  watched_.let(-1);
  start({.last_frame = 3,
         .most_steps = 1,
         .replay = {{1002, SetParameter{"a", "1"}}, {1002, Reset()}, {3, SetParameter{"b", "2"}}}});
  // A back end that ends with the simulation polls so.
  ASSERT_TRUE(eventually([&] {
    thread_->take();
    const RunState now = thread_->status().state;
    return (now == RunState::kEnded || now == RunState::kFailed) && !thread_->has_more();
  }));
  EXPECT_EQ(thread_->status().state, RunState::kEnded) << thread_->status().message;
  EXPECT_EQ(watched_.count("set"), 2u);
  EXPECT_EQ(watched_.count("reset"), 1u);
}

TEST_F(SimulationThreads, NoFramesAndAReplayAreTheReplay) {
  watched_.let(-1);
  start({.last_frame = 0, .most_steps = 1, .replay = {{3, SetParameter{"a", "1"}}}});
  ASSERT_TRUE(reaches(RunState::kEnded));
  EXPECT_EQ(watched_.count("set a=1"), 1u);
}

TEST_F(SimulationThreads, AResetForgetsWhatWasMeasuredBefore) {
  start({.is_paused = true, .most_steps = 1});
  watched_.let(-1);
  thread_->post(StepOnce{5});
  ASSERT_TRUE(reaches_step(5));
  thread_->post(Watch{.memory = true});
  const auto shown = [&] {
    const auto memory = thread_->reports().memory;
    return memory ? memory->buffers.at(0).name : std::string();
  };
  ASSERT_TRUE(eventually([&] { return shown() == "of step 5"; }));
  thread_->post(Reset());
  EXPECT_TRUE(eventually([&] { return shown() == "of step 0"; })) << shown();
}

TEST_F(SimulationThreads, EveryFrameIsSeenWhereThatIsAskedFor) {
  start({.last_frame = 10, .shows_every_frame = true, .most_steps = 3});
  watched_.let(-1);
  std::vector<uint64_t> seen;
  ASSERT_TRUE(eventually([&] {
    if (const auto next = thread_->take()) seen.push_back(next->steps);
    return seen.size() == 11;
  }));
  EXPECT_THAT(seen, ElementsAre(0, 3, 6, 9, 12, 15, 18, 21, 24, 27, 30));
  EXPECT_TRUE(reaches(RunState::kEnded));
}

TEST_F(SimulationThreads, PacesItself) {
  start({.is_paused = true, .most_steps = 1});
  watched_.let(-1);
  thread_->post(SetPace{100});  // a step, half a second, every 5 ms
  const auto begin = std::chrono::steady_clock::now();
  thread_->post(Pause{false});
  ASSERT_TRUE(eventually([&] { return thread_->status().steps >= 20; }));
  // No sooner than the pace allows; how much later is the machine's affair.
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(95));
}

TEST_F(SimulationThreads, DropsCommandsThatNobodyCouldObey) {
  start();
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(watched_.mutex);
    return watched_.waiting == 1;
  }));
  size_t taken = 0;
  while (taken < 2 * SimulationThread::kMostCommands && thread_->post(Pause{false})) ++taken;
  EXPECT_EQ(taken, SimulationThread::kMostCommands);
  watched_.let(1);
  EXPECT_TRUE(eventually([&] { return thread_->post(Pause{true}); }));
}

TEST_F(SimulationThreads, JournalsWhatChangesTheSimulationAndDoesItAgain) {
  std::vector<JournalEntry> journal;
  SimulationThreadOptions options{.is_paused = true};
  options.journal = [&](uint64_t steps, const Command& c) { journal.push_back({steps, c}); };
  start(options);
  watched_.let(-1);
  thread_->post(SetParameter{"a", "1"});
  thread_->post(SetParameter{"bad", "1"});  // was refused: nothing to do again
  thread_->post(StepOnce{3});
  thread_->post(StepOnce{0});
  ASSERT_TRUE(reaches_step(3));
  thread_->post(SetParameter{"b", "2"});
  thread_->post(StepOnce{40});
  ASSERT_TRUE(reaches_step(43));
  thread_->post(SetPace{0});
  thread_->post(Reset());
  ASSERT_TRUE(eventually([&] { return watched_.count("reset") == 1; }));
  ASSERT_TRUE(reaches(RunState::kPaused));
  thread_.reset();
  EXPECT_EQ(journal_text(journal),
            "coppice journal 1\n0 set a 1\n0 step 3\n3 set b 2\n3 step 32\n35 step 8\n43 reset\n");
  watched_.calls.clear();
  options.replay = journal;
  options.journal = nullptr;
  start(options);
  // Nothing is done again before somebody wants it to run.
  thread_->post(SetPace{0});
  thread_->post(SetBreakpoints{.step = 20});
  EXPECT_EQ(watched_.count("advance"), 0u);
  thread_->post(Pause{false});
  ASSERT_TRUE(reaches_step(35));  // the breakpoint
  thread_->post(Pause{false});
  ASSERT_TRUE(eventually([&] { return watched_.count("reset") == 1; }));
  std::vector<std::string> again;
  {
    const std::lock_guard lock(watched_.mutex);
    again = watched_.calls;
  }
  std::erase_if(again, [](const std::string& c) { return c == "pack" || c.starts_with("journal"); });
  again.resize(6);
  EXPECT_THAT(again, ElementsAre("set a=1", "advance 3", "set b=2", "advance 32", "advance 8", "reset"));
  // And it goes on behind the journal.
  EXPECT_TRUE(eventually([&] { return watched_.count("advance") > 10; }));
}

// Seen to fail when owed steps outlived a pause: the next step was 69 steps.
TEST_F(SimulationThreads, StepsThatAreOwedEndWithAPause) {
  start({.is_paused = true});
  watched_.let(1);
  thread_->post(StepOnce{100});
  ASSERT_TRUE(reaches_step(32));
  thread_->post(Pause{true});
  watched_.let(-1);
  ASSERT_TRUE(reaches(RunState::kPaused));
  const uint64_t steps = thread_->status().steps;
  thread_->post(StepOnce{1});
  EXPECT_TRUE(reaches_step(steps + 1));
  EXPECT_TRUE(reaches(RunState::kPaused));
  EXPECT_EQ(thread_->status().steps, steps + 1);
}

// Seen to fail: who had paused saw it reset and run away.
TEST_F(SimulationThreads, AResetAmidOwedStepsPauses) {
  start({.is_paused = true});
  watched_.let(1);
  thread_->post(StepOnce{1000});
  ASSERT_TRUE(reaches_step(32));
  thread_->post(Reset());
  watched_.let(-1);
  ASSERT_TRUE(eventually([&] { return watched_.count("reset") == 1; }));
  EXPECT_TRUE(reaches(RunState::kPaused));
  EXPECT_EQ(thread_->status().steps, 0u);
}

// Seen to fail: the state in which it failed was shown in place of the last good one.
TEST_F(SimulationThreads, ShowsNothingOfWhatFailed) {
  watched_.throws_at = 3;
  watched_.breaks_before_it_throws = true;
  start();
  watched_.let(-1);
  ASSERT_TRUE(reaches(RunState::kFailed));
  thread_->post(SetParameter{"a", "1"});
  thread_->post(SetBreakpoints{.not_finite = true});
  std::shared_ptr<const Snapshot> held;
  for (int i = 0; i < 20; ++i) {
    if (auto next = thread_->take()) held = next;
    ASSERT_TRUE(thread_->post(SetPace{0}));
  }
  ASSERT_TRUE(eventually([&] { return watched_.count("set a=1") == 1; }));
  if (auto next = thread_->take()) held = next;
  ASSERT_NE(held, nullptr);
  EXPECT_LE(held->steps, 96u);
  EXPECT_EQ(thread_->status().state, RunState::kFailed);
  EXPECT_THAT(thread_->status().message, HasSubstr("stopped being finite"));
}

TEST_F(SimulationThreads, WhateverIsThrownIsAMessage) {
  watched_.throws_a_number = true;
  watched_.throws_at = 0;
  start();
  watched_.let(-1);
  ASSERT_TRUE(reaches(RunState::kFailed));
  EXPECT_EQ(thread_->status().message, "something was thrown that is no std::exception");
}

// Seen to end the process.
TEST_F(SimulationThreads, WhatIsThrownToInstrumentsIsAMessage) {
  start({.is_paused = true, .most_steps = 1});
  watched_.let(-1);
  ASSERT_TRUE(reaches(RunState::kPaused));
  watched_.has_no_device = true;
  thread_->post(Watch{.graphs = true});
  ASSERT_TRUE(reaches(RunState::kFailed));
  EXPECT_EQ(thread_->status().message, "it has no functions");
  thread_->post(Reset());  // which measures it, too
  ASSERT_TRUE(eventually([&] { return thread_->status().reset == 2; }));
  ASSERT_TRUE(reaches(RunState::kFailed));
  thread_->post(Watch{.time = true});
  thread_->post(Reset());
  ASSERT_TRUE(reaches(RunState::kPaused));
  thread_->post(Pause{false});
  ASSERT_TRUE(reaches(RunState::kFailed));
  EXPECT_EQ(thread_->status().message, "it has no device");
  start();
  ASSERT_TRUE(reaches(RunState::kFailed));
  EXPECT_EQ(thread_->status().message, "it has no functions");
}

TEST_F(SimulationThreads, ARefusedResetLeavesItRunning) {
  watched_.refuses_reset = true;
  start();
  watched_.let(-1);
  thread_->post(Reset());
  ASSERT_TRUE(eventually([&] { return !thread_->status().notice.empty(); }));
  EXPECT_EQ(thread_->status().notice, "not reset: there is no way back");
  EXPECT_EQ(thread_->status().state, RunState::kRunning);
  EXPECT_EQ(thread_->status().reset, 0u);
  watched_.refuses_reset = false;
  thread_->post(SetPace{0});
  thread_->post(Reset());
  ASSERT_TRUE(eventually([&] { return watched_.count("reset") == 1; }));
  EXPECT_TRUE(eventually([&] { return thread_->status().reset == 3; })) << "it was the third command";
}

TEST_F(SimulationThreads, EndsWhereItShouldAndStaysThere) {
  start({.last_frame = 2});
  watched_.let(-1);
  ASSERT_TRUE(reaches(RunState::kEnded));
  EXPECT_EQ(thread_->status().frames, 2u);
  thread_->post(StepOnce{100});
  thread_->post(Pause{false});
  ASSERT_TRUE(eventually([&] { return !thread_->status().notice.empty(); }));
  EXPECT_EQ(thread_->status().state, RunState::kEnded);
  EXPECT_EQ(watched_.count("advance"), 2u);
  thread_->post(Reset());
  ASSERT_TRUE(reaches(RunState::kPaused));
  EXPECT_EQ(thread_->status().frames, 0u);
}

TEST_F(SimulationThreads, NoFramesAreTheBeginningAlone) {
  start({.last_frame = 0, .shows_every_frame = true});
  watched_.let(-1);
  ASSERT_TRUE(reaches(RunState::kEnded));
  EXPECT_TRUE(eventually([&] { return thread_->take() != nullptr; }));
  EXPECT_EQ(watched_.count("advance"), 0u);
}

TEST(SnapshotExchanges, SnapshotsOutliveThem) {
  std::shared_ptr<const Snapshot> held;
  int told = 0;
  {
    SnapshotExchange exchange([&] { ++told; });
    Snapshot* s = exchange.begin_filling();
    ASSERT_NE(s, nullptr);
    s->steps = 7;
    exchange.publish();
    held = exchange.take();
    EXPECT_EQ(told, 1);
    EXPECT_EQ(exchange.take(), nullptr);
    EXPECT_NE(exchange.begin_filling(), nullptr);
    exchange.abandon();
    EXPECT_NE(exchange.begin_filling(), nullptr);
    exchange.publish();
    EXPECT_EQ(exchange.begin_filling(), nullptr);  // one is shown, one is ready
  }
  EXPECT_EQ(held->steps, 7u);
  EXPECT_EQ(told, 1);  // that it was taken
  held.reset();
  EXPECT_EQ(told, 1);  // nobody is there to be told
}

}  // namespace
}  // namespace coppice::viewer
