// Waves around a moving disc, as pictures (`wave FOLDER`), or compared with exact waves (`wave --check`).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <vector>

#include "coppice/coppice.h"
#include "wave.h"
#include "wave.kernels.h"  // generated from wave.kernels.cc
using namespace coppice;

constexpr double kPi = std::numbers::pi;

// A square of cells, u = 0 outside of it; now and old are u at the present step and at the one before.
struct Domain {
  Medium medium;
  Tree tree;
  Node blocks = tree.root().pointer({medium.size / kBlock, medium.size / kBlock});
  Node leaf = blocks.dense({kBlock, kBlock});
  Field<float> now = leaf.place<float>("now"), old = leaf.place<float>("old");
};

void step(Program& program, Domain& domain, const Disc& disc) {
  program.launch(leapfrog, over(domain.leaf), domain.now, domain.old, domain.medium, disc);
  std::swap(domain.now, domain.old);
}

double wait_energy(const IntrusivePtr<Device>& device, Program& program, const Domain& domain) {
  Tree tree(device);
  Field<double> sum = tree.root().dense({1}).place<double>("sum");
  program.launch(add_energy, over(domain.leaf), domain.now, domain.old, sum, domain.medium.k);
  return wait_read(sum, {0});
}

std::vector<float> wait_cells(const Domain& domain) {
  return wait_read(domain.now, {0, 0}, {domain.medium.size, domain.medium.size});
}

// Crests red, troughs blue, the disc black; x to the right, y upwards.
void write_ppm(const std::filesystem::path& path, const std::vector<float>& u, int size, const Disc& disc) {
  std::ofstream file(path, std::ios::binary);
  file << "P6\n" << size << " " << size << "\n255\n";
  for (int y = size - 1; y >= 0; --y)
    for (int x = 0; x < size; ++x) {
      const float v = std::clamp(6 * u[size * x + y], -1.0f, 1.0f);
      for (const float channel : {1 + std::min(v, 0.0f), 1 - std::fabs(v), 1 - std::max(v, 0.0f)})
        file.put(static_cast<char>(disc.covers(x, y) ? 0 : 255 * channel));
    }
  if (!file.flush()) throw Error(ErrorCode::kIo, "cannot write " + path.string());
}

void make_pictures(const IntrusivePtr<Device>& device, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  Program program(device);
  Domain domain{{.size = 512, .sponge = 48}, Tree(device, {.name = "wave"})};
  const int size = domain.medium.size;
  for (int i = 0; i <= 1200; ++i) {
    const Disc disc{Vec2f(150 + 0.2f * i, 330 - 0.1f * i), 30};  // waves are faster: 0.5 cells a step
    const double swell = std::sin(kPi * i / 300);  // the source sends six waves, high in the middle
    if (i < 300)
      program.launch(shake, range(16), domain.now, 150, 150, 4, swell * swell * std::sin(kPi * i / 25));
    if (i % kBlock == 0) {  // meanwhile a wave moves by half a block, so it stays among active ones
      program.launch(trim, over(domain.leaf), domain.now, domain.old, domain.blocks.topology(), 5e-3f);
      program.launch(grow, over(domain.leaf), domain.blocks.topology(), size / kBlock - 1);
    }
    step(program, domain, disc);
    if (i % 100 != 0) continue;
    char name[32];
    std::snprintf(name, sizeof(name), "wave_%02d.ppm", i / 100);
    write_ppm(folder / name, wait_cells(domain), size, disc);  // waits for the steps so far
    std::printf("step %4d: energy %6.3f, %4lu of 1024 blocks active\n", i,
                wait_energy(device, program, domain), domain.leaf.wait_num_active_blocks());
  }
}

// The root mean square error of a standing wave between walls at cells -1 and n, at t = 1: after 1.1 periods.
double standing_wave_error(const IntrusivePtr<Device>& device, int n) {
  Program program(device);
  Domain domain{{.size = n}, Tree(device, {.name = "box"})};
  const double h = 1.0 / (n + 1), dt = std::sqrt(domain.medium.k) * h;  // c = 1
  const int steps = static_cast<int>(std::lround(1 / dt));
  const auto exact = [=](int step) {
    std::vector<float> u;
    for (int x = 1; x <= n; ++x)
      for (int y = 1; y <= n; ++y)
        u.push_back(std::sin(kPi * x * h) * std::sin(2 * kPi * y * h) *
                    std::cos(std::sqrt(5.0) * kPi * step * dt));
    return u;
  };
  const std::vector<float> end = exact(steps);
  const auto before = wait_device_copy(*device, exact(-1)), start = wait_device_copy(*device, exact(0));
  program.launch(load, range(n * n), domain.old, *before, n);
  program.launch(load, range(n * n), domain.now, *start, n);
  const double energy_before = wait_energy(device, program, domain);
  for (int i = 0; i < steps; ++i) step(program, domain, {});
  const std::vector<float> u = wait_cells(domain);
  double sum = 0;
  for (size_t i = 0; i < u.size(); ++i) sum += (u[i] - end[i]) * (u[i] - end[i]);
  const double error = std::sqrt(sum / (n * n));  // not a maximum, which would pass over NaN
  std::printf("%d x %d cells: error %.2e, energy changed by a factor of %.7f\n", n, n, error,
              wait_energy(device, program, domain) / energy_before);
  return error;
}

bool check(const IntrusivePtr<Device>& device) {
  const double coarse = standing_wave_error(device, 64), fine = standing_wave_error(device, 128);
  std::printf("ratio %.2f; second order gives 4\n", coarse / fine);
  return fine < 1e-3 && coarse > 3.5 * fine;
}

int main(int argc, char** argv) try {
  const std::string what = argc == 2 ? argv[1] : "";
  if (what == "--check") return check(Device::best()) ? 0 : 1;
  if (what.empty() || what[0] == '-') {
    std::fprintf(stderr, "usage: wave FOLDER | wave --check\n");
    return 2;
  }
  make_pictures(Device::best(), what);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "wave: %s\n", error.what());
  return 1;
}
