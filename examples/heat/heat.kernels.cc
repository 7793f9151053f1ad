// Kernels of the heat equation du/dt = laplacian(u). Each runs once per item or cell, on all cores.
#include <cmath>

#include "coppice/kernel.h"
using namespace coppice;
struct Heat {  // what a kernel touches, how, and how far from its own cell
  Read<float, Star<1>> now;
  Write<float> next;
};
// A hot spot amid n x n cells of size h. Storing through Grow activates a leaf: gives it memory.
COPPICE_KERNEL(ignite, Grow<float> u, Item i, int n, float h, float t) {
  const int x = i / n - n / 2, y = i % n - n / 2;
  u.set(i, {x, y}, std::exp(-h * h * (x * x + y * y) / (4 * t)));
}
// Cells beside a warm one must be active before heat flows into them; inactive cells read as 0.
COPPICE_KERNEL(grow, Read<float> u, Topology leaf, Cell2 cell) {
  for (int d = -1; d <= 1 && u[cell] > 1e-7f; d += 2) {
    leaf.activate(cell, {cell.coord(0) + d, cell.coord(1)});
    leaf.activate(cell, {cell.coord(0), cell.coord(1) + d});
  }
}
COPPICE_KERNEL(diffuse, Heat heat, Cell2 cell, float k) {  // a step of length dt; k = dt / h^2
  heat.next[cell] = heat.now[cell] + k * laplacian(heat.now, cell);
}
