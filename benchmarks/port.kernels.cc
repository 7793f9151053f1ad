// Kernels of the benchmark port: mpm88 written as its Taichi program is, loop by loop, with particles in
// arrays of vectors, and with a struct of momentum and mass at the nodes; and the same with a list of
// particles for each block.
#include <cmath>

#include "coppice/kernel.h"
#include "core/math.h"
using namespace coppice;

struct PortCase {
  int32_t n;  // cells per axis of the unit square
  float dt;   // s
};
struct alignas(16) PortNode {  // which a CPU adds to by one operation
  Vec2f velocity;              // momentum, until the nodes move
  float mass;
};
struct PortParticle {
  Vec2f x, v;
  Mat2f affine;
  float ratio;  // its volume over the one at rest
};

namespace {

constexpr float kBulk = 400, kGravity = 9.8f;  // Pa, m/s^2; the density is 1 kg/m^2
constexpr int32_t kBound = 3, kBlock = 8;      // cells

// Calls visit(i, j, weight, distance in cells) for the 3 x 3 nodes around a place.
template <class Visit>
COPPICE_INLINE void each_node(const Vec2f& x, int32_t n, Visit&& visit) {
  const Eigen::Array2f at = static_cast<float>(n) * x.array();
  const Eigen::Array2i first = (at - 0.5f).cast<int>();
  const Eigen::Array2f f = at - first.cast<float>();
  const Eigen::Array2f w[] = {0.5f * (1.5f - f).square(), 0.75f - (f - 1).square(),
                              0.5f * (f - 0.5f).square()};
  COPPICE_UNROLL
  for (int i = 0; i < 3; ++i) {
    COPPICE_UNROLL
    for (int j = 0; j < 3; ++j)
      visit(first.x() + i, first.y() + j, w[i].x() * w[j].y(), Vec2f(i - f.x(), j - f.y()));
  }
}

template <class From>
COPPICE_INLINE void add_to_nodes(const Accumulate<PortNode>& nodes, const From& from, const PortParticle& p,
                                 PortCase c) {
  const float h = 1.0f / c.n, mass = h * h / 4;
  const Mat2f affine = mass * p.affine + Mat2f::Identity() * (-c.dt * kBulk * (p.ratio - 1));
  each_node(p.x, c.n, [&](int32_t i, int32_t j, float weight, const Vec2f& distance) {
    const Vec2f momentum = weight * (mass * p.v + affine * (h * distance));
    nodes.add(from, {i, j}, {momentum, weight * mass});
  });
}

// Sets all but the place by the nodes' velocities, and moves that.
template <class From>
COPPICE_INLINE PortParticle moved(const Read<PortNode>& nodes, const From& from, PortParticle p, PortCase c) {
  p.v.setZero(), p.affine.setZero();
  each_node(p.x, c.n, [&](int32_t i, int32_t j, float weight, const Vec2f& distance) {
    const Vec2f part = weight * nodes.at(from, {i, j}).velocity;
    p.v += part;
    p.affine += 4.0f * c.n * part * distance.transpose();
  });
  p.x += c.dt * p.v;
  p.ratio *= 1 + c.dt * p.affine.trace();
  return p;
}

}  // namespace

COPPICE_KERNEL(port_clear, Write<PortNode> nodes, Cell2 node)
{ nodes[node] = {Vec2f(0, 0), 0}; }
COPPICE_KERNEL(port_move_nodes, Update<PortNode> nodes, Cell2 node, PortCase c)
{
  auto& [v, mass] = nodes[node];
  const float m = mass > 0 ? mass : 1;
  const auto stopped = [&](float v, int32_t at) {
    return (at < kBound && v < 0) || (at > c.n - kBound && v > 0) ? 0 : v;
  };
  v = {stopped(v.x() / m, node.coord(0)), stopped(v.y() / m - c.dt * kGravity, node.coord(1))};
}

COPPICE_KERNEL(port_add_items, Accumulate<PortNode> nodes, Item i, PortCase c, View<const Vec2f> x,
               View<const Vec2f> v, View<const Mat2f> affine, View<const float> ratio)
{ add_to_nodes(nodes, i, {x[i], v[i], affine[i], ratio[i]}, c); }
COPPICE_KERNEL(port_move_items, Read<PortNode> nodes, Item i, PortCase c, View<Vec2f> x, View<Vec2f> v,
               View<Mat2f> affine, View<float> ratio)
{
  const PortParticle p = moved(nodes, i, {x[i], v[i], affine[i], ratio[i]}, c);
  x[i] = p.x, v[i] = p.v, affine[i] = p.affine, ratio[i] = p.ratio;
}

COPPICE_KERNEL(port_list_items, Append<PortParticle> lists, Item i, PortCase c, View<const Vec2f> x)
{
  const Vec2i block = (x[i] * static_cast<float>(c.n / kBlock)).cast<int>();
  lists.append(i, {block.x(), block.y()}, {x[i], Vec2f(0, -1), Mat2f::Zero(), 1});
}
COPPICE_KERNEL(port_list_entries, Append<PortParticle> lists, Entry2 e, PortCase c,
               Read<PortParticle> particles)
{
  const PortParticle p = particles[e];
  const Vec2i block = (p.x * static_cast<float>(c.n / kBlock)).cast<int>();
  lists.append(e, {block.x(), block.y()}, p);
}
COPPICE_KERNEL(port_cover, Topology nodes, Cell2 block, PortCase c)
{
  for (int32_t i = -1; i <= 1; ++i) {
    for (int32_t j = -1; j <= 1; ++j) {
      const int32_t x = block.coord(0) + i, y = block.coord(1) + j;
      if (x >= 0 && y >= 0 && x < c.n / kBlock && y < c.n / kBlock) nodes.activate(block, {x, y});
    }
  }
}
COPPICE_KERNEL(port_add_entries, Accumulate<PortNode> nodes, Entry2 e, PortCase c,
               Read<PortParticle> particles)
{ add_to_nodes(nodes, e, particles[e], c); }
COPPICE_KERNEL(port_move_entries, Read<PortNode> nodes, Entry2 e, PortCase c, Update<PortParticle> particles)
{ particles[e] = moved(nodes, e, particles[e], c); }
COPPICE_KERNEL(port_sum_heights, Read<PortParticle> particles, Entry2 e, Accumulate<double> sum)
{
  const PortParticle p = particles[e];
  sum.add(e, {0}, p.x.y());
  sum.add(e, {1}, p.v.norm());
}
