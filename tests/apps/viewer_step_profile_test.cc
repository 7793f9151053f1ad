// Times per step: sums of what a trace recorded, what lies in what, the last steps
// only, and what is measured when.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <thread>

#include "apps/viewer/instruments.h"
#include "apps/viewer/step_profile.h"
#include "core/error.h"
#include "tests/apps/still_simulation.h"

namespace coppice::viewer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t kMs = 1'000'000;

// Events in the order in which they end, as a thread records them.
TraceRecord record_of(std::vector<TraceEvent> events) {
  TraceRecord record;
  record.rows = {{1, "coppice.stream"}, {2, "simulation"}, {3, "worker 1"}};
  record.events = std::move(events);
  return record;
}
TraceEvent event(uint32_t row, const char* name, int64_t begin_ms, int64_t end_ms) {
  return {begin_ms * kMs, end_ms * kMs, row, name};
}
// "name place depth" of each.
std::vector<std::string> outline(const TimeReport& r) {
  std::vector<std::string> lines;
  for (const Timing& t : r.timings)
    lines.push_back(t.name + (t.place == TracePlace::kStream ? " device " : " host ") +
                    std::to_string(t.depth));
  return lines;
}
const Timing& find(const TimeReport& r, const std::string& name) {
  static const Timing none;
  for (const Timing& t : r.timings)
    if (t.name == name) return t;
  ADD_FAILURE() << "no timing of " << name;
  return none;
}

// Two steps of scatter, with a sort in the first one, and gather.
std::vector<TraceEvent> two_steps() {
  return {event(1, "sort", 1, 3),     event(1, "scatter", 0, 10),  event(3, "scatter", 2, 9),
          event(1, "gather", 10, 16), event(1, "scatter", 20, 24), event(1, "gather", 24, 26),
          event(2, "launch", 0, 1),   event(2, "launch", 1, 2),    event(2, "batch", 0, 27)};
}

TEST(StepProfiles, AddUpStepsAndWhatLiesInThem) {
  StepProfile profile;
  profile.add(record_of(two_steps()), {2, 0.030, 0.015});
  const TimeReport r = profile.report();
  EXPECT_EQ(r.steps, 2u);
  EXPECT_DOUBLE_EQ(r.step_ms, 15);
  EXPECT_NEAR(r.steps_per_s, 2 / 0.030, 1e-9);
  EXPECT_DOUBLE_EQ(r.pace, 0.5);
  EXPECT_THAT(outline(r), ElementsAre("scatter device 0", "sort device 1", "gather device 0", "batch host 0",
                                      "launch host 1"));
  EXPECT_NEAR(find(r, "scatter").mean_ms, 7, 1e-5) << "workers' parts lie within the stream's own";
  EXPECT_NEAR(find(r, "scatter").longest_ms, 10, 1e-5);
  EXPECT_DOUBLE_EQ(find(r, "scatter").calls, 1);
  EXPECT_NEAR(find(r, "sort").mean_ms, 1, 1e-5);
  EXPECT_DOUBLE_EQ(find(r, "sort").calls, 0.5);
  EXPECT_NEAR(find(r, "gather").mean_ms, 4, 1e-5);
  EXPECT_NEAR(find(r, "launch").mean_ms, 1, 1e-5);
}

TEST(StepProfiles, MeansAreOfTheLastSteps) {
  StepProfile profile;
  // Slow at first; then so many fast steps that means are theirs alone.
  profile.add(record_of({event(1, "k", 0, 100)}), {1, 0.1, 0});
  for (uint64_t steps = 0; steps < kMeanSteps; steps += 32)
    profile.add(record_of({event(1, "k", 0, 32)}), {32, 0.032, 0});
  TimeReport r = profile.report();
  EXPECT_EQ(r.steps, kMeanSteps);
  EXPECT_NEAR(find(r, "k").mean_ms, 1, 1e-6);
  EXPECT_NEAR(find(r, "k").longest_ms, 32, 1e-5);
  EXPECT_NEAR(r.longest_ms, 1, 1e-9);
  // The graph goes back farther, with the oldest first.
  EXPECT_EQ(find(r, "k").history.size(), 1 + kMeanSteps / 32);
  EXPECT_FLOAT_EQ(find(r, "k").history.front(), 100);
  EXPECT_FLOAT_EQ(find(r, "k").history.back(), 1);
  // Entries of operations that have not run for the whole graph are gone.
  for (size_t i = 0; i < kHistory; ++i) profile.add(record_of({event(1, "other", 0, 2)}), {1, 0.002, 0});
  r = profile.report();
  EXPECT_THAT(outline(r), ElementsAre("other device 0"));
  EXPECT_EQ(r.step_ms_history.size(), kHistory);
  EXPECT_FLOAT_EQ(r.step_ms_history.front(), 2);
}

TEST(StepProfiles, FindTheLastStepInItsBatch) {
  StepProfile profile;
  profile.add(record_of(two_steps()), {2, 0.030, 0});
  const Timeline t = profile.report().last_step;
  EXPECT_FLOAT_EQ(t.length_ms, 6);
  EXPECT_THAT(t.rows, ElementsAre("coppice.stream", "simulation"));
  std::map<std::string, std::pair<float, float>> found;
  for (const Timeline::Event& e : t.events) found[t.names[e.name]] = {e.begin_ms, e.end_ms};
  EXPECT_EQ(found.size(), 3u);
  EXPECT_EQ(found["scatter"], std::pair(0.0f, 4.0f));
  EXPECT_EQ(found["gather"], std::pair(4.0f, 6.0f));
  EXPECT_EQ(found["batch"], std::pair(0.0f, 6.0f)) << "cut to the step";
}

