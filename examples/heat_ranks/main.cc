// The hot spot of examples/heat, on ranks: `heat_ranks --ranks 4`, or `mpirun -n 4 heat_ranks`. Each has a
// part of the tree. What differs is the tree's cluster, who prints, and main().
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "coppice/coppice.h"
#include "executor/remote/mpi/mpi_rank_link.h"
#include "executor/remote/mpi/mpi_session.h"
#include "heat.kernels.h"
using namespace coppice;
using namespace coppice::executor::remote;

// With n cells per metre.
double largest_error(const Cluster& cluster, const IntrusivePtr<Device>& device, int n) {
  Tree tree(cluster, device, {.origin = {-256, -256}});     // of cells (-256, -256) to (255, 255)
  Node leaf = tree.root().pointer({64, 64}).dense({8, 8});  // 64 x 64 leaves of 8 x 8 cells
  Field<float> now = leaf.place<float>("now"), next = leaf.place<float>("next");
  Program program(device);
  const float h = 1.0f / n, k = 0.2f, start = 0.01f, end = 0.0225f;  // m, dt / h^2 (stable to 0.25), s, s
  program.launch(ignite, range(4 * n * n), now, 2 * n, h, start);
  for (int step = 0; step < std::lround((end - start) / (k * h * h)); ++step) {
    program.launch(grow, over(leaf), now, leaf.topology());
    program.launch(diffuse, over(leaf), Heat{now, next}, k);
    std::swap(now, next);
  }
  const std::vector<float> u = wait_read(now, {-n, 0}, {n, 1});  // all ranks get all of it
  double error = 0;
  for (int x = -n; x < n; ++x)
    error = std::fmax(error, std::fabs(u[x + n] - start / end * std::exp(-h * h * x * x / (4 * end))));
  const uint64_t own = leaf.wait_num_active_blocks(), all = cluster.wait_sum(own);
  if (cluster.rank() == 0)
    std::printf("h = 1/%d m: error %.2e, %lu of 4096 leaves active, %lu of them here\n", n, error, all, own);
  return error;
}

int main(int argc, char** argv) try {
  const bool starts_ranks = argc == 3 && std::string_view(argv[1]) == "--ranks" && std::atoi(argv[2]) > 0;
  if (argc != 1 && !starts_ranks) {
    std::puts("usage: heat_ranks --ranks N | mpirun -n N heat_ranks");
    return 2;
  }
  if (starts_ranks && !is_mpi_rank()) start_ranks(std::atoi(argv[2]), argv);
  const MpiSession session;
  const Cluster cluster(std::make_shared<MpiRankLink>(session.world()));
  const IntrusivePtr<Device> device = Device::best();
  const double coarse = largest_error(cluster, device, 32), fine = largest_error(cluster, device, 64);
  if (cluster.rank() == 0) std::printf("ratio %.2f; second order gives 4\n", coarse / fine);
  return fine < 1e-3 && coarse > 3.5 * fine ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "heat_ranks: %s\n", error.what());
  return 1;
}
