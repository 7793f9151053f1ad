// A hot spot spreads in the plane, and the tree with it. The exact solution is compared along a line.
#include <cmath>
#include <cstdio>

#include "coppice/coppice.h"
#include "heat.kernels.h"  // generated from heat.kernels.cc
using namespace coppice;
double largest_error(const IntrusivePtr<Device>& device, int n) {  // with n cells per metre
  Tree tree(device, {.origin = {-256, -256}});                     // of cells (-256, -256) to (255, 255)
  Node leaf = tree.root().pointer({64, 64}).dense({8, 8});         // 64 x 64 leaves of 8 x 8 cells
  Field<float> now = leaf.place<float>("now"), next = leaf.place<float>("next");
  Program program(device);
  const float h = 1.0f / n, k = 0.2f, start = 0.01f, end = 0.0225f;  // m, dt / h^2 (stable to 0.25), s, s
  program.launch(ignite, range(4 * n * n), now, 2 * n, h, start);
  for (int step = 0; step < std::lround((end - start) / (k * h * h)); ++step) {
    program.launch(grow, over(leaf), now, leaf.topology());
    program.launch(diffuse, over(leaf), Heat{now, next}, k);  // queued: runs when those before it are done
    std::swap(now, next);                                     // swaps names, not values
  }
  const std::vector<float> u = wait_read(now, {-n, 0}, {n, 1});  // waits; throws what went wrong before
  double error = 0;
  for (int x = -n; x < n; ++x)
    error = std::fmax(error, std::fabs(u[x + n] - start / end * std::exp(-h * h * x * x / (4 * end))));
  std::printf("h = 1/%d m: error %.2e, %lu of 4096 leaves active\n", n, error, leaf.wait_num_active_blocks());
  return error;
}

int main() try {
  const IntrusivePtr<Device> device = Device::best();
  const double coarse = largest_error(device, 32), fine = largest_error(device, 64);
  std::printf("ratio %.2f; second order gives 4\n", coarse / fine);
  return fine < 1e-3 && coarse > 3.5 * fine ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "heat: %s\n", error.what());
  return 1;
}
