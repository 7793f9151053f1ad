// GPU code of the MPM solver's kernels: it compiles and assembles.
#include <gtest/gtest.h>

#include "apps/mpm/outflow_boxes.h"
#include "apps/mpm/solver_types.h"
#include "mpm.kernels.h"
#include "sparse/program.h"
#include "sparse/program_ptx.h"
#include "sparse/tree.h"
#include "tests/sparse/ptx_check.h"

namespace coppice::mpm {
namespace {

class MpmPtx : public testing::Test {
 protected:
  template <class Kernel, class... Arguments>
  void add(const Kernel& kernel, Loop loop, Arguments... arguments) {
    cases.push_back({std::string(kernel.name), [this, kernel, loop, arguments...](jit::PtxTarget target) {
                       return ProgramPtx::of(program, target, kernel, loop, arguments...);
                     }});
  }

  IntrusivePtr<Device> device = Device::cpu(1);
  Program program{device};
  std::vector<ptx_check::Case> cases;
};

TEST_F(MpmPtx, EveryKernelAssembles) {
  using namespace kernels;
  Tree tree3(device), tree2(device);
  Node block3 = tree3.root().pointer({128, 128, 128}), leaf3 = block3.dense({4, 4, 4}),
       wide3 = block3.dense({8, 8, 8});
  Node block2 = tree2.root().pointer({128, 128}), leaf2 = block2.dense({8, 8}),
       wide2 = block2.dense({12, 12});
  Field<NodeValue> grid3 = leaf3.place<NodeValue>("grid"), tiles3 = wide3.place<NodeValue>("tiles");
  Field<NodeValue> grid2 = leaf2.place<NodeValue>("grid"), tiles2 = wide2.place<NodeValue>("tiles");
  Field<NodeValue> before3 = leaf3.place<NodeValue>("grid_before"),
                   before2 = leaf2.place<NodeValue>("grid_before"),
                   tiles_before3 = wide3.place<NodeValue>("tiles_before"),
                   tiles_before2 = wide2.place<NodeValue>("tiles_before");
  Field<uint32_t> number3 = block3.place<uint32_t>("number"), number2 = block2.place<uint32_t>("number");
  const StepArguments<3> a3{};
  const StepArguments<2> a2{};
  const ParticleArrays particles{};
  uint32_t* u32 = nullptr;
  int32_t* i32 = nullptr;
  add(begin_step_3d, range(1), a3), add(begin_step_2d, range(1), a2);
  add(finish_step_3d, range(1), a3), add(finish_step_2d, range(1), a2);
  add(particles_to_grid_3d, over(leaf3), tiles3, a3), add(particles_to_grid_2d, over(leaf2), tiles2, a2);
  add(update_grid_3d, over(leaf3), tiles3, grid3, a3), add(update_grid_2d, over(leaf2), tiles2, grid2, a2);
  add(grid_to_particles_3d, over(leaf3), grid3, a3), add(grid_to_particles_2d, over(leaf2), grid2, a2);
  add(particles_to_grid_wide_3d, over(leaf3), tiles3, tiles_before3, a3),
      add(particles_to_grid_wide_2d, over(leaf2), tiles2, tiles_before2, a2);
  add(update_grid_wide_3d, over(leaf3), tiles3, tiles_before3, grid3, before3, a3),
      add(update_grid_wide_2d, over(leaf2), tiles2, tiles_before2, grid2, before2, a2);
  add(grid_to_particles_wide_3d, over(leaf3), grid3, before3, a3),
      add(grid_to_particles_wide_2d, over(leaf2), grid2, before2, a2);
  add(activate_home_3d, range(9), leaf3.topology(), particles, 1.0f),
      add(activate_home_2d, range(9), leaf2.topology(), particles, 1.0f);
  add(activate_reach_3d, over(leaf3), leaf3.topology()),
      add(activate_reach_2d, over(leaf2), leaf2.topology());
  add(block_keys_3d, range(9), number3, particles, 1.0f, 1u, u32, u32),
      add(block_keys_2d, range(9), number2, particles, 1.0f, 1u, u32, u32);
  add(push_particles_3d, range(9), particles, Capsule<3>{}, SmallVec<float, 3>{}, u32),
      add(push_particles_2d, range(9), particles, Capsule<2>{}, SmallVec<float, 2>{}, u32);
  add(mark_kept_3d, range(9), particles, Capsule<3>{}, u32),
      add(mark_kept_2d, range(9), particles, Capsule<2>{}, u32);
  add(mark_taken_3d, range(9), particles, Subcells<3>{}, u32),
      add(mark_taken_2d, range(9), particles, Subcells<2>{}, u32);
  add(mark_outflow_3d, range(9), particles, static_cast<const OutflowBox<3>*>(nullptr), 1u, u32, u32),
      add(mark_outflow_2d, range(9), particles, static_cast<const OutflowBox<2>*>(nullptr), 1u, u32, u32);
  add(copy_density_3d, over(leaf3), grid3, 1.0f, static_cast<float*>(nullptr), i32),
      add(copy_density_2d, over(leaf2), grid2, 1.0f, static_cast<float*>(nullptr), i32);
  add(copy_velocity_3d, over(leaf3), grid3, static_cast<float*>(nullptr)),
      add(copy_velocity_2d, over(leaf2), grid2, static_cast<float*>(nullptr));
  add(reorder_particles, range(9), particles, particles, u32, 0, 3);
  if (!jit::has_libdevice()) GTEST_SKIP() << "built without libdevice, which the materials need";
  ptx_check::check_ptx_cases(cases, ptx_check::ptxas_path());
  if (ptx_check::ptxas_path().empty())
    GTEST_SKIP() << "no ptxas on PATH or in $CUDA_HOME/bin: the PTX was written, but not assembled";
}

}  // namespace
}  // namespace coppice::mpm
