// Kernels of MLS-MPM in the plane: water, its particles in a buffer or in a list for each block of the grid.
#include <cmath>

#include "coppice/kernel.h"
#include "core/math.h"  // before any Eigen header
using namespace coppice;

struct Particle {
  Vec2f x, v;           // m, in the unit square; m/s
  Mat2f c;              // 1/s, how the velocity changes around the particle
  float volume = 1;     // over the volume at rest
  int32_t number = -1;  // lists have no order of their own
};
struct Water {
  int n = 128;  // cells per axis of the unit square; a particle has a quarter of a cell's volume
  float dt = 2e-4f, gravity = 9.8f, bulk = 400, density = 1;  // s, m/s^2, Pa, kg/m^2
};

// Calls visit(i, j, weight, distance in cells) for the 3 x 3 nodes around a place: quadratic B-splines.
template <class Visit>
void each_node(const Vec2f& x, int n, Visit&& visit) {
  const Vec2i first = (n * x.array() - 0.5f).cast<int>();
  const Eigen::Array2f f = n * x.array() - first.array().cast<float>();  // 0.5 to 1.5
  const Eigen::Array2f w[] = {0.5f * (1.5f - f).square(), 0.75f - (f - 1).square(),
                              0.5f * (f - 0.5f).square()};
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      visit(first.x() + i, first.y() + j, w[i].x() * w[j].y(), Vec2f(i - f.x(), j - f.y()));
}

template <class From>  // the kernel's item or element
void add_to_nodes(const Accumulate<Vec3f>& nodes, const From& from, const Particle& p, const Water& water) {
  const float h = 1.0f / water.n, mass = water.density * h * h / 4;
  const float pressure = water.bulk * (1 - p.volume);
  // The stress, times the volume h^2 / 4 and 4 / h^2 for the splines' second moment, acts as an affine part
  // does.
  const Mat2f affine = mass * p.c + Mat2f::Identity() * (water.dt * pressure);
  each_node(p.x, water.n, [&](int i, int j, float weight, const Vec2f& distance) {
    const Vec2f momentum = weight * (mass * p.v + affine * (h * distance));
    nodes.add(from, {i, j}, {momentum.x(), momentum.y(), weight * mass});
  });
}
template <class From>
Particle moved(const Read<Vec3f>& nodes, const From& from, Particle p, const Water& water) {
  p.v.setZero();
  p.c.setZero();
  each_node(p.x, water.n, [&](int i, int j, float weight, const Vec2f& distance) {
    const Vec3f node = nodes.at(from, {i, j});
    const Vec2f part = weight * Vec2f(node.x(), node.y());
    p.v += part;
    p.c += 4.0f * water.n * part * distance.transpose();
  });
  p.x += water.dt * p.v;
  p.volume *= 1 + water.dt * p.c.trace();
  return p;
}

// The grid: sums of momentum (x, y) and mass (z) start at zero, and become velocities. Walls, three cells
// thick, let water slide and come off.
COPPICE_KERNEL(clear, Write<Vec3f> nodes, Cell2 node) { nodes[node] = Vec3f(0, 0, 0); }
COPPICE_KERNEL(move_nodes, Update<Vec3f> nodes, Cell2 node, Water water) {
  Vec3f& v = nodes[node];
  if (v.z() == 0) return;
  const auto stopped = [&](float v, int at) {
    return at < 3 ? std::fmax(v, 0.0f) : at > water.n - 3 ? std::fmin(v, 0.0f) : v;
  };
  v.x() = stopped(v.x() / v.z(), node.coord(0));
  v.y() = stopped(v.y() / v.z() - water.dt * water.gravity, node.coord(1));
}

// Particles in a buffer: an item is a particle.
COPPICE_KERNEL(add_items, Accumulate<Vec3f> nodes, Item i, View<const Particle> particles, Water water) {
  add_to_nodes(nodes, i, particles[i], water);
}
COPPICE_KERNEL(move_items, Read<Vec3f> nodes, Item i, View<Particle> particles, Water water) {
  particles[i] = moved(nodes, i, particles[i], water);
}

// Particles in lists: an Entry is an element of a list, whose value is read and changed as a cell's own.
COPPICE_KERNEL(add_entries, Accumulate<Vec3f> nodes, Entry2 e, Read<Particle> particles, Water water) {
  add_to_nodes(nodes, e, particles[e], water);
}
COPPICE_KERNEL(move_entries, Read<Vec3f> nodes, Entry2 e, Update<Particle> particles, Water water) {
  particles[e] = moved(nodes, e, particles[e], water);
}
COPPICE_KERNEL(list_items, Append<Particle> lists, Item i, View<const Particle> particles, Water water) {
  const Vec2i block = (particles[i].x * (water.n / 8)).cast<int>();
  lists.append(i, {block.x(), block.y()}, particles[i]);
}
COPPICE_KERNEL(list_entries, Append<Particle> lists, Entry2 e, Read<Particle> particles, Water water) {
  const Particle p = particles[e];
  const Vec2i block = (p.x * (water.n / 8)).cast<int>();
  lists.append(e, {block.x(), block.y()}, p);
}
// Activates the blocks of the grid in and around each block that has particles.
COPPICE_KERNEL(cover, Topology grid, Cell2 block, Water water) {
  for (int i = -1; i <= 1; ++i)
    for (int j = -1; j <= 1; ++j) {
      const int x = block.coord(0) + i, y = block.coord(1) + j;
      if (x >= 0 && y >= 0 && x < water.n / 8 && y < water.n / 8) grid.activate(block, {x, y});
    }
}
