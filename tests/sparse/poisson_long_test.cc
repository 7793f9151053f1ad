// The Poisson solver on grids that take a while.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "poisson_cases.kernels.h"
#include "sparse/poisson/poisson_solver.h"

namespace coppice {
namespace {

TEST(Poisson, TakesHardlyMoreIterationsOn256CellsASide) {
  std::vector<int> iterations;
  for (const int32_t n : {64, 128, 256}) {
    Program program(Device::cpu());
    Tree tree(share(&program.device()));
    const Node leaf = tree.root().pointer({n / 8, n / 8, n / 8}).dense({8, 8, 8});
    PoissonSolver solver(program, leaf, 1.0 / (n + 1));
    std::vector<std::array<int32_t, 3>> leaves;
    for (int32_t x = 0; x < n; x += 8)
      for (int32_t y = 0; y < n; y += 8)
        for (int32_t z = 0; z < n; z += 8) leaves.push_back({x, y, z});
    wait(leaf.activate(std::move(leaves)));
    program.launch(set_random_source, over(leaf), solver.right_side(), 1u);
    const PoissonResult result = solver.wait_solve(1e-6);
    EXPECT_TRUE(result.converged) << n;
    iterations.push_back(result.iterations);
  }
  EXPECT_LE(iterations.back(), iterations.front() + 2) << testing::PrintToString(iterations);
  RecordProperty("iterations", testing::PrintToString(iterations));
  std::printf("iterations: %s\n", testing::PrintToString(iterations).c_str());
}

}  // namespace
}  // namespace coppice
