// Water in a box by MLS-MPM, its particles in a buffer or in lists: `mpm88` compares both with mechanics,
// `mpm88 FILE.pgm` draws a splash, too.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <utility>
#include <vector>

#include "coppice/coppice.h"
#include "core/math.h"
#include "mpm88.kernels.h"  // generated from mpm88.kernels.cc
using namespace coppice;

struct Nodes {  // of the grid, in blocks of 8 x 8
  Tree tree;
  int n;
  Node blocks = tree.root().pointer({n / 8, n / 8}), leaf = blocks.dense({8, 8});
  Field<Vec3f> sum = leaf.place<Vec3f>("sum");  // of momentum and mass, then the velocity and mass
};

// As in the 88 lines: all nodes are active, and the particles stay in one buffer, in any order.
struct Buffered {
  Buffered(const IntrusivePtr<Device>& on, const Water& water, const std::vector<Particle>& particles)
      : device(on),
        program(on),
        water(water),
        count(particles.size()),
        buffer(wait_device_copy(*on, particles)) {
    program.launch(clear, over_box(nodes.leaf, {0, 0}, {water.n, water.n}), nodes.sum);
  }
  void step() {
    program.launch(clear, over(nodes.leaf), nodes.sum);
    program.launch(add_items, range(count), nodes.sum, *buffer, water);
    program.launch(move_nodes, over(nodes.leaf), nodes.sum, water);
    program.launch(move_items, range(count), nodes.sum, *buffer, water);
  }
  std::vector<Particle> wait_particles() {
    std::vector<Particle> particles(count);
    program.wait();
    device->wait_copy(particles.data(), buffer->data(), count * sizeof(Particle));
    return particles;
  }

  IntrusivePtr<Device> device;
  Program program;
  Water water;
  Nodes nodes{Tree(device, {.name = "nodes"}), water.n};
  size_t count;
  IntrusivePtr<Buffer> buffer;
};

// A list of particles for each block that has some: what a thread adds to lies close. Nodes are active around
// these blocks alone.
struct Listed {
  struct Lists {
    Tree tree;
    int n;
    Node blocks = tree.root().pointer({n / 8, n / 8}), list = blocks.dynamic(1 << 16, 64);  // in chunks of 64
    Field<Particle> particles = list.place<Particle>("particles");
  };

  Listed(const IntrusivePtr<Device>& device, const Water& water, const std::vector<Particle>& particles)
      : program(device),
        water(water),
        nodes{Tree(device, {.name = "nodes"}), water.n},
        now{Tree(device, {.name = "now"}), water.n},
        next{Tree(device, {.name = "next"}), water.n},
        count(particles.size()) {
    const auto buffer = wait_device_copy(*device, particles);
    program.launch(list_items, range(count), now.particles, *buffer, water);
    program.launch(cover, over(now.blocks), nodes.blocks.topology(), water);
  }
  void step() {
    if (steps++ % 16 == 15) sort();  // meanwhile particles move by less than a block
    program.launch(clear, over(nodes.leaf), nodes.sum);
    program.launch(add_entries, over(now.list), nodes.sum, now.particles, water);
    program.launch(move_nodes, over(nodes.leaf), nodes.sum, water);
    program.launch(move_entries, over(now.list), nodes.sum, now.particles, water);
  }
  void sort() {
    program.launch(list_entries, over(now.list), next.particles, now.particles, water);
    now.tree.deactivate_all();  // the lists' memory is used again
    std::swap(now, next);
    nodes.tree.deactivate_all();
    program.launch(cover, over(now.blocks), nodes.blocks.topology(), water);
  }
  std::vector<Particle> wait_particles() {  // in the order of their numbers
    std::vector<Particle> particles(count);
    for (int x = 0; x < water.n / 8; ++x)
      for (int y = 0; y < water.n / 8; ++y)
        for (const Particle& p : wait_read_list(now.particles, {x, y})) particles.at(p.number) = p;
    return particles;
  }

  Program program;
  Water water;
  Nodes nodes;
  Lists now, next;
  size_t count;
  int steps = 0;
};

// Four particles in each cell of a shape, a little pressed together.
template <class IsInside, class VelocityAt>
std::vector<Particle> pour(int n, IsInside&& is_inside, VelocityAt&& velocity_at) {
  std::vector<Particle> particles;
  for (int i = 0; i < 4 * n * n; ++i) {
    Particle p;
    p.x = (Vec2f(i / (2 * n), i % (2 * n)) + Vec2f(0.5f, 0.5f)) / (2 * n);
    if (!is_inside(p.x)) continue;
    p.v = velocity_at(p.x);
    p.c.setZero();
    p.volume = 0.98f;
    p.number = static_cast<int>(particles.size());
    particles.push_back(p);
  }
  return particles;
}

