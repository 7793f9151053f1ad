// Functions as graphs: what waits for what, measured times, and the longest way on graphs that are known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "apps/mpm/solver.h"
#include "apps/scene/scene.h"
#include "apps/viewer/function_graph.h"

namespace coppice::viewer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

GraphOperation op(double ms, std::vector<uint32_t> waits) {
  GraphOperation o;
  o.ms = ms, o.waits = std::move(waits);
  return o;
}

TEST(CriticalPaths, OfKnownGraphs) {
  EXPECT_THAT(critical_path({}), IsEmpty());
  EXPECT_THAT(critical_path({op(1, {})}), ElementsAre(0));
  // A chain.
  EXPECT_THAT(critical_path({op(1, {}), op(1, {0}), op(1, {1})}), ElementsAre(0, 1, 2));
  // A diamond, by its slower side.
  EXPECT_THAT(critical_path({op(1, {}), op(2, {0}), op(3, {0}), op(1, {1, 2})}), ElementsAre(0, 2, 3));
  EXPECT_THAT(critical_path({op(1, {}), op(4, {0}), op(3, {0}), op(1, {1, 2})}), ElementsAre(0, 1, 3));
  // Many short ones against a long one, and a way that ends before the last operation.
  EXPECT_THAT(critical_path({op(1, {}), op(1, {0}), op(1, {1}), op(5, {}), op(0.5, {})}), ElementsAre(3));
  EXPECT_THAT(critical_path({op(2, {}), op(2, {0}), op(2, {1}), op(5, {}), op(0.5, {3})}),
              ElementsAre(0, 1, 2));
  // Written in another order than they run in.
  EXPECT_THAT(critical_path({op(1, {2}), op(7, {2}), op(3, {}), op(1, {0, 1})}), ElementsAre(2, 1, 3));
}

TEST(CriticalPaths, TakeTheLongerOfEqualWays) {
  // Nothing is measured yet: the way with most operations.
  EXPECT_THAT(critical_path({op(0, {}), op(0, {0}), op(0, {1}), op(0, {0}), op(0, {2, 3})}),
              ElementsAre(0, 1, 2, 4));
}

TEST(CriticalPaths, EndAtRings) {
  EXPECT_THAT(critical_path({op(1, {}), op(9, {2}), op(9, {1})}), ElementsAre(0));
}

TEST(FunctionGraphs, AreThoseOfTheSolversFunctions) {
  const scene::SceneConfig scene = scene::parse_scene(
      "[[emitter]]\nshape = \"sphere\"\ncenter = [0.5, 0.5, 0.5]\nradius = 0.1\nmaterial = \"snow\"\n",
      "test.toml");
  const auto solver = mpm::Solver::create(Device::cpu(1), scene);
  const std::vector<Function> functions = solver->functions();
  const FunctionGraph g = function_graph(*functions[1].loaded().functions().front());
  EXPECT_EQ(g.name, "@mpm.step");
  ASSERT_EQ(g.operations.size(), 5u);
  EXPECT_EQ(g.operations[1].text, "mpm.particles_to_grid_3d");
  EXPECT_EQ(g.operations[1].event, "mpm.particles_to_grid_3d");
  EXPECT_THAT(g.operations[0].waits, IsEmpty());
  for (uint32_t i = 1; i < 5; ++i) EXPECT_THAT(g.operations[i].waits, ElementsAre(i - 1));
  const FunctionGraph sort = function_graph(*functions[0].loaded().functions().front());
  EXPECT_EQ(sort.operations[0].event, "sparse.deactivate_all");
  EXPECT_THAT(sort.operations.back().waits, ElementsAre(sort.operations.size() - 2));
}

TEST(FunctionGraphs, HaveTheTimesOfTheirEventsOnStreams) {
  FunctionGraph g;
  g.operations = {op(99, {}), op(99, {0}), op(99, {0}), op(99, {1, 2})};
  g.operations[0].event = "first", g.operations[1].event = "slow", g.operations[2].event = "fast",
  g.operations[3].event = "unseen";
  const auto timing = [](const char* name, TracePlace place, int depth, double mean_ms, double calls) {
    Timing t;
    t.name = name, t.place = place, t.depth = depth, t.mean_ms = mean_ms, t.calls = calls;
    return t;
  };
  const std::vector<Timing> timings{
      timing("first", TracePlace::kStream, 0, 0.25, 0.125), timing("fast", TracePlace::kStream, 1, 50, 1),
      timing("fast", TracePlace::kStream, 0, 1, 1), timing("slow", TracePlace::kStream, 0, 3, 1),
      timing("unseen", TracePlace::kHost, 0, 7, 1)};
  measure(g, timings);
  std::vector<double> ms;
  std::vector<bool> is_critical;
  for (const GraphOperation& o : g.operations) ms.push_back(o.ms), is_critical.push_back(o.is_critical);
  EXPECT_THAT(ms, ElementsAre(2, 3, 1, 0)) << "of a single one; rare ones are not divided by all steps";
  EXPECT_THAT(is_critical, ElementsAre(true, true, false, true));
  EXPECT_DOUBLE_EQ(g.critical_ms, 5);
}

}  // namespace
}  // namespace coppice::viewer
