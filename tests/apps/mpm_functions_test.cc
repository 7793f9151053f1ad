// The solver's functions: what they print, that the text loads back, and that a step that was edited is run.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "apps/mpm/solver.h"
#include "apps/scene/scene.h"
#include "core/error.h"
#include "executor/text.h"

namespace coppice::mpm {
namespace {

scene::SceneConfig small_scene(int dim) {
  return scene::parse_scene(dim == 2 ? R"(
dim = 2
[grid]
resolution = 32
[[emitter]]
shape = "sphere"
center = [0.5, 0.5]
radius = 0.1
material = "snow"
)"
                                     : R"(
[grid]
resolution = 32
[[emitter]]
shape = "sphere"
center = [0.5, 0.5, 0.5]
radius = 0.1
material = "snow"
)",
                            "small.toml");
}

std::string text_of(const std::vector<Function>& functions) {
  std::string text;
  for (const Function& f : functions) text += print(f) + '\n';
  return text;
}

class SolverFunctions : public testing::TestWithParam<int> {};

// A step is written as plain code (apps/mpm/time_step.cc): this is what it was when it was looked at last.
TEST_P(SolverFunctions, AreThoseOfTheGoldenFile) {
  const auto solver = Solver::create(Device::cpu(1), small_scene(GetParam()));
  const std::string path = COPPICE_GOLDEN_FOLDER "/mpm_" + std::to_string(GetParam()) + "d.graph";
  std::ostringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(text_of(solver->functions()), golden.str()) << "in " << path;
}

TEST_P(SolverFunctions, LoadFromTheirText) {
  const auto device = Device::cpu(1);
  const auto solver = Solver::create(device, small_scene(GetParam()));
  for (const Function& f : solver->functions()) {
    const Function loaded =
        Function::load(device, executor::parse(print(f), "step.graph"), f.loaded().bindings());
    EXPECT_EQ(print(loaded), print(f));
  }
}

TEST_P(SolverFunctions, AreRunAsTheyWereEdited) {
  const auto solver = Solver::create(Device::cpu(2), small_scene(GetParam()));
  solver->wait_advance_frame();
  const ParticleSnapshot before = solver->wait_snapshot();
  const Function whole = solver->step();
  Function step = whole;
  step.remove("mpm.grid_to_particles");
  solver->set_step(step);
  solver->wait_advance_frame();
  EXPECT_EQ(solver->wait_snapshot().position[7], before.position[7]) << "nothing moves the particles";
  solver->set_step(whole);
  solver->wait_advance_frame();
  EXPECT_NE(solver->wait_snapshot().position[7], before.position[7]);
}

INSTANTIATE_TEST_SUITE_P(Mpm, SolverFunctions, testing::Values(2, 3),
                         [](const auto& info) { return std::to_string(info.param) + "d"; });

}  // namespace
}  // namespace coppice::mpm