// A batch that stopped after two steps, with launches behind that found nothing to do.
TEST(StepProfiles, TakeNoLaunchesForAStepThatDidNothing) {
  std::vector<TraceEvent> events = two_steps();
  for (int64_t i = 0; i < 30; ++i) {
    events.push_back({(30 + i) * kMs, (30 + i) * kMs + 100, 1, "scatter"});
    events.push_back({(30 + i) * kMs + 200, (30 + i) * kMs + 300, 1, "gather"});
  }
  StepProfile profile;
  profile.add(record_of(std::move(events)), {2, 0.060, 0});
  const Timeline t = profile.report().last_step;
  EXPECT_FLOAT_EQ(t.length_ms, 6);
  EXPECT_EQ(t.events.size(), 3u);
}

TEST(StepProfiles, LeaveOutTheShortestEventsOfALongTimeline) {
  std::vector<TraceEvent> events;
  for (int i = 0; i < 1000; ++i) events.push_back(event(3, "part", 10 * i, 10 * i + 1 + i % 5));
  events.push_back(event(1, "k", 0, 10'000));
  StepProfile profile;
  profile.add(record_of(std::move(events)), {1, 10, 0});
  const Timeline t = profile.report().last_step;
  EXPECT_EQ(t.events.size() + t.left_out, 1001u);
  EXPECT_EQ(t.events.size(), 400u);
  for (const Timeline::Event& e : t.events) EXPECT_GE(e.end_ms - e.begin_ms, 3.9f);
}

// Against the trace's own events, with two threads that record while a third adds up.
TEST(StepProfiles, SumsAreThoseOfTheRecordedTrace) {
  Trace::start_live();
  std::atomic<int> at_work{2};
  std::vector<std::thread> threads;
  for (const char* row : {"coppice.one", "host"}) {
    threads.emplace_back([&at_work, row] {
      name_this_thread_row(row);
      for (int i = 0; i < 3000; ++i) {
        const TraceScope outer("outer");
        const TraceScope inner(i % 3 == 0 ? "inner a" : "inner b");
      }
      --at_work;
    });
  }
  StepProfile profile;
  std::map<std::string, double> ms, calls;
  uint64_t steps = 0;
  for (bool is_last = false; !is_last && steps < kHistory;) {
    is_last = at_work == 0 || steps + 1 == kHistory;
    if (is_last) {
      for (std::thread& t : threads) t.join();
    }
    const TraceRecord record = Trace::take();
    for (const TraceEvent& e : record.events) {
      ms[std::string(e.name)] += 1e-6 * static_cast<double>(e.end_ns - e.begin_ns);
      calls[std::string(e.name)] += 1;
    }
    profile.add(record, {1, 0.001, 0});
    ++steps;
  }
  Trace::stop();
  EXPECT_EQ(calls["outer"], 6000);
  const TimeReport r = profile.report();
  ASSERT_EQ(r.steps, steps);
  std::map<std::string, double> ms_found, calls_found;
  for (const Timing& t : r.timings) {
    ms_found[t.name] += t.mean_ms * static_cast<double>(steps);
    calls_found[t.name] += t.calls * static_cast<double>(steps);
  }
  for (const auto& [name, sum] : ms) {
    EXPECT_NEAR(ms_found[name], sum, 1e-3 * sum) << name;
    EXPECT_NEAR(calls_found[name], calls[name], 1e-6) << name;
  }
}

TEST(InstrumentsTest, MeasureOnlyWhatIsWatched) {
  StillSimulation simulation;
  {
    Instruments instruments;
    EXPECT_FALSE(instruments.add_batch(simulation, {1, 0.01, 0}));
    EXPECT_FALSE(Trace::is_on());
    instruments.watch({.time = true}, &simulation);
    EXPECT_TRUE(Trace::is_on());
    { const TraceScope scope("something"); }
    EXPECT_TRUE(instruments.add_batch(simulation, {1, 0.01, 0}));
    ASSERT_NE(instruments.reports().time, nullptr);
    EXPECT_THAT(outline(*instruments.reports().time), ElementsAre("something host 0"));
    EXPECT_FALSE(instruments.add_batch(simulation, {1, 0.01, 0}))
        << "not before a tenth of a second has passed";
    instruments.watch({}, &simulation);
    EXPECT_FALSE(Trace::is_on());
    EXPECT_EQ(instruments.reports().time, nullptr);
    instruments.watch({.time = true}, &simulation);
  }
  EXPECT_FALSE(Trace::is_on()) << "a viewer that ends leaves no trace behind";
}

TEST(InstrumentsTest, SayWhyThereAreNoTimings) {
  const std::string file = testing::TempDir() + "coppice_instruments_trace.json";
  Trace::start(file);
  StillSimulation simulation;
  Instruments instruments;
  instruments.watch({.time = true}, &simulation);
  EXPECT_TRUE(instruments.add_batch(simulation, {4, 0.01, 0}));
  EXPECT_THAT(instruments.reports().time->why_not, HasSubstr("a trace is being recorded already"));
  EXPECT_NEAR(instruments.reports().time->steps_per_s, 400, 1e-6) << "which needs no trace";
  instruments.watch({}, &simulation);
  EXPECT_TRUE(Trace::is_on()) << "it is somebody else's";
  Trace::stop();
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace coppice::viewer