struct Moments {  // per mass of a particle
  Vec2d center = Vec2d::Zero(), momentum = Vec2d::Zero();
  double spin = 0;  // about the middle of the box
};
Moments moments(const std::vector<Particle>& particles, int n) {
  Moments m;
  for (const Particle& p : particles) {
    const Vec2d x = p.x.cast<double>(), v = p.v.cast<double>(), arm = x - Vec2d(0.5, 0.5);
    m.center += x / particles.size();
    m.momentum += v;
    // The affine part turns, too: h^2 / 4 is the second moment of the splines.
    m.spin += arm.x() * v.y() - arm.y() * v.x() + (p.c(1, 0) - p.c(0, 1)) / (4.0 * n * n);
  }
  return m;
}

bool is_near(const char* what, double value, double expected, double scale) {
  const double error = std::fabs(value - expected) / scale;
  std::printf("  %-17s %12.5f, expected %12.5f: error %.1e\n", what, value, expected, error);
  return error < 1e-4;  // some hundred steps in floats
}

// Returns whether water that falls freely, and a disc that turns without gravity, do so as they must.
template <class Simulation>
bool check(const IntrusivePtr<Device>& device) {
  constexpr int kSteps = 200;
  const Water water;
  const auto square = pour(
      water.n, [](const Vec2f& x) { return x.x() > 0.3f && x.x() < 0.5f && x.y() > 0.5f && x.y() < 0.7f; },
      [](const Vec2f&) { return Vec2f(1, 0); });
  Simulation falling(device, water, square);
  for (int i = 0; i < kSteps; ++i) falling.step();
  double mass = 0;
  for (const Vec3f& node : wait_read(falling.nodes.sum, {0, 0}, {water.n, water.n})) mass += node.z();
  const Moments at_first = moments(square, water.n), now = moments(falling.wait_particles(), water.n);
  const double count = square.size(), t = kSteps * water.dt, speed = water.gravity * t;
  const double drop = water.gravity * t * (t + water.dt) / 2;  // velocities change before places do
  bool ok = is_near("mass / particles'", mass * 4 * water.n * water.n, count, count);
  ok &= is_near("momentum along x", now.momentum.x(), at_first.momentum.x(), count * speed);
  ok &= is_near("momentum along y", now.momentum.y(), -count * speed, count * speed);
  ok &= is_near("centre's drop", at_first.center.y() - now.center.y(), drop, drop);

  const Water floating{.gravity = 0};
  const auto disc = pour(
      water.n, [](const Vec2f& x) { return (x - Vec2f(0.5f, 0.5f)).norm() < 0.15f; },
      [](const Vec2f& x) { return Vec2f(10 * (0.5f - x.y()), 10 * (x.x() - 0.5f)); });
  Simulation turning(device, floating, disc);
  turning.step();  // from here on particles have their affine part
  const double spin = moments(turning.wait_particles(), water.n).spin;
  for (int i = 0; i < kSteps; ++i) turning.step();
  return is_near("angular momentum", moments(turning.wait_particles(), water.n).spin, spin, spin) && ok;
}

// A column of water that breaks, at three times; faster particles are lighter, y upwards.
void draw(const IntrusivePtr<Device>& device, const char* path) {
  constexpr int kSize = 256, kTimes = 3;
  const Water water;
  const auto column = pour(
      water.n, [](const Vec2f& x) { return x.x() > 0.03f && x.x() < 0.35f && x.y() > 0.03f && x.y() < 0.6f; },
      [](const Vec2f&) { return Vec2f(0, 0); });
  Listed splash(device, water, column);
  std::vector<unsigned char> grey(kTimes * kSize * kSize, 255);
  for (int time = 0; time < kTimes; ++time) {
    for (int i = 0; i < 700; ++i) splash.step();
    for (const Particle& p : splash.wait_particles()) {
      const int x = static_cast<int>(p.x.x() * kSize), y = static_cast<int>((1 - p.x.y()) * kSize);
      grey.at(kSize * (kTimes * y + time) + x) = static_cast<unsigned char>(std::fmin(200, 60 * p.v.norm()));
    }
  }
  std::ofstream file(path, std::ios::binary);
  file << "P5\n" << kTimes * kSize << " " << kSize << "\n255\n";
  file.write(reinterpret_cast<const char*>(grey.data()), static_cast<std::streamsize>(grey.size()));
  if (!file.flush()) throw Error(ErrorCode::kIo, std::string("cannot write ") + path);
}

int main(int argc, char** argv) try {
  const IntrusivePtr<Device> device = Device::best();
  if (argc == 2) draw(device, argv[1]);
  std::puts("particles in a buffer");
  const bool buffered = check<Buffered>(device);
  std::puts("particles in lists");
  return check<Listed>(device) && buffered ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "mpm88: %s\n", error.what());
  return 1;
}
