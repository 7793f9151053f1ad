// The solver's functions: what they print, that the text loads back, and that a step that was edited is run.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "apps/mpm/solver.h"
#include "apps/scene/scene.h"
#include "core/error.h"
#include "executor/plan/problem.h"
#include "executor/text.h"
#include "gpu/primitives.h"
#include "sparse/function_memory.h"
#include "tests/sparse/environment.h"

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

// Scratch of primitives is the stream's, and no part of the plan. It must not cost what a plan with it would
// save.
TEST_P(SolverFunctions, NeedNoMoreThanAPlanOfTemporariesAndScratch) {
  const auto solver = Solver::create(Device::cpu(1), small_scene(GetParam()));
  const auto n = static_cast<int64_t>(solver->num_particles());
  const Function sort = solver->functions().front();
  ASSERT_EQ(sort.name(), "mpm.sort");
  const FunctionMemory memory = memory_of(sort.loaded());
  plan::Problem whole = memory.problem;
  int64_t scratch = 0;  // of the largest
  const executor::LoadedFunction& main = *sort.loaded().functions().front();
  const std::vector<uint32_t> order = executor::run_order(main);
  for (uint32_t time = 0; time < order.size(); ++time) {
    const std::string& name = main.operations[order[time]].info->name;
    ASSERT_NE(name.substr(0, 13), "sparse.repeat") << "whose body would take more than one of the times";
    if (name.substr(0, 11) != "primitives.") continue;
    ASSERT_EQ(name, "primitives.sort_by_key.u32");
    const auto bytes = static_cast<int64_t>(
        primitives::scratch_bytes({.kind = PrimitiveCall::Kind::kSortByKey, .n = static_cast<size_t>(n)}));
    EXPECT_EQ(bytes, 8 * n);
    whole.buffers.push_back({.id = "scratch", .begin = time, .end = time + 1, .bytes = bytes});
    scratch = std::max(scratch, bytes);
  }
  ASSERT_GT(scratch, 0);
  EXPECT_LE(static_cast<double>(memory.plan.bytes + scratch),
            1.05 * static_cast<double>(plan::lower_bound(whole)));
}

// Temporaries may lie anywhere.
TEST_P(SolverFunctions, GiveTheSameBytesWithAndWithoutAPlan) {
  for (const char* device : {"cpu", "simt"}) {
    std::vector<ParticleSnapshot> particles;
    for (const char* places : {"shared", "apart"}) {
      const Environment environment("COPPICE_TEMPORARIES", places);
      scene::SceneConfig scene = small_scene(GetParam());
      if (device == std::string("simt")) scene.grid.resolution = 16, scene.time.frame_dt_s /= 8;
      const auto solver =
          Solver::create(device == std::string("cpu") ? Device::cpu(1) : Device::simt(), scene);
      for (int frame = 0; frame < 2; ++frame) solver->wait_advance_frame();
      particles.push_back(solver->wait_snapshot());
    }
    const auto bytes = [](const auto& values) {
      return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0]));
    };
    EXPECT_EQ(bytes(particles[0].position), bytes(particles[1].position)) << device;
    EXPECT_EQ(bytes(particles[0].velocity), bytes(particles[1].velocity)) << device;
    EXPECT_EQ(bytes(particles[0].affine), bytes(particles[1].affine)) << device;
    EXPECT_EQ(bytes(particles[0].deformation), bytes(particles[1].deformation)) << device;
  }
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
